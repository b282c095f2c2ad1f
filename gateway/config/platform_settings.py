"""What the configuration has to know of a chat network. Each says it in a module of its own, and they are handed in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import asdict

from gateway.config.fields import Secret, describe
from gateway.logs.redaction import TokenShape


class PlatformSettings(Struct, frozen=True, kw_only=True):
    """What all networks have."""

    enabled: Annotated[bool | None, describe("whether it is used; by default where its token is there")] = None
    home_channel: Annotated[
        str, describe("the id of the chat that gets what nobody asked for: reports, alerts, BOOT.md")
    ] = ""
    home_channel_name: Annotated[str, describe("what that chat is called, for people")] = ""
    require_mention: Annotated[
        bool, describe("in groups, answer only when spoken to: a mention, a reply, a command")
    ] = True
    free_response_channels: Annotated[tuple[str, ...], describe("groups in which everything is answered, by id")] = ()
    streaming: Annotated[Literal["auto", "edit", "off"], describe("whether an answer can be seen while it grows")] = (
        "auto"
    )
    max_parts: Annotated[
        int,
        describe("how many messages an answer may become; a longer one ends in a file with all of it", ge=1, le=100),
    ] = 10

    @property
    def is_called(self) -> bool:
        """Whether the network calls us, by the port."""
        return False

    @property
    def missing_tokens(self) -> list[str]:
        """The names of the tokens that the network needs and that are not set."""
        return [name for name, value in asdict(self).items() if name.endswith("token") and not value]


@dataclass(frozen=True, slots=True)
class PlatformSpec:
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
    unsupported_variables: Mapping[str, str] = field(default_factory=dict)
    token_shapes: tuple[TokenShape, ...] = ()
    noisy_loggers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def secrets(self) -> list[str]:
        """The names of the settings that must never be shown."""
        return [name for name, value in asdict(self.settings()).items() if isinstance(value, Secret)]
