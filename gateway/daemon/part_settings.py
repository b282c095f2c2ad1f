"""The settings, converted to the values that the parts of the gateway need."""

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import asdict, replace

from gateway.access.access_control import WEB
from gateway.access.rules import AccessRules, PeopleGroup
from gateway.adapters.page import places
from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.agent.mcp.client import McpSpec
from gateway.agent.mcp.message_limiter import MessageParser
from gateway.agent.toolbox.search import WEB_SEARCH
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.platform_settings import list_accounts
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema
from gateway.config.settings import (
    DEFAULT_RATE,
    GUEST_TOOLS,
    HookOverrides,
    HooksSettings,
    Settings,
)
from gateway.daemon.platforms import why_not_served
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.messages.roles import Role
from gateway.worker.process_marks import mark_of


def access_rules_from(configuration: Configuration) -> AccessRules:
    """Return the access rules. Callers of the control socket own the gateway; the settings name all other people."""
    access, platforms = configuration.settings.access, configuration.settings.platforms
    lists = (access.owners, access.admins, access.users, access.group_users)
    shapes = {name: spec.user_id for name, spec in configuration.schema.platforms.items()}
    owners, admins, users, group_users = (as_sets(list_matching_ids(asdict(ids), shapes)) for ids in lists)
    chats = as_sets(asdict(access.chats))
    return AccessRules(
        owners={**owners, PLATFORM: frozenset({OWNER}), WEB: frozenset({places.OWNER})},
        named={f"{WEB}:{name}": role for name, role in configuration.settings.web.people.items()},
        names_owners=bool(owners),
        tools=tools_by_role_from(configuration.settings),
        admins=admins,
        users=users,
        group_users=group_users,
        chats=chats,
        roles=as_sets({one.name: getattr(one.settings, "allowed_roles", ()) for one in list_accounts(platforms)}),
        everybody=frozenset(access.everybody),
        strangers=access.strangers,
        user_commands=None if access.user_commands is None else frozenset(access.user_commands),
        rate=DEFAULT_RATE if isinstance(access.rate, dict) else access.rate,
        rates=access.rate if isinstance(access.rate, dict) else {},
        groups={name: PeopleGroup(frozenset(one.people), one.role, one.rate) for name, one in access.groups.items()},
        approvers=frozenset(configuration.settings.tools.approvers),
    )


def tools_by_role_from(settings: Settings) -> dict[Role, tuple[str, ...]]:
    """Return the tools of each role; an operator has the tools of users. Guests may use a search that is free."""
    tools = settings.access.tools
    is_free = settings.tools.search.provider == "searxng" and tools.guest == GUEST_TOOLS
    guest = (*tools.guest, WEB_SEARCH) if is_free else tools.guest
    return {"admin": tools.admin, "operator": tools.user, "user": tools.user, "guest": guest}


def list_matching_ids(ids: Mapping[str, tuple[str, ...]], shapes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the ids for each network; an id for all networks has the form of only some of them."""
    return {name: tuple(one for one in ids[name] if re.fullmatch(shape, one)) for name, shape in shapes.items()}


def as_sets(ids: Mapping[str, tuple[str, ...]]) -> dict[str, frozenset[str]]:
    return {network: frozenset(found) for network, found in ids.items() if found}


def mcp_specs_from(
    settings: Settings, home: Home, parser: MessageParser, inherited: Collection[str]
) -> Iterator[McpSpec]:
    """Return the tool servers that are switched on."""
    limit, mark = settings.tools.output_limit, mark_of(home.lock)
    for name, server in settings.mcp_servers.items():
        if server.enabled:
            yield McpSpec(name, server, home.root, limit, parser, name in inherited, mark)


def add_agent_hooks(settings: Settings) -> HooksSettings:
    """Return the settings of hooks, with the hooks that agents name enabled for these agents."""
    each = dict(settings.hooks.each)
    for agent, own in settings.agents.items():
        for name in own.hooks:
            before = each.get(name, HookOverrides())
            enabled = True if before.enabled is None else before.enabled
            each[name] = replace(before, enabled=enabled, agents=tuple(dict.fromkeys((*before.agents, agent))))
    return replace(settings.hooks, each=each)


def build_setup_info(home: Home, settings: Settings) -> GatewayFacts:
    """Return the facts about the gateway's setup, without secrets."""
    model, sessions = settings.model, settings.sessions
    return GatewayFacts(
        home=str(home.root),
        networks=tuple(
            PlatformInfo(
                one.name, not why_not_served(one.settings), one.settings.home_channel, one.settings.home_channel_name
            )
            for one in list_accounts(settings.platforms)
        ),
        model=model.name or model.provider,
        provider=model.provider,
        base_url=model.base_url or PROVIDERS[model.provider].base_url,
        reset=sessions.reset,
        idle_minutes=round(sessions.idle / 60),
        daily_at=sessions.daily_at,
    )


def find_id_shapes(schema: SettingsSchema) -> dict[str, str]:
    """Return, for each network, the pattern of the ids of its chats and people."""
    return {name: f"{spec.chat_id}|{spec.user_id}" for name, spec in schema.platforms.items()}


def list_chats_in_settings(settings: Settings) -> dict[str, str]:
    """List the chats that the configuration names, each with the name that it gives, or ""."""
    bots = list_accounts(settings.platforms)
    found = {chat: "" for chat in settings.chats if chat.rpartition(":")[0] in {one.name for one in bots}}
    for one in bots:
        found |= {f"{one.name}:{chat}": "" for chat in getattr(settings.access.chats, one.platform)}
        found |= {f"{one.name}:{one.settings.home_channel}": one.settings.home_channel_name}
    return found
