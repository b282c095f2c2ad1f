"""Checks of people: their access, the approvers, and the rights of each role."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_network

from msgspec.structs import asdict, replace

from gateway.access.owners import format_line, infer_owners, suggest_owner
from gateway.access.rules import EVERY_TOOL, AccessRules
from gateway.cli.security.target import AuditFault, AuditTarget, as_faults, make_check
from gateway.config.checks import find_open_networks
from gateway.config.platform_settings import list_accounts
from gateway.config.settings import DEFAULT_RATE, GUEST_TOOLS
from gateway.daemon.part_settings import access_rules_from
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.messages.message import Address, Message
from gateway.messages.roles import rank_of

MANY_MESSAGES = 600  # a minute
MANY_ADMINS = 5  # in one group


def _read_rules(target: AuditTarget) -> AccessRules | None:
    return access_rules_from(target.doctor.configuration) if target.doctor.configuration else None


@make_check("access.everybody", "error", "every stranger of that network can talk to your agent")
def _find_everybody(target: AuditTarget) -> Iterator[AuditFault]:
    yield from as_faults(find_open_networks(target.settings, target.place_of("access.everybody")))


@make_check("access.open-chats", "warning", "every member of such a group is a guest")
def _find_open_chats(target: AuditTarget) -> Iterator[AuditFault]:
    for network, ids in asdict(target.settings.access.chats).items():
        if ids:
            what = f"every member of {len(ids)} groups on {network} is authorized"
            remedy = f"name people instead: access: {{group_users: {{{network}: [ID]}}}}"
            yield AuditFault(target.place_of(f"access.chats.{network}"), what, remedy)


@make_check("access.network-roles", "warning", "moderators of that network's server authorize people without you")
def _find_network_roles(target: AuditTarget) -> Iterator[AuditFault]:
    for one in list_accounts(target.settings.platforms):
        if getattr(one.settings, "allowed_roles", ()):
            what = f"people who give roles on {one.name} decide who is authorized"
            remedy = f"name people instead: access: {{group_users: {{{one.platform}: [ID]}}}}"
            yield AuditFault(target.place_of(".".join((*one.path, "allowed_roles"))), what, remedy)


@make_check("access.guest-tools", "error", "strangers can have these tools used")
def _find_guest_tools(target: AuditTarget) -> Iterator[AuditFault]:
    more = [name for name in target.settings.access.tools.guest if name not in GUEST_TOOLS]
    if more:
        what = f"people who are not in the configuration have tools that act: {', '.join(more)}"
        remedy = f"access: {{tools: {{guest: [{', '.join(GUEST_TOOLS)}]}}}}"
        yield AuditFault(target.place_of("access.tools.guest"), what, remedy)


@make_check("access.user-tools", "warning", "every authorized user can make the agent run commands")
def _find_user_tools(target: AuditTarget) -> Iterator[AuditFault]:
    names = target.settings.access.tools.user
    if any(name in EVERY_TOOL or fnmatchcase("shell", name) for name in names):
        remedy = "leave out `all` and `shell`, or remove access.tools.user: the default is right for people you know"
        yield AuditFault(target.place_of("access.tools.user"), "users have the shell", remedy)


@make_check("access.user-commands", "warning", "users can change what is an admin's to change")
def _find_user_commands(target: AuditTarget) -> Iterator[AuditFault]:
    given = target.settings.access.user_commands or ()
    ours = [command.name for command in BUILT_IN if not command.is_for("user") and command.name in given]
    if ours:
        what = f"users have commands that are not meant for them: {', '.join(ours)}"
        yield AuditFault(target.place_of("access.user_commands"), what, "take them out of access.user_commands")


@make_check("access.common-owners", "error", "the same number is another person elsewhere")
def _find_common_owners(target: AuditTarget) -> Iterator[AuditFault]:
    """Find ids under `all` that are valid on several networks, where they may be other people."""
    if target.doctor.configuration is None:
        return
    shapes = {name: spec.user_id for name, spec in target.doctor.configuration.schema.platforms.items()}
    for kind in ("owners", "admins"):
        for user in asdict(getattr(target.settings.access, kind))["all"]:
            fits = [name for name, shape in shapes.items() if re.fullmatch(shape, user)]
            if len(fits) > 1:
                what = f"{user} is of the {kind} on {' and '.join(fits)}, where it may be another person"
                remedy = f'access: {{{kind}: {{{fits[0]}: ["{user}"]}}}}'
                yield AuditFault(target.place_of(f"access.{kind}.all"), what, remedy)


def _infer_owners(target: AuditTarget, rules: AccessRules) -> dict[str, str]:
    """Infer the owners as the gateway does at its start."""
    kept = {one.platform: one.user_id for one in target.people.owners}
    return infer_owners(rules, target.people.people, kept)


@make_check("access.inferred-owner", "warning", "a guess decides who may do everything; a line would")
def _find_inferred_owner(target: AuditTarget) -> Iterator[AuditFault]:
    rules = _read_rules(target)
    for network, user in (_infer_owners(target, rules) if rules else {}).items():
        what = f"{user} is the owner on {network}, being or having been the only one whom its lists name"
        yield AuditFault(target.place_of(f"access.users.{network}"), what, format_line(network, user))


@make_check("access.no-approver", "warning", "what asks first is refused, unless you are at the terminal")
def _find_no_approver(target: AuditTarget) -> Iterator[AuditFault]:
    rules = _read_rules(target)
    if rules and (line := suggest_owner(rules, target.people.people, _infer_owners(target, rules))):
        yield AuditFault(
            target.place_of("access.users"), "people are authorized, and no one on a network may approve", line
        )


@make_check("access.many-messages", "warning", "one person can use up your model's budget")
def _find_many_messages(target: AuditTarget) -> Iterator[AuditFault]:
    access = target.settings.access
    rates = {f"access.groups.{name}.rate": group.rate or 0 for name, group in access.groups.items()}
    rates |= (
        {f"access.rate.{role}": rate for role, rate in access.rate.items() if role != "owner"}
        if isinstance(access.rate, dict)
        else {"access.rate": access.rate}
    )
    for where, rate in rates.items():
        if rate > MANY_MESSAGES:
            remedy = f"access: {{rate: {DEFAULT_RATE}}}" if where == "access.rate" else f"write {DEFAULT_RATE} there"
            yield AuditFault(target.place_of(where), f"one person may send {rate} messages a minute", remedy)


@make_check("access.idle-groups", "warning", "the group limits nothing for them")
def _find_idle_groups(target: AuditTarget) -> Iterator[AuditFault]:
    """Find groups without effect: a group never removes rights, and its people have more elsewhere."""
    rules = _read_rules(target)
    if rules is None:
        return
    without, paired = replace(rules, groups={}), {(one.platform, one.user_id): one.role for one in target.people.people}
    for name, group in rules.groups.items():
        for person in sorted(group.people):
            platform, _, user = person.partition(":")
            message = Message("", Address(platform, user), user, "")
            found = ["owner" if user in rules.owners.get(platform, ()) else None, without.find_role(message)]
            roles = [role for role in (*found, paired.get((platform, user))) if role]
            if any(rank_of(role) > rank_of(group.role) for role in roles):
                what = f"{person} is in a group of {group.role}s, but has a higher role elsewhere: {', '.join(roles)}"
                remedy = f"take {person} out of the group {name}, or away from there"
                yield AuditFault(target.place_of(f"access.groups.{name}"), what, remedy)


@make_check("access.many-admins", "warning", "each of them can authorize people and approve tool calls")
def _find_many_admins(target: AuditTarget) -> Iterator[AuditFault]:
    for name, group in target.settings.access.groups.items():
        if group.role == "admin" and len(group.people) > MANY_ADMINS:
            what = f"the group {name} makes {len(group.people)} people admins"
            remedy = f"access: {{groups: {{{name}: {{role: operator}}}}}}"
            yield AuditFault(target.place_of(f"access.groups.{name}.role"), what, remedy)


@make_check("approvals.asker", "error", "the question does not protect: the person who asks approves")
def _find_asker(target: AuditTarget) -> Iterator[AuditFault]:
    if "asker" in target.settings.tools.approvers:
        what = "people approve their own calls of tools that ask first"
        yield AuditFault(target.place_of("tools.approvers"), what, "tools: {approvers: [owner, admin]}")


@make_check("access.local-proxy", "warning", "any user of this machine can take anyone's role")
def _find_local_proxy(target: AuditTarget) -> Iterator[AuditFault]:
    web = target.settings.web
    networks = [ip_network(one) for one in web.trusted_proxies] if web.identity else []
    if any(one.is_loopback for one in networks):
        what = f"every user and program of this machine can say in {web.identity} that they are anybody"
        remedy = "let the proxy come from an address of its own, such as that of a container"
        yield AuditFault(target.place_of("web.trusted_proxies"), what, remedy)
