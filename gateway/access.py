"""Who may speak to the gateway, and with what rights. Nobody may, unless a rule names them; ids alone count.

The check is made in memory, before anything of a stranger's is journalled, and again when a message is claimed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gateway.messages import Message

Scope: TypeAlias = Literal["owner", "admin", "user"]

INTERNAL = "internal"  # the platform of work that no chat asked for; no network's adapter has this name


@dataclass(frozen=True, slots=True)
class Rules:
    """Per platform, the ids that may speak. `everybody` lists platforms that are open, as a person wrote it."""

    owners: Mapping[str, frozenset[str]] = field(default_factory=dict)
    admins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    group_users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    chats: Mapping[str, frozenset[str]] = field(default_factory=dict)
    everybody: frozenset[str] = frozenset()


class Access:
    """The one gate for every kind of ingress."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def scope(self, message: Message) -> Scope | None:
        """The rights of a message's sender; None: a stranger.

        A group that is allowed lets its members speak as users; it never makes anybody an admin.
        """
        if message.kind == "internal":
            return "owner"  # the gateway made it itself, for a hook that its owner placed
        platform, user = message.address.platform, message.user_id
        if user in self.rules.owners.get(platform, ()):
            return "owner"
        if user and user in self.rules.admins.get(platform, ()):
            return "admin"
        if user and user in self.rules.users.get(platform, ()):
            return "user"
        in_group = message.address.chat_type != "dm"
        if in_group and user and user in self.rules.group_users.get(platform, ()):
            return "user"
        if in_group and message.address.chat_id in self.rules.chats.get(platform, ()):
            return "user"
        return "user" if user and platform in self.rules.everybody else None
