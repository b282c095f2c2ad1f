"""Records of audio: the words of people's audio, and answers to be spoken; also overheard messages of quiet chats.

`gateway.records.records` reads and writes them with all others.
"""

from typing import Literal

from gateway.messages.message import Message, Reply
from gateway.messages.steps import JournalRecord


class AudioTranscription(JournalRecord, tag="audio", frozen=True, kw_only=True):
    """The state of file number `file` of the message with the sequence `on`; the last record of a file counts.

    `begun` is written before each try; `tries` is its number. `stopped` means that the person wants no answer to
    messages up to `on`.
    """

    session_key: str
    on: int
    file: int = 0
    state: Literal["begun", "done", "failed", "stopped"]
    tries: int = 0
    text: str = ""
    error: str = ""
    person: str = ""  # the author, as `telegram:1002`
    authors: tuple[str, ...] = ()  # the restricted hooks that changed the words


class VoiceAnswer(JournalRecord, tag="voice", frozen=True, kw_only=True):
    """The state of an answer that is to be spoken, by the `reply` that had arrived; the last record of a reply counts.

    Its text is what is spoken. `begun` is written before each try; `tries` is its number. The audio is written to
    `path`, with the suffix of its format.
    """

    session_key: str
    reply: Reply
    turn_id: str = ""
    state: Literal["owed", "begun", "done", "failed"] = "owed"
    tries: int = 0
    path: str = ""
    error: str = ""
    person: str = ""  # the person it answers, as `telegram:1002`
    cause: tuple[str, int] | None = None


class HeardMessage(JournalRecord, tag="heard", frozen=True, kw_only=True):
    """An overheard message of a quiet chat: kept for a while under the chat's name (`place`), or copied to a session.

    The copy accompanies a later message of that conversation (`before` is its id).
    """

    message: Message
    place: str = ""
    session_key: str = ""
    before: str = ""


class HeardRemoval(JournalRecord, tag="unheard", frozen=True, kw_only=True):
    """Overheard messages that were removed: their author deleted them, or must be forgotten."""

    place: str
    removed: tuple[int, ...]
