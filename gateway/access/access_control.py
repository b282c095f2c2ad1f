"""Decide who is authorized, and with what rights. No one is without a rule or a pairing; only ids count.

The check runs in memory, before anything of a stranger's is recorded, and again when a message is claimed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from gateway.access.message_rate import MessageRate
from gateway.access.owners import format_line, infer_owners, suggest_owner
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules
from gateway.agent import Tool
from gateway.errors import AccessError, EngineError
from gateway.messages.message import Message, address_of
from gateway.messages.roles import Role, is_admin, rank_of
from gateway.records.records import PairingUser

log = logging.getLogger(__name__)

NOBODY: frozenset[str] = frozenset()
MOST_WAITING = 200  # messages of one person beyond their rate limit that are answered later
INTERNAL = "internal"  # the platform of work that no chat asked for; no network's adapter has this name
WEB = "web"  # the platform of the page; a person with a link from a network is `NETWORK:ID` there
TERMINAL = "terminal"
API = "api"  # the platform of programs: a user there is `KEY` or `KEY:USER`, with the rights of the key

FindProgramRole: TypeAlias = Callable[[str], Role | None]


class AccessControl(msgspec.Struct, eq=False):
    """The one gate for every kind of input.

    `find_program_role` knows the keys of programs, which no rule and no pairing covers.
    """

    rules: AccessRules
    pairings: Pairings
    message_rate: MessageRate = msgspec.field(default_factory=MessageRate)
    find_program_role: FindProgramRole = lambda _user: None
    _owners: Mapping[str, str] = {}
    _owners_kept: Sequence[PairingUser] = ()  # the records from which those were inferred

    @property
    def owners(self) -> Mapping[str, str]:
        """The owners by platform: the only person in its lists, now or when any gateway recorded it."""
        if self.pairings.owners != self._owners_kept:
            self._infer_owners()
        return self._owners

    def _infer_owners(self) -> None:
        self._owners_kept = self.pairings.owners
        kept = {one.platform: one.user_id for one in self._owners_kept}
        self._owners = infer_owners(self.rules, self.pairings.people, kept)

    async def apply_rules(self, rules: AccessRules) -> None:
        """Use these rules from now on. An owner that they imply is recorded, also across restarts."""
        before, self.rules = self._owners, rules
        self._infer_owners()
        if self._owners != {one.platform: one.user_id for one in self.pairings.owners}:
            try:
                await self.pairings.keep_owners(self.owners)
            except (AccessError, EngineError) as error:
                log.warning("who is the owner here is found out again at the next start, and not kept: %s", error)
        for platform, user in self.owners.items() - before.items():
            line = format_line(platform, user)
            log.info(
                "%s %s is the owner here, as the only one whom a list names; to fix that: %s", platform, user, line
            )
        if line := self.suggest_owner():
            log.warning("no approver for other people's tool calls; name an owner in config.yaml: %s", line)

    def suggest_owner(self) -> str:
        """Return the line to configure if no approver is named though people write; "" if one is."""
        return suggest_owner(self.rules, self.pairings.people, self.owners)

    def fit_tool(self, tool: Tool, role: Role) -> Tool | None:
        """Return the tool as an agent has it for this role; None if it does not. An owner has all."""
        return tool if role == "owner" else self.rules.fit_tool(tool, role)

    def has_others(self) -> bool:
        """Return True if anyone but owners and admins is authorized."""
        rules = self.rules
        if rules.everybody or rules.chats or any(rules.roles.values()):
            return True
        roles = [*rules.named.values(), *(one.role for one in self.pairings.people)]
        roles += [one.role for one in rules.groups.values()]
        if not all(map(is_admin, roles)):
            return True
        return any(
            users
            - rules.owners.get(platform, NOBODY)
            - rules.admins.get(platform, NOBODY)
            - {self.owners.get(platform)}
            for listed in (rules.users, rules.group_users)
            for platform, users in listed.items()
        )

    def is_too_fast(self, message: Message, role: Role) -> bool:
        """Return True if this person has reached the rate limit; otherwise the message counts."""
        return self.find_pause(message, role, waiting=0) is None

    def find_pause(
        self, message: Message, role: Role, *, age: float = 0.0, waiting: int = MOST_WAITING
    ) -> float | None:
        """Count a message, sent `age` seconds ago; return the seconds until it may be answered.

        None: with so many of this person's messages `waiting`, it is rejected. Owners have no limit, unless the
        configuration sets one.
        """
        if role == "owner" and role not in self.rules.rates:
            return 0.0
        most = self.rules.find_rate(f"{message.address.platform}:{message.user_id}", role)
        return self.message_rate.take(message, most, age=age, waiting=waiting)

    async def invite(self, message: Message) -> str:
        """Return a pairing code for a stranger; "" if they get none."""
        return "" if self.rules.strangers == "ignore" else await self.pairings.invite(message)

    def can_approve(self, role: Role, *, is_own: bool) -> bool:
        """Return True if this role's approval lets a tool run. `is_own`: for their own request."""
        approvers = self.rules.approvers
        return role == "owner" or role in approvers or (is_own and "asker" in approvers)

    def can_approve_own(self, message: Message) -> bool:
        """Return True if the author may approve tools for themself."""
        if message.kind == "internal" or message.address.platform == API:
            return False
        role = self.find_role(message)
        return role is not None and self.can_approve(role, is_own=True)

    def list_approvers(self) -> list[tuple[str, str]]:
        """List platform and id of everyone who may approve for others, owners first.

        A person authorized by one of several bots is listed with that bot: `telegram:work`.
        """
        rules, paired = self.rules, self.pairings.people
        people = (*rules.named, *(person for group in rules.groups.values() for person in group.people))
        grouped = (person.partition(":")[0] for person in people)
        platforms = {*rules.owners, *rules.admins, *rules.users, *grouped}
        named = {(platform, user) for platform in platforms for user in rules.list_people(platform)}
        named |= {(one.served_as, one.user_id) for one in paired}
        roles = {who: self.find_role(Message("", address_of(*who), who[1], "")) for who in sorted(named)}
        found = [who for who, role in roles.items() if role and self.can_approve(role, is_own=False)]
        return sorted(found, key=lambda who: roles[who] != "owner")

    def find_highest_role(self, platform: str, user: str) -> Role | None:
        """Return the highest role of a person in direct chats with the bots of a platform."""
        let_in = {one.served_as for one in self.pairings.people if (one.platform, one.user_id) == (platform, user)}
        found = (self.find_role(Message("", address_of(name, user), user, "")) for name in {platform, *let_in})
        return max((role for role in found if role), key=rank_of, default=None)

    def find_role(self, message: Message) -> Role | None:
        """Return the highest role of a message's sender; None: a stranger."""
        if message.kind == "internal":
            return message.role or "guest"  # a hook wrote it, for a person
        platform, user = message.address.platform, message.user_id
        if not user:
            return None
        if platform == API:
            return self.find_program_role(user)
        network, colon, on_network = user.partition(":")
        if platform == WEB and colon:  # they have a link from there, and the role from there
            return self.find_highest_role(network, on_network)
        if user in self.rules.owners.get(platform, ()) or user == self.owners.get(platform):
            return "owner"
        by_rule, by_code = self.rules.find_role(message), self.pairings.find_role(message.address.served_as, user)
        if by_code == "user" and message.address.chat_type != "dm":
            by_code = None  # as users they were authorized for direct messages only
        return max((role for role in (by_rule, by_code) if role), key=rank_of, default=None)
