"""From the settings to the rules of access."""

from collections.abc import Iterator, Mapping

import msgspec

from gateway.access import AccessRules
from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.config.settings import AccessSettings, AllPlatformSettings, PlatformIds


def access_rules_from(access: AccessSettings, platforms: AllPlatformSettings) -> AccessRules:
    """Whoever reaches the control socket owns the gateway; on a network, whom the settings name."""
    return AccessRules(
        owners={**ids_by_platform(access.owners), PLATFORM: frozenset({OWNER})},
        admins=ids_by_platform(access.admins),
        users=ids_by_platform(access.users),
        group_users=ids_by_platform(access.group_users),
        chats=ids_by_platform(access.chats),
        roles={name: frozenset(found) for name, found in list_allowed_roles(platforms)},
        everybody=frozenset(access.everybody),
        strangers=access.strangers,
        user_commands=None if access.user_commands is None else frozenset(access.user_commands),
        rate=access.rate,
    )


def list_allowed_roles(platforms: AllPlatformSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of the networks that know roles."""
    for name in platforms.__struct_fields__:
        if found := getattr(getattr(platforms, name), "allowed_roles", ()):
            yield name, found


def ids_by_platform(ids: PlatformIds) -> Mapping[str, frozenset[str]]:
    named = msgspec.structs.asdict(ids)
    everywhere = named.pop("all")
    return {network: frozenset((*found, *everywhere)) for network, found in named.items()}
