"""The access rules that a person wrote: per platform, the authorized ids and their roles. Only ids count."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from gateway.agent import Tool
from gateway.messages.message import Message
from gateway.messages.roles import Role, is_admin, rank_of

EVERY_TOOL = frozenset({"all", "*"})


class PeopleGroup(msgspec.Struct, frozen=True):
    """A group of people as `PLATFORM:ID`, with their lowest role and their rate limit.

    The limit is in messages a minute; None: they have no limit of their own.
    """

    people: frozenset[str]
    role: Role
    rate: int | None = None


class AccessRules(msgspec.Struct, frozen=True):
    """The authorized ids, per platform.

    owners, admins, users: people, wherever they write. group_users: people who may write in groups only. chats: groups
    in which everyone may. roles: a network's roles whose holders may write in groups. everybody: platforms that a
    person opened to everyone. names_owners: the configuration names an owner; otherwise see `gateway.access.owners`.
    approvers: roles that may approve tools beside owners: `admin`, `asker`. tools: by role, the names of tools and
    globs; `all` is every one, `trusted` every one that needs no approval. groups: people with common rules, by name.
    named: people, each `PLATFORM:ID`, with a role of their own. rates: by role, where it differs from `rate`.
    """

    strangers: Literal["pair", "ignore"]
    rate: int  # messages a minute, for one person
    rates: Mapping[Role, int] = msgspec.field(default_factory=dict)
    groups: Mapping[str, PeopleGroup] = msgspec.field(default_factory=dict)
    named: Mapping[str, Role] = msgspec.field(default_factory=dict)
    owners: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    admins: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    users: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    group_users: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    chats: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    # Of the people who have a role in groups, by bot.
    roles: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    everybody: frozenset[str] = frozenset()
    user_commands: frozenset[str] | None = None  # None: all that are not for admins
    names_owners: bool = False
    approvers: frozenset[str] = frozenset()
    tools: Mapping[Role, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def has_admins(self) -> bool:
        """True if a person with every command is named."""
        roles = (*self.named.values(), *(one.role for one in self.groups.values() if one.people))
        return any(self.admins.values()) or any(map(is_admin, roles))

    def list_people(self, platform: str) -> frozenset[str]:
        """Return everyone whom a list or a group names on this platform."""
        lists = (self.owners, self.admins, self.users, self.group_users)
        people = (*self.named, *(one for group in self.groups.values() for one in group.people))
        grouped = (one.split(":", 1) for one in people)
        return frozenset(user for there, user in grouped if there == platform).union(
            *(listed.get(platform, ()) for listed in lists)
        )

    def groups_of(self, person: str) -> tuple[str, ...]:
        """Return the groups of this person (`PLATFORM:ID`); the configuration allows one at most."""
        return tuple(name for name, group in self.groups.items() if person in group.people)

    def list_settings(self, person: str) -> list[str]:
        """Return the settings that name this person (`PLATFORM:ID`)."""
        platform, _, user = person.partition(":")
        lists = {"owners": self.owners, "admins": self.admins, "users": self.users, "group_users": self.group_users}
        named = [f"access.{name}" for name, listed in lists.items() if user in listed.get(platform, ())]
        named += ["web.people"] if person in self.named else []
        return named + [f"access.groups.{name}" for name in self.groups_of(person)]

    def find_rate(self, person: str, role: Role) -> int:
        """Return the rate limit of this person, in messages a minute."""
        own = [rate for name in self.groups_of(person) if (rate := self.groups[name].rate) is not None]
        return min(own) if own else self.rates.get(role, self.rate)

    def find_role(self, message: Message) -> Role | None:
        """Return the highest role that a list or a group gives a person who is not an owner."""
        person = f"{message.address.platform}:{message.user_id}"
        grouped = (self.groups[name].role for name in self.groups_of(person))
        found = [self._find_listed_role(message), self.named.get(person), *grouped]
        return max((role for role in found if role), key=rank_of, default=None)

    def _find_listed_role(self, message: Message) -> Role | None:
        """Return the role by lists; an allowed chat only authorizes its members as users."""
        platform, user, in_group = message.address.platform, message.user_id, message.address.chat_type != "dm"
        if user in self.admins.get(platform, ()):
            return "admin"
        if user in self.users.get(platform, ()):
            return "user"
        if in_group and user in self.group_users.get(platform, ()):
            return "user"
        if in_group and not self.roles.get(message.address.served_as, frozenset()).isdisjoint(roles_of(message)):
            return "user"
        is_open = platform in self.everybody or (in_group and message.address.chat_id in self.chats.get(platform, ()))
        return "guest" if is_open else None

    def fit_tool(self, tool: Tool, role: Role) -> Tool | None:
        """Return the tool as an agent has it for this role; None if it does not."""
        names = self.tools.get(role, EVERY_TOOL)
        if not EVERY_TOOL.isdisjoint(names):
            return tool
        is_given = any(fnmatchcase(tool.name, name) for name in names) or (tool.is_trusted and "trusted" in names)
        return (tool.narrow or tool) if is_given else None


def roles_of(message: Message) -> tuple[str, ...]:
    """Return the sender's roles on the network, in the place of the message."""
    return tuple(str(one) for one in message.extra.get("roles", ()))
