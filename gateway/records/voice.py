"""Records of what is spoken: the words of people's audio, and answers that are to be spoken; and of what is heard in
quiet chats, said to others.

They stand in the journal with all others, which `gateway.records.records` reads and writes.
"""

from typing import Literal

from gateway.messages.message import Message, Reply
from gateway.messages.steps import JournalRecord


class AudioTranscription(JournalRecord, tag="audio", frozen=True, kw_only=True):
    """What became of file `file` (by its place) of the message with the sequence `on`; the last one of a file counts.

    `begun` stands before each try, of which there are so many (`tries`) by then. When it was `stopped`, nobody wants
    an answer any more to what came up to `on`.
    """

    session_key: str
    on: int
    file: int = 0
    state: Literal["begun", "done", "failed", "stopped"]
    tries: int = 0
    text: str = ""
    error: str = ""
    person: str = ""  # who said it, as `telegram:1002`
    authors: tuple[str, ...] = ()  # the restricted hooks that put words into it


class VoiceAnswer(JournalRecord, tag="voice", frozen=True, kw_only=True):
    """What becomes of an answer that is to be spoken, by the `reply` that had arrived; the last one of a reply counts.

    Its text are the words that are spoken. `begun` stands before each try, of which there are so many (`tries`) by
    then; the audio is written to `path`, with an end that says its kind.
    """

    session_key: str
    reply: Reply
    turn_id: str = ""
    state: Literal["owed", "begun", "done", "failed"] = "owed"
    tries: int = 0
    path: str = ""
    error: str = ""
    person: str = ""  # whom it answers, as `telegram:1002`
    cause: tuple[str, int] | None = None


class HeardMessage(JournalRecord, tag="heard", frozen=True, kw_only=True):
    """What somebody said to others in a quiet chat: remembered there for a while, under the chat's name (`place`); or
    told to a conversation with a message of it that came later (`before`: that one's id)."""

    message: Message
    place: str = ""
    session_key: str = ""
    before: str = ""


class HeardRemoval(JournalRecord, tag="unheard", frozen=True, kw_only=True):
    """What stood under these sequences is remembered there no more: somebody took it back, or is to be forgotten."""

    place: str
    removed: tuple[int, ...]
