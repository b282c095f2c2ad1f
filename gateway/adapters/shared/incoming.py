"""What comes in: a message and its files, whether it is for us, and what is remembered of those that came lately."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from gateway.messages.message import Address, Message, Receipt

LONGEST_QUOTE = 500  # characters of what somebody replies to
MOST = 500  # messages of a network: an answer and a question come soon after what they belong to
LATEST = 253_402_300_799.0  # the last second of the year 9999

STRANGER = "You may not use this bot here."

FileT = TypeVar("FileT")
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class IncomingMessage(msgspec.Struct, Generic[FileT], frozen=True):
    """A message, without its files, and the files that belong to it, as the network describes them.

    `raw` gives the message in the network's own shape, as data. `quoted` are files of the message that it answers;
    `find_quoted` asks the network for them, once it is known that the sender may speak.
    """

    message: Message
    files: tuple[FileT, ...] = ()
    raw: Callable[[], Any] | None = None
    quoted: tuple[FileT, ...] = ()
    find_quoted: Callable[[], Awaitable[tuple[FileT, ...]]] | None = None


def check_message(message: Message) -> Message:
    """The message, if all in it is of the type that we say it has: the libraries believe whatever a network sends.

    Raises:
        msgspec.ValidationError: it is not, or was written at no time of which a calendar knows.
    """
    if not 0 <= message.sent_at <= LATEST:
        raise msgspec.ValidationError(f"it was sent at {message.sent_at}, which is no time")
    return msgspec.convert(msgspec.to_builtins(message), Message)


def remember(known: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    """Adds an entry; of more than `most` the oldest one goes."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


def add_context(text: str, *, forwarded_from: str = "", quoted: str = "") -> str:
    """The text of a message that was forwarded, or that answers another one."""
    if forwarded_from:
        return f"[forwarded from {to_plain_name(forwarded_from)}]\n{text}"
    return f"[in reply to: {quoted[:LONGEST_QUOTE]}]\n{text}" if quoted else text


def to_plain_name(name: str) -> str:
    """A name as others chose it: no brackets, no lines, nothing with which it could pass for more than a name."""
    return " ".join("".join(sign for sign in name if sign not in "[]").split())[:100]


def describe_reply(
    text: str | None, author_id: object = None, author: str = "", *, is_own: bool = False
) -> dict[str, Any]:
    """What the network says of the message that another one answers, for hooks."""
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
    """What a person added and took away under a message; `roles` are theirs, where a network has any."""
    extra = {"added": list(added), "removed": list(removed), "roles": list(roles)}
    return Message(f"{message_id}:reaction", address, user_id, "", kind="reaction", reply_to=message_id, extra=extra)


def refusal_of(receipt: Receipt) -> str:
    """What is said to somebody alone who pressed a button that is not for them; empty: the press counts."""
    if receipt.decision == "stranger":
        return STRANGER
    return (receipt.settled or "") if receipt.decision in ("forbidden", "too_fast") else ""


class RecentMessage(NamedTuple):
    """Whose, and how it began: what they said themselves, without what they answer."""

    user_id: str
    beginning: str


class RecentMessages(msgspec.Struct, eq=False):
    """The last messages that we read, by their ids."""

    _messages: dict[str, RecentMessage] = {}

    def note(self, message: Message) -> None:
        """Remember it under the network's own id."""
        quoted = add_context("", quoted=str(message.extra.get("reply_to_text", "")))
        said = message.text.removeprefix(quoted) or message.text
        found = RecentMessage(message.user_id, " ".join(said.split())[:80])
        remember(self._messages, message.id.partition(":")[0], found, MOST)

    async def complete(self, message: Message) -> tuple[Message, tuple[()]]:
        """Remembers a message that is taken, and adds nothing to it."""
        self.note(message)
        return message, ()

    def author(self, message_id: str) -> str:
        """Empty: not known any more."""
        return found.user_id if (found := self._messages.get(message_id)) else ""

    def title(self, message_id: str) -> str:
        """What a conversation that began with this message may be called."""
        return found.beginning if (found := self._messages.get(message_id)) else ""
