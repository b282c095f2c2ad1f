"""The description of a chat network for the configuration. Each network fills it in a module of its own.

A network may have several bots here. One has no name of its own, and its settings are the network's section; each of
the others is an account, with a section of the same shape under `accounts`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from gateway.config.fields import RELOADABLE, Secret, describe
from gateway.logs.redaction import TokenShape
from gateway.messages.message import ChatType, name_of_account
from gateway.messages.parts import MessagePart

ACCOUNT_NAME: Final = re.compile(rf"(?!({'|'.join(get_args(ChatType))})$)[a-z][a-z0-9_-]{{0,30}}")


ProgressDisplay: TypeAlias = Literal["off", "tools", "all"]


class DisplaySettings(Struct, frozen=True, kw_only=True):
    """How much of the work on an answer people see while it lasts. A network and a chat may override it."""

    progress: Annotated[
        ProgressDisplay, describe("a line about the work: `tools` names them, `all` shows the last arguments too")
    ] = "off"
    reactions: Annotated[bool, describe("show by reactions: seen, being answered, answered, failed")] = False
    typing: Annotated[bool, describe("whether the bot is shown as typing, or at work, where a network has that")] = True
    final: Annotated[
        Literal["new", "edit"],
        describe(
            "the answer after a question, a tool or words before one: a `new` message, for which people are called, or "
            "an `edit` of what is shown"
        ),
    ] = "new"


class PlatformSettings(Struct, frozen=True, kw_only=True):
    """The settings that all networks have.

    `SHARED` lists those that all bots of a network take from the network's own section. `NATIVE_PARTS` lists the parts
    of a message, neither text nor file, that the network shows natively instead of in words. `IS_STAMPED` means that
    the network itself dates each message, and no person can choose the time.
    """

    SHARED: ClassVar[tuple[str, ...]] = ()
    NATIVE_PARTS: ClassVar[tuple[type[MessagePart], ...]] = ()
    IS_STAMPED: ClassVar[bool] = False

    enabled: Annotated[bool | None, describe("whether the gateway uses it; by default if its token is set")] = None
    home_channel: Annotated[str, describe("the id of the chat for reports, alerts and BOOT.md"), RELOADABLE] = ""
    home_channel_name: Annotated[str, describe("the name of that chat, for people"), RELOADABLE] = ""
    require_mention: Annotated[bool, describe("in groups, answer only a mention, a reply or a command")] = True
    free_response_channels: Annotated[tuple[str, ...], describe("groups in which everything is answered, by id")] = ()
    streaming: Annotated[
        Literal["auto", "edit", "off"],
        describe("show an answer while it grows: in the way of the network, by edits, or not"),
    ] = "auto"
    progress: Annotated[ProgressDisplay | None, describe("over `display.progress`, on this network"), RELOADABLE] = None
    reactions: Annotated[bool | None, describe("over `display.reactions`, on this network"), RELOADABLE] = None
    typing: Annotated[bool | None, describe("over `display.typing`, on this network"), RELOADABLE] = None
    link_previews: Annotated[
        bool,
        describe(
            "whether the network may show the page behind a link in an answer: it calls the address for that, which "
            "can carry off a secret that the model was made to put into it"
        ),
    ] = False
    max_parts: Annotated[
        int, describe("the most messages of an answer; a longer one ends in a file with all of it", ge=1, le=100)
    ] = 10

    @property
    def is_called(self) -> bool:
        """True if the network calls us over HTTP, at our port."""
        return False

    @property
    def why_unusable(self) -> str:
        """The reason why its code cannot be used, in words; empty if it can."""
        return ""

    @property
    def missing_tokens(self) -> list[str]:
        """The names of the tokens that the network needs and that are not set."""
        return [name for name, value in asdict(self).items() if name.endswith("token") and not value]


class PlatformAccount(NamedTuple):
    """One bot of a network, with its settings."""

    platform: str
    account: str  # empty: the one without a name
    settings: PlatformSettings

    @property
    def name(self) -> str:
        """Its name everywhere: `telegram`, or `telegram:work`."""
        return name_of_account(self.platform, self.account)

    @property
    def path(self) -> tuple[str, ...]:
        """The path of its settings."""
        return ("platforms", self.platform, *(("accounts", self.account) if self.account else ()))


def list_accounts(platforms: Struct) -> Iterator[PlatformAccount]:
    """Yield every bot in the settings, served or not: of each network first the one without a name."""
    for platform, section in asdict(platforms).items():
        yield PlatformAccount(platform, "", section)
        for account, settings in section.accounts.items():
            shared = {name: getattr(section, name) for name in section.SHARED}
            yield PlatformAccount(platform, account, replace(settings, **shared))


class UnknownSettings(PlatformSettings, frozen=True, kw_only=True):
    """A network whose code, and so its settings, were not loaded."""

    enabled: Annotated[bool | None, describe("whether it is used, and its code loaded")] = False


class PlatformPlace(msgspec.Struct, frozen=True):
    """The code of a network: a package, and its `folder` if the package is not installed.

    origin: the place it was found at, in words, if it is not ours. That code runs inside the gateway all the same.
    """

    package: str
    folder: Path | None = None
    origin: str = ""


class PlatformSpec(msgspec.Struct, frozen=True):
    """One chat network, as the configuration, `setup` and the logs know it.

    settings: the shape of its section. ids: what its ids look like, for people; the two patterns say so exactly.
    variables: Hermes's names, and the settings they mean, beside those that every network has; unsupported_variables:
    those that would make a difference and make none here, each with the reason. token_shapes: what its secrets look
    like in a text. noisy_loggers: those that log whole addresses, or every request. libraries: what it imports.
    """

    settings: type[PlatformSettings]
    ids: str
    user_id: str
    chat_id: str
    variables: Mapping[str, str]
    unsupported_variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    token_shapes: tuple[TokenShape, ...] = ()
    noisy_loggers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def secrets(self) -> list[str]:
        """The names of the settings that must never be shown."""
        return [name for name, value in asdict(self.settings()).items() if isinstance(value, Secret)]
