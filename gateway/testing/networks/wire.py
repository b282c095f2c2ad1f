"""The wire that the suite of all adapters needs: a server of a network on loopback, where a test plays the people.

People are numbers, and a direct chat with the bot has the person's number. A group has a number of its own.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from gateway.messages.parts import MessagePart

ANN, BEN, STRANGER, SECOND_STRANGER = "1001", "1002", "6666", "7777"
GROUP = "-2001"


def media_type_of(name: str) -> str:
    """Return the type that a network reports for a person's file, by the end of its name."""
    kinds = {".jpg": "image/jpeg", ".ogg": "audio/ogg"}
    return kinds.get(name[-4:], "application/pdf")


@dataclass
class Shown:
    """A message of the bot, as a chat shows it now."""

    id: str
    chat: str
    text: str
    thread: str = ""
    reply_to: str = ""
    buttons: dict[str, str] = field(default_factory=dict)  # label -> value
    file: bytes = b""
    file_name: str = ""
    codes: list[str] = field(default_factory=list)  # its code blocks, as the network finds them
    is_note: bool = False  # its file is a voice note, in the network's own form
    is_draft: bool = False  # it is not a message, and disappears with the next one there
    more_files: list[tuple[str, bytes]] = field(default_factory=list)  # files that came with the first


class Wire(Protocol):
    """One network, for one bot. Actions while no gateway listens wait, as at the real network."""

    network: str
    limit: int  # of one message's text, in UTF-16 units
    shown: list[Shown]

    @property
    def settings(self) -> str:
        """The YAML that a gateway needs to serve this network, beside `environ`."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables by which a gateway finds this server."""
        ...

    def known_as(self, person: str) -> str:
        """Return the network's id of one of our people."""
        ...

    def own(self, person: str) -> str:
        """Make this person the gateway's owner; return the settings for it."""
        ...

    def serving(self) -> AbstractAsyncContextManager[None]: ...

    async def write(self, text: str, *, by: str = ANN, chat: str = "", thread: str = "", reply_to: str = "") -> str:
        """Write a message as a person; return its id."""
        ...

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None: ...

    async def delete(self, message: str, *, by: str = ANN) -> None:
        """Take back a message as its author."""
        ...

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        """Send files as a person, several as an album; a name that ends with `.ogg` is a voice note."""
        ...

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        """Send a part that is neither text nor file, of the network's own kinds."""
        ...

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None: ...

    async def react(self, message: str, emoji: str, *, by: str = ANN) -> None: ...

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        """Mention the bot as a person, with this text."""
        ...

    async def forward(self, text: str, *, by: str = ANN) -> str:
        """Forward another person's text."""
        ...

    async def join(self, text: str, *, by: str = ANN) -> None:
        """Join the group as a person; the network reports that by its own kind of message, with this text in it."""
        ...

    async def again(self) -> None:
        """Deliver the last event once more."""
        ...

    async def noise(self) -> None:
        """Send an event of an unknown kind."""
        ...

    async def by_a_bot(self, text: str) -> None:
        """Write as another bot, in the group and to us."""
        ...

    def flood(self, seconds: float) -> None:
        """Refuse the bot's next message: too many, wait for these seconds."""
        ...

    def forbid(self, chat: str) -> None:
        """Close a chat to the bot."""
        ...

    def hang_up(self) -> None:
        """Break every open connection."""
        ...

    def revoke(self) -> None:
        """Revoke the bot's token."""
        ...

    def signs(self, chat: str) -> int:
        """Return how often the bot showed a typing sign in the chat."""
        ...
