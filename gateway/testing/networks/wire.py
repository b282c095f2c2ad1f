"""What the suite of all adapters needs of a network's wire: a server on loopback, on which a test is the people.

People are numbers; everybody's own chat with the bot has their number. A group has a number of its own.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from gateway.messages.parts import MessagePart

ANN, BEN, STRANGER, SECOND_STRANGER = "1001", "1002", "6666", "7777"
GROUP = "-2001"


def media_type_of(name: str) -> str:
    """What a network says of a file that somebody sends, by the end of its name."""
    kinds = {".jpg": "image/jpeg", ".ogg": "audio/ogg"}
    return kinds.get(name[-4:], "application/pdf")


@dataclass
class Shown:
    """A message of the bot's, as it stands in a chat now."""

    id: str
    chat: str
    text: str
    thread: str = ""
    reply_to: str = ""
    buttons: dict[str, str] = field(default_factory=dict)  # label -> value
    file: bytes = b""
    file_name: str = ""
    codes: list[str] = field(default_factory=list)  # its code blocks, as the network finds them
    is_note: bool = False  # its file is a voice note, as the network shows one
    is_draft: bool = False  # it is no message, and goes with the next one there
    more_files: list[tuple[str, bytes]] = field(default_factory=list)  # that came with the first


class Wire(Protocol):
    """One network, for one bot. What is done while no gateway listens waits, as it does at the real one."""

    network: str
    limit: int  # of one message's text, in UTF-16 units
    shown: list[Shown]

    @property
    def settings(self) -> str:
        """The YAML that a gateway needs to be served here, beside these."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables by which a gateway finds this server."""
        ...

    def known_as(self, person: str) -> str:
        """The id by which the network knows one of our people."""
        ...

    def own(self, person: str) -> str:
        """Let this person own the gateway; the settings that are needed for it."""
        ...

    def serving(self) -> AbstractAsyncContextManager[None]: ...

    async def write(self, text: str, *, by: str = ANN, chat: str = "", thread: str = "", reply_to: str = "") -> str:
        """A person writes; the id of the message."""
        ...

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None: ...

    async def delete(self, message: str, *, by: str = ANN) -> None:
        """A person takes back what they wrote."""
        ...

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        """A person sends files, several as an album; what ends with `.ogg` is a voice note."""
        ...

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        """A person sends what is neither text nor file, of the kinds that the network has."""
        ...

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None: ...

    async def react(self, message: str, emoji: str, *, by: str = ANN) -> None: ...

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        """A person calls the bot, and says this to it."""
        ...

    async def forward(self, text: str, *, by: str = ANN) -> str:
        """A person passes on what somebody else has said."""
        ...

    async def join(self, text: str, *, by: str = ANN) -> None:
        """A person comes into the group, which the network tells by a message of its own, with this in it."""
        ...

    async def again(self) -> None:
        """The network delivers what it delivered last once more."""
        ...

    async def noise(self) -> None:
        """Something of a kind that nobody knows."""
        ...

    async def by_a_bot(self, text: str) -> None:
        """Another bot writes, in the group and to us."""
        ...

    def flood(self, seconds: float) -> None:
        """The next message of the bot's is refused: too many, wait."""
        ...

    def forbid(self, chat: str) -> None:
        """The bot may no longer write there."""
        ...

    def hang_up(self) -> None:
        """Every open connection breaks."""
        ...

    def revoke(self) -> None:
        """The bot's token is no longer good."""
        ...

    def signs(self, chat: str) -> int:
        """How often the bot showed there that it is typing."""
        ...
