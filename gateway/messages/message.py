"""The values between a chat network and the gateway: `Message` in, `Reply` out."""

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from gateway.files.folders import find_file_folder
from gateway.messages.authors import JOB, find_author
from gateway.messages.parts import MessagePart
from gateway.messages.roles import Role

ChatType = Literal["dm", "group", "forum", "channel", "thread"]
CHAT_TYPES: tuple[ChatType, ...] = get_args(ChatType)
SHARED_CHATS = tuple(kind for kind in CHAT_TYPES if kind != "dm")
MessageKind = Literal["text", "edit", "button", "command", "reaction", "internal", "call"]
"""The sender of a `call` waits for the answer to this one text: it neither joins another text nor ends a turn."""

AttachmentKind: TypeAlias = Literal["image", "audio", "voice", "video", "document"]


@dataclass(frozen=True, slots=True)
class Address:
    """The place of a conversation, to which its replies go."""

    platform: str
    chat_id: str
    chat_type: ChatType = "dm"
    thread_id: str = ""
    account: str = ""  # one of several bots of the platform; "" is the one without a name

    @property
    def served_as(self) -> str:
        """The name of its bot: `telegram`, or `telegram:work`."""
        return name_of_account(self.platform, self.account)

    def find_folder(self, files: Path, user_id: str) -> Path:
        """Return the file folder of a user's conversation at this address."""
        at = {"chat_type": self.chat_type, "chat_id": self.chat_id, "thread_id": self.thread_id}
        return find_file_folder(files, self.served_as, user_id, **at)


@lru_cache(1024)
def name_of_account(platform: str, account: str) -> str:
    """Return the bot's name: `telegram:work`, or `telegram` without an account name."""
    return f"{platform}:{account}" if account else platform


def address_of(served_as: str, chat_id: str, thread_id: str = "") -> Address:
    """Return the address of a chat of the bot with this name."""
    platform, _, account = served_as.partition(":")
    return Address(platform, chat_id, thread_id=thread_id, account=account)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file beside a text; `path` is in the gateway's own store, and no sender can choose it.

    `is_quoted`: it came with the message that this one replies to.
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
    """Return the kind of a file by its media type alone."""
    kinds: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(media_type.partition("/")[0], "document")


def attachment_from(path: Path) -> Attachment:
    """Make an attachment of a local file, by its name. Raises OSError if the file is missing."""
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Attachment(kind_of(media_type), str(path), path.name, media_type, path.stat().st_size)


@dataclass(frozen=True, slots=True)
class HeardWords:
    """Words to others in the chat of the message that includes them; `id` is the id of the overheard message."""

    id: str
    user_id: str
    user_name: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """One act of a person in a chat. `id` comes from the network and is unique on its platform."""

    id: str
    address: Address
    user_id: str
    text: str
    user_name: str = ""
    kind: MessageKind = "text"
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    session: str = ""  # a session named by the sender (terminal, page); "" is the session of the address
    sent_at: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)
    cause: tuple[str, int] | None = None  # the event for which a hook said it, and the number of events before that one
    role: Role | Literal[""] = ""  # the rights of a text by a hook or a webhook
    agent: str = ""  # the agent that answers, if the configuration names one for this source
    is_job: bool = False  # a tool scheduled it for this time: no person has typed it
    person: str = ""  # the person responsible, as `platform:id`, if it is not the author
    parts: tuple[MessagePart, ...] = ()  # parts other than text and files; the text has words for them
    text_before: str = ""  # the words before an edit, if known; set when it is answered
    is_overheard: bool = False  # it was said to others in a quiet chat: remembered for a while, and not answered
    has_heard: bool = False  # the journal has overheard messages beside it
    heard: tuple[HeardWords, ...] = ()  # those messages; set when it is answered
    due: float = 0.0  # not answered earlier, by the journal's clock, because of its sender's rate limit

    @property
    def author(self) -> str:
        """The author of the text, as in `gateway.messages.authors`; "" for a person."""
        if self.is_job or self.kind == "internal":
            return JOB if self.is_job else self.user_id
        return find_author(self.sender)

    @property
    def payer(self) -> str:
        """The person whose budget pays for the answer, as `platform:id`; a hook or a webhook has no platform."""
        if self.person or self.kind == "internal":
            return self.person or self.user_id
        return self.sender

    @property
    def has_audio(self) -> bool:
        """True if audio files came with it."""
        return any(one.is_audio for one in self.attachments)

    @property
    def sender(self) -> str:
        """The author, as `telegram:1002`."""
        return f"{self.address.platform}:{self.user_id}"


def cause_of(messages: Sequence[Message]) -> tuple[str, int] | None:
    """Return the longest chain of events that caused these messages; None if a person started them."""
    return max((one.cause for one in messages if one.cause), key=itemgetter(1), default=None)


def people_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """List the authors of the messages, each once."""
    return tuple(dict.fromkeys(message.sender for message in messages))


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a reply; `value` comes back as a message of kind `button`."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Our own words, followed by a foreign text that a network shows literally, so that no markup or link in it works.

    The words contain no markup. Invisible characters are removed from the text (see `question_text`).
    """

    words: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply. `id` is ours and stays the same over every attempt to send it.

    A question has its text twice: in `literals`, for networks that can show literal text, and as Markdown in `text` for
    all others. The literals are shown complete, or the question is not shown: a hook that changes the text does not
    change them.
    """

    id: str
    address: Address
    text: str
    attachments: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    silent: bool = False
    literals: tuple[LiteralText, ...] = ()
    parts: tuple[MessagePart, ...] = ()  # the text ends with words for them, which a network may replace by the parts
    is_streamed: bool = False  # the chat displayed its text while it was written
    role: Role | Literal[""] = ""  # the role of the reader, if known
    codes: tuple[str, ...] = ()  # the pairing codes in its text; hooks get the text without them
    is_spoken: bool = False  # it is also read aloud once it has arrived

    @property
    def is_empty(self) -> bool:
        """True if the message has no content: its delivery then removes what the chat displayed while it was made."""
        return not (self.text or self.attachments or self.buttons or self.literals)


Decision = Literal["stranger", "forbidden", "too_fast", "settled", "queued"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The decision about a message.

    - `stranger`: its sender is not authorized here; nothing of it was kept.
    - `forbidden`: it answers another person's question, and has no effect.
    - `too_fast`: its sender exceeded the rate limit and has enough messages waiting; it was not accepted.
    - `settled`: it was handled at once; `settled` is the answer.
    - `queued`: it is in the journal, as `seq`, or was there already (0).

    `is_closed`: it answered a question whose buttons the gateway itself removes in every chat.
    """

    session_key: str
    seq: int = 0
    settled: str | None = None
    decision: Decision = "queued"
    is_closed: bool = False
