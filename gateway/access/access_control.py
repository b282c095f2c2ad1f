"""Decides who may speak, and with what rights. Nobody may, unless a rule or a pairing names them; ids alone count.

The check is made in memory, before anything of a stranger's is journalled, and again when a message is claimed.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.access.message_rate import MessageRate
from gateway.access.pairing import Pairings
from gateway.messages import Message
from gateway.roles import Role

INTERNAL = "internal"  # the platform of work that no chat asked for; no network's adapter has this name


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Per platform, the ids that may speak. `everybody` lists platforms that are open, as a person wrote it."""

    strangers: Literal["pair", "ignore"]
    rate: int  # messages a minute, for one person
    owners: Mapping[str, frozenset[str]] = field(default_factory=dict)
    admins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    group_users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    chats: Mapping[str, frozenset[str]] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of those who have one, in groups
    everybody: frozenset[str] = frozenset()
    user_commands: frozenset[str] | None = None  # None: all that are not for admins


class AccessControl:
    """The one gate for every kind of ingress. `clock` is steady: the pace of a person does not follow a wall clock."""

    def __init__(self, rules: AccessRules, pairings: Pairings, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self.pairings = pairings
        self.message_rate = MessageRate(clock)

    def is_too_fast(self, message: Message, role: Role) -> bool:
        """Returns True when this person has used up the messages of the last minute; each call counts as one.

        Owners may write as much as they like.
        """
        if role == "owner":
            return False
        return not self.message_rate.take(message, self.rules.rate)

    async def invite(self, message: Message) -> str:
        """A pairing code for a stranger; empty where there is none."""
        return "" if self.rules.strangers == "ignore" else await self.pairings.invite(message)

    def find_role(self, message: Message) -> Role | None:
        """Returns the role of a message's sender, the highest of those that they have; None: a stranger."""
        return next(self._list_roles(message), None)

    def _list_roles(self, message: Message) -> Iterator[Role]:
        """What each rule makes of them, the highest first. A group that is allowed lets its members speak, no more."""
        if message.kind == "internal":
            yield "owner"  # the gateway made it itself, for a hook that its owner placed
        platform, user = message.address.platform, message.user_id
        if not user:
            return
        rules, in_group = self.rules, message.address.chat_type != "dm"
        if user in rules.owners.get(platform, ()):
            yield "owner"
        if user in rules.admins.get(platform, ()):
            yield "admin"
        if user in rules.users.get(platform, ()):
            yield "user"
        if not in_group and self.pairings.has(platform, user):
            yield "user"
        if in_group and user in rules.group_users.get(platform, ()):
            yield "user"
        if in_group and not rules.roles.get(platform, frozenset()).isdisjoint(roles_of(message)):
            yield "user"
        if platform in rules.everybody or (in_group and message.address.chat_id in rules.chats.get(platform, ())):
            yield "guest"


def roles_of(message: Message) -> tuple[str, ...]:
    """Returns the roles that the sender has where the message was written, as the network says."""
    return tuple(str(one) for one in message.extra.get("roles", ()))
