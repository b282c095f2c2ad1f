"""What crosses the border between a chat network and the gateway: `Message` in, `Reply` out, both plain values."""

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gateway.files.folders import find_file_folder
from gateway.messages.authors import JOB, find_author
from gateway.messages.parts import MessagePart
from gateway.roles import Role

ChatType = Literal["dm", "group", "forum", "channel", "thread"]
MessageKind = Literal["text", "edit", "button", "command", "reaction", "internal", "call"]
"""A `call` is a text whose sender waits for the answer to just this one: it neither joins another nor ends a turn."""

AttachmentKind: TypeAlias = Literal["image", "audio", "voice", "video", "document"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a conversation takes place, and so where its replies go."""

    platform: str
    chat_id: str
    chat_type: ChatType = "dm"
    thread_id: str = ""
    account: str = ""  # which of several bots of the platform; empty: the one without a name

    @property
    def served_as(self) -> str:
        """The name of the bot that serves it: `telegram`, or `telegram:work`."""
        return name_of_account(self.platform, self.account)

    def find_folder(self, files: Path, user_id: str) -> Path:
        """Where the files lie of the conversation that somebody has here."""
        at = {"chat_type": self.chat_type, "chat_id": self.chat_id, "thread_id": self.thread_id}
        return find_file_folder(files, self.served_as, user_id, **at)


def name_of_account(platform: str, account: str) -> str:
    """How the bot is called everywhere: `telegram:work`, or `telegram` where it has no name of its own."""
    return f"{platform}:{account}" if account else platform


def address_of(served_as: str, chat_id: str, thread_id: str = "") -> Address:
    """A chat of the bot of this name."""
    platform, _, account = served_as.partition(":")
    return Address(platform, chat_id, thread_id=thread_id, account=account)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file beside a text; `path` lies in the gateway's own store, never where a sender could choose.

    `is_quoted`: it came with the message that this one answers.
    """

    kind: AttachmentKind
    path: str
    name: str = ""
    media_type: str = "application/octet-stream"
    size: int = 0
    is_quoted: bool = False

    @property
    def is_audio(self) -> bool:
        return self.kind in ("audio", "voice")


def kind_of(media_type: str) -> AttachmentKind:
    """The kind of a file of which no more is known."""
    kinds: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(media_type.partition("/")[0], "document")


def attachment_from(path: Path) -> Attachment:
    """A file that lies here, as what its name says it is. Raises OSError: it is not there."""
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Attachment(kind_of(media_type), str(path), path.name, media_type, path.stat().st_size)


@dataclass(frozen=True, slots=True)
class HeardWords:
    """What somebody said to others, in the chat of the message that is told it; `id` is that of what they said."""

    id: str
    user_id: str
    user_name: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that a person did in a chat. `id` is the network's own, and makes it unique on its platform."""

    id: str
    address: Address
    user_id: str
    text: str
    user_name: str = ""
    kind: MessageKind = "text"
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    session: str = ""  # a session named by the sender (terminal, page); empty: the one that the address implies
    sent_at: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)
    cause: tuple[str, int] | None = None  # the event for which a hook said it, and how many came before that one
    role: Role | Literal[""] = ""  # of what a hook or a webhook said: with whose rights
    agent: str = ""  # who answers, where the configuration says so of what brought it
    is_job: bool = False  # a tool made it for this time: no person has typed it
    person: str = ""  # whose doing it is, as `platform:id`, where that is not who wrote it
    parts: tuple[MessagePart, ...] = ()  # what is neither text nor file; the text has words for it
    text_before: str = ""  # what was said before an edit, where that is known; set when it is answered
    is_overheard: bool = False  # it was said to others in a quiet chat: remembered for a while, and not answered
    has_heard: bool = False  # what was said to others before it stands beside it in the journal
    heard: tuple[HeardWords, ...] = ()  # that; set when it is answered
    due: float = 0.0  # not answered before, by the journal's clock: its sender writes more than one person may

    @property
    def author(self) -> str:
        """The author of the text, as in `gateway.messages.authors`; empty: a person."""
        if self.is_job or self.kind == "internal":
            return JOB if self.is_job else self.user_id
        return find_author(self.sender)

    @property
    def payer(self) -> str:
        """Who is charged with what comes of it, as `platform:id`; a hook or a webhook is named without a platform."""
        if self.person or self.kind == "internal":
            return self.person or self.user_id
        return self.sender

    @property
    def has_audio(self) -> bool:
        """Did files come with it that somebody may listen to?"""
        return any(one.is_audio for one in self.attachments)

    @property
    def sender(self) -> str:
        """Who wrote it, as `telegram:1002`."""
        return f"{self.address.platform}:{self.user_id}"


def cause_of(messages: Sequence[Message]) -> tuple[str, int] | None:
    """What a turn that answers them came of: the longest chain of events; None where a person began it."""
    return max((one.cause for one in messages if one.cause), key=itemgetter(1), default=None)


def people_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Who wrote them, each once."""
    return tuple(dict.fromkeys(message.sender for message in messages))


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a reply; `value` comes back as a message of kind `button`."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Words of ours, and below them a text of somebody else's that a network shows as it is: nothing in it acts.

    The words hold nothing that could act anywhere. The text has lost what cannot be seen (see `question_text`).
    """

    words: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One thing to say. `id` is ours and stays the same over every attempt to send it.

    A question says the same twice: in `literals`, for networks that can show text as it is, and for all else in `text`,
    as Markdown. Its literals are shown whole, or it is not shown: a hook that changes the text does not change them.
    """

    id: str
    address: Address
    text: str
    attachments: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    silent: bool = False
    literals: tuple[LiteralText, ...] = ()
    parts: tuple[MessagePart, ...] = ()  # the text ends with words for them, in place of which a network may show them
    is_streamed: bool = False  # its text stood in the chat while it was written
    role: Role | Literal[""] = ""  # of whoever it was made for, where that is known
    codes: tuple[str, ...] = ()  # those in its text that authorize somebody; hooks get it without them
    is_spoken: bool = False  # once it has arrived it is read aloud too

    @property
    def is_empty(self) -> bool:
        """There is nothing to say: its delivery takes away what was shown of it while it was made."""
        return not (self.text or self.attachments or self.buttons or self.literals)


Decision = Literal["stranger", "forbidden", "too_fast", "settled", "queued"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was decided about a message.

    - `stranger`: its sender may not speak here; nothing of it was kept.
    - `forbidden`: it answers a question that was put to somebody else, and does nothing.
    - `too_fast`: its sender writes more than one person may, and what may wait of that does; it was not accepted.
    - `settled`: it was dealt with at once; `settled` is what was said to it.
    - `queued`: it is in the journal, as `seq`, or was there already (0).

    `is_closed`: it answered a question whose buttons the gateway takes away itself, wherever they are.
    """

    session_key: str
    seq: int = 0
    settled: str | None = None
    decision: Decision = "queued"
    is_closed: bool = False
