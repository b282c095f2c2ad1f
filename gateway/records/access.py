"""Records of access: people by a code or an invitation, programs by a key, browsers by a link; and of names."""

import msgspec

from gateway.messages.message import name_of_account
from gateway.messages.roles import KeyRole, Role
from gateway.messages.steps import JournalRecord


class PairingUser(msgspec.Struct, frozen=True):
    """A person who asked for access, or has it, with their role; `mark` is derived from their code.

    A request has a number, which is never used again (0: from before there were numbers). `told` is False if the code
    could not be sent.
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
    account: str = ""  # the bot to which they wrote: their access applies to no other bot

    @property
    def served_as(self) -> str:
        return name_of_account(self.platform, self.account)


class PairingInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation for the first person with its code, until a time by the journal's clock.

    `mark` is derived from the code. `by` created it: `telegram:1002`, or the gateway's operator. Its number is from the
    same series as those of requests.
    """

    number: int
    mark: str
    role: Role
    until: float
    by: str


class PairingState(JournalRecord, tag="paired", frozen=True, kw_only=True):
    """The people with access by a code, the requests, and the invitations; the last record counts.

    owners: the owners where no rule names one. wrong: the times at which people tried unknown codes. numbered: the last
    number of a request.
    """

    people: tuple[PairingUser, ...] = ()
    asking: tuple[PairingUser, ...] = ()
    owners: tuple[PairingUser, ...] = ()
    wrong: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    numbered: int = 0
    invitations: tuple[PairingInvitation, ...] = ()


class ProgramKey(msgspec.Struct, frozen=True):
    """A key of a program for the port; `mark` verifies it, and nothing stored reveals the key."""

    name: str
    mark: str
    role: KeyRole = "user"
    at: float = 0.0
    agent: str = ""  # the agent that it may use; "": none


class ProgramKeyState(JournalRecord, tag="keys", frozen=True, kw_only=True):
    """All keys of programs; the last record counts."""

    keys: tuple[ProgramKey, ...] = ()


class Login(msgspec.Struct, frozen=True):
    """A login to the web page; `mark` verifies its secret, and nothing stored reveals the secret.

    `person` is the user's name on the platform `web`.
    """

    mark: str
    role: Role
    at: float
    used: float
    person: str = "owner"


class LoginLink(msgspec.Struct, frozen=True):
    """A link that logs in the first browser with its code, until a time; `mark` verifies the code."""

    mark: str
    until: float
    role: Role
    person: str


class LoginState(JournalRecord, tag="logins", frozen=True, kw_only=True):
    """The logins and the open links; the last record counts."""

    logins: tuple[Login, ...] = ()
    links: tuple[LoginLink, ...] = ()


class KnownName(JournalRecord, tag="name", frozen=True, kw_only=True):
    """The name of a person (`of` is `telegram:1002`) or a chat (`discord:work:77`), as their network says it.

    `within` is the name of the guild or workspace around a chat. `is_trusted`: an owner or admin has written in the
    chat. `at` is the last day on which the network said it, by the journal's clock.
    """

    of: str
    name: str
    is_chat: bool = False
    within: str = ""
    is_trusted: bool = False
