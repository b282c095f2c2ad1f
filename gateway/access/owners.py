"""Infer the owner of a home that names none: the only person in its lists.

A gateway that knew no owners had a list with their own id, and nothing else. They are recorded as the owner from then
on, so that authorizing another person takes nothing from them. A configuration that names owners takes precedence.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.access.rules import AccessRules
from gateway.messages.roles import is_admin
from gateway.records.records import PairingUser

MOST_NAMED = 5  # people in a suggestion


def infer_owners(rules: AccessRules, paired: Sequence[PairingUser], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the owners by network.

    An owner is recorded, as long as a list still names them, or is now the only person in a list.
    """
    if rules.names_owners:
        return {}
    owners = {network: user for network, user in kept.items() if user in rules.list_people(network)}
    if rules.groups or rules.has_admins or any(is_admin(one.role) for one in paired):
        return owners  # a configuration with groups assigns roles, so nothing is guessed
    for network, users in rules.users.items():
        is_open = network in rules.everybody or rules.roles.get(network)
        if network not in owners and len(rules.list_people(network)) == 1 and not is_open:
            owners[network] = next(iter(users))
    return owners


def suggest_owner(rules: AccessRules, paired: Sequence[PairingUser], owners: Mapping[str, str]) -> str:
    """Return the line that names an owner, for a home with people but no approver; else ""."""
    if rules.names_owners or owners or rules.has_admins or any(is_admin(one.role) for one in paired):
        return ""
    named = {one.partition(":")[0] for group in rules.groups.values() for one in group.people}
    networks = sorted({*rules.users, *rules.group_users, *named})
    people = {network: sorted(rules.list_people(network)) for network in networks}
    for one in paired:
        people[one.platform] = [*people.get(one.platform, []), one.user_id]
    network = next((network for network, found in people.items() if found), "")
    if network:
        return f"{format_line(network, people[network][0])} {_choose_from(people[network])}"
    opened = min(rules.everybody | rules.chats.keys() | rules.roles.keys(), default="")
    return f"{format_line(opened, 'ID')} (with your own id there)" if opened else ""


def format_line(network: str, user: str) -> str:
    """Return the setting that makes a person the owner."""
    return f'access: {{owners: {{{network}: ["{user}"]}}}}'


def _choose_from(people: Iterable[str]) -> str:
    """Return a hint to choose; only they know which one they are."""
    first = [*people][:MOST_NAMED]
    return "" if len(first) == 1 else f"(whichever of {', '.join(first)} is you)"
