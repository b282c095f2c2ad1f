"""Who owns a home that names no owner: the only person whom its lists name, there where they do.

Whoever comes from a gateway that knew no owners has a list with their own id, and nothing else. They are kept as the
owner from then on, so that letting in somebody else takes nothing from them. A line that names owners always wins.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.access.rules import AccessRules
from gateway.records.records import PairingUser
from gateway.roles import is_admin

MOST_NAMED = 5  # people of whom a suggestion tells


def infer_owners(rules: AccessRules, paired: Sequence[PairingUser], kept: Mapping[str, str]) -> dict[str, str]:
    """The owners by network: those who were kept, as far as a list still names them, and who is alone in a list now."""
    if rules.names_owners:
        return {}
    owners = {network: user for network, user in kept.items() if user in rules.list_people(network)}
    if rules.groups or rules.has_admins or any(is_admin(one.role) for one in paired):
        return owners  # whoever writes groups says who is what, and is not guessed at
    for network, users in rules.users.items():
        is_open = network in rules.everybody or rules.roles.get(network)
        if network not in owners and len(rules.list_people(network)) == 1 and not is_open:
            owners[network] = next(iter(users))
    return owners


def suggest_owner(rules: AccessRules, paired: Sequence[PairingUser], owners: Mapping[str, str]) -> str:
    """The line that names an owner, for a home in which people speak and nobody may approve; else nothing."""
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
    """The setting that makes somebody the owner."""
    return f'access: {{owners: {{{network}: ["{user}"]}}}}'


def _choose_from(people: Iterable[str]) -> str:
    """Which of them it is, only they know."""
    first = [*people][:MOST_NAMED]
    return "" if len(first) == 1 else f"(whichever of {', '.join(first)} is you)"
