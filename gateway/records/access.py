"""The journal's records of who is let in: people by a code or an invitation, programs by a key, browsers by a link."""

from typing import Literal

import msgspec

from gateway.messages.message import name_of_account
from gateway.messages.steps import JournalRecord
from gateway.roles import Role


class PairingUser(msgspec.Struct, frozen=True):
    """A person who asked to be let in, or was, with their role; `mark` tells the code that they were given.

    Who asks has a number, which nobody had before or gets after them (0: asked before there were any), and is `told`
    their code, unless that could not be sent.
    """

    platform: str
    user_id: str
    user_name: str = ""
    chat_id: str = ""
    at: float = 0.0
    mark: str = ""
    role: Role = "user"
    number: int = 0
    told: bool = True
    account: str = ""  # the bot to which they wrote: what they are there, they are with no other

    @property
    def served_as(self) -> str:
        return name_of_account(self.platform, self.account)


class PairingInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever comes first with the code that `mark` tells is let in with this role, until then by the journal's clock.

    `by` made it: `telegram:1002`, or whoever runs the gateway. Its number is of the same row as those of who asks.
    """

    number: int
    mark: str
    role: Role
    until: float
    by: str


class PairingState(JournalRecord, tag="paired", frozen=True, kw_only=True):
    """Who was let in by a code, who has asked, and who is invited; the last one counts.

    owners: who is the owner where no rule says it. wrong: when somebody tried codes that nobody has. numbered: the last
    number that was given to anybody who asked.
    """

    people: tuple[PairingUser, ...] = ()
    asking: tuple[PairingUser, ...] = ()
    owners: tuple[PairingUser, ...] = ()
    wrong: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    numbered: int = 0
    invitations: tuple[PairingInvitation, ...] = ()


class ProgramKey(msgspec.Struct, frozen=True):
    """A key that a program shows at the port; `mark` tells it again, and nothing that is kept tells the key."""

    name: str
    mark: str
    role: Literal["user", "operator"] = "user"
    at: float = 0.0
    agent: str = ""  # whom it may speak to; empty: to nobody


class ProgramKeyState(JournalRecord, tag="keys", frozen=True, kw_only=True):
    """The keys that there are; the last one counts."""

    keys: tuple[ProgramKey, ...] = ()


class Login(msgspec.Struct, frozen=True):
    """Somebody who is let in to the page; `mark` tells their secret again, and nothing that is kept tells it.

    `person` is who they are on the platform `web`.
    """

    mark: str
    role: Role
    at: float
    used: float
    person: str = "owner"


class LoginLink(msgspec.Struct, frozen=True):
    """A link that lets in whoever comes first with the code that `mark` tells again, until then."""

    mark: str
    until: float
    role: Role
    person: str


class LoginState(JournalRecord, tag="logins", frozen=True, kw_only=True):
    """Who is let in, and which links are open; the last one counts."""

    logins: tuple[Login, ...] = ()
    links: tuple[LoginLink, ...] = ()
