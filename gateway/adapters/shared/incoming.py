"""The incoming messages: their parts and files, the answer to a pressed button, and the memory of recent ones."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from gateway.messages.message import Address, Message, Receipt

LONGEST_QUOTE = 500  # characters of an answered message
MOST = 500  # messages of a network: an answer and a question come soon after their message
LATEST = 253_402_300_799.0  # the last second of the year 9999

STRANGER = "You may not use this bot here."

FileT = TypeVar("FileT")
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class IncomingMessage(msgspec.Struct, Generic[FileT], frozen=True):
    """A message without its files, and the network's descriptions of those files.

    `raw` returns the message in the network's own shape, as data. `quoted` are files of the answered message;
    `find_quoted` asks the network for them, once the sender's access is checked.
    """

    message: Message
    files: tuple[FileT, ...] = ()
    raw: Callable[[], Any] | None = None
    quoted: tuple[FileT, ...] = ()
    find_quoted: Callable[[], Awaitable[tuple[FileT, ...]]] | None = None


def check_message(message: Message) -> Message:
    """Return the message if all its fields have the right types: the libraries believe everything that a network sends.

    Raises:
        msgspec.ValidationError: a field has another type, or the time is outside the calendar.
    """
    if not 0 <= message.sent_at <= LATEST:
        raise msgspec.ValidationError(f"it was sent at {message.sent_at}, which is not a time")
    return msgspec.convert(msgspec.to_builtins(message), Message)


def remember(known: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    """Add an entry; beyond `most` entries the oldest one is removed."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


def add_context(text: str, *, forwarded_from: str = "", quoted: str = "") -> str:
    """Return the text of a message with the origin of a forwarded one, or the quote of an answered one."""
    if forwarded_from:
        return f"[forwarded from {to_plain_name(forwarded_from)}]\n{text}"
    return f"[in reply to: {quoted[:LONGEST_QUOTE]}]\n{text}" if quoted else text


def to_plain_name(name: str) -> str:
    """Return a name that another person chose, without brackets and line breaks: it cannot pass for other text."""
    return " ".join("".join(sign for sign in name if sign not in "[]").split())[:100]


def describe_reply(
    text: str | None, author_id: object = None, author: str = "", *, is_own: bool = False
) -> dict[str, Any]:
    """Describe the message that another one answers, for hooks."""
    found = {"reply_to_text": text, "reply_to_author_id": str(author_id or ""), "reply_to_author_name": author}
    return {name: value for name, value in found.items() if value} | ({"reply_to_is_own": True} if is_own else {})


def make_reaction(
    address: Address,
    user_id: str,
    message_id: str,
    *,
    added: Collection[str] = (),
    removed: Collection[str] = (),
    roles: Collection[str] = (),
) -> Message:
    """Make the message of a person's changed reactions; `roles` are the person's, if the network has roles."""
    extra = {"added": list(added), "removed": list(removed), "roles": list(roles)}
    return Message(f"{message_id}:reaction", address, user_id, "", kind="reaction", reply_to=message_id, extra=extra)


def refusal_of(receipt: Receipt) -> str:
    """Return the text that only the person who pressed a wrong button sees; "": the press counts."""
    if receipt.decision == "stranger":
        return STRANGER
    return (receipt.settled or "") if receipt.decision in ("forbidden", "too_fast") else ""


class RecentMessage(NamedTuple):
    """The author of a message, and its beginning without the quote of the answered one."""

    user_id: str
    beginning: str


class RecentMessages(msgspec.Struct, eq=False):
    """The last messages that were read, by their ids."""

    _messages: dict[str, RecentMessage] = {}

    def note(self, message: Message) -> None:
        """Remember a message under the network's own id."""
        quoted = add_context("", quoted=str(message.extra.get("reply_to_text", "")))
        said = message.text.removeprefix(quoted) or message.text
        found = RecentMessage(message.user_id, " ".join(said.split())[:80])
        remember(self._messages, message.id.partition(":")[0], found, MOST)

    async def complete(self, message: Message) -> tuple[Message, tuple[()]]:
        """Remember a message that is taken, and add nothing to it."""
        self.note(message)
        return message, ()

    def author(self, message_id: str) -> str:
        """Return the author; "": not known any more."""
        return found.user_id if (found := self._messages.get(message_id)) else ""

    def title(self, message_id: str) -> str:
        """Return a title for a thread that began with this message."""
        return found.beginning if (found := self._messages.get(message_id)) else ""
