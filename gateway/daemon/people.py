"""From the settings to the rules of access."""

from collections.abc import Iterator, Mapping

import msgspec

from gateway.access import AccessRules
from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.config.platforms import Platforms
from gateway.config.settings import Access as AccessSettings
from gateway.config.settings import Ids


def rules_from(access: AccessSettings, platforms: Platforms) -> AccessRules:
    """Whoever reaches the control socket owns the gateway; on a network, whom the settings name."""
    return AccessRules(
        owners={**by_platform(access.owners), PLATFORM: frozenset({OWNER})},
        admins=by_platform(access.admins),
        users=by_platform(access.users),
        group_users=by_platform(access.group_users),
        chats=by_platform(access.chats),
        roles={name: frozenset(found) for name, found in allowed_roles(platforms)},
        everybody=frozenset(access.everybody),
        strangers=access.strangers,
        user_commands=None if access.user_commands is None else frozenset(access.user_commands),
        rate=access.rate,
    )


def allowed_roles(platforms: Platforms) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of the networks that know roles."""
    for name in platforms.__struct_fields__:
        if found := getattr(getattr(platforms, name), "allowed_roles", ()):
            yield name, found


def by_platform(ids: Ids) -> Mapping[str, frozenset[str]]:
    named = msgspec.structs.asdict(ids)
    everywhere = named.pop("all")
    return {network: frozenset((*found, *everywhere)) for network, found in named.items()}
