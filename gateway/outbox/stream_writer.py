"""The end of a stream that whoever writes an answer has: what it has become so far is told live to the node that serves
its network, be that this one or another.

Nothing of it is kept. So each piece says where it goes on, and the whole is told anew every few seconds, also when
nothing has come: whoever comes in the middle, or has missed something, shows nothing new until then, and a writer that
is not heard for long is gone.
"""

import logging

import anyio
import msgspec

from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.messages.message import Reply
from gateway.records import subjects

REPEAT = 5.0  # seconds after which the whole is told anew
LONGEST = 100_000  # characters that are told: no chat shows more of an answer that grows

log = logging.getLogger(__name__)


class StreamPiece(msgspec.Struct, frozen=True):
    """A piece of a reply, which has no text itself: it stands behind the first `at` characters, with 0 it is all.

    claimed: the sequence of the claim under which it is written; of two claims on a turn the later one counts.
    """

    reply: Reply
    claimed: int
    at: int = 0
    text: str = ""
    is_over: bool = False


class StreamWriter:
    """Made by `Outbox.stream`. What cannot be told is not shown while it grows, and harms nothing."""

    def __init__(self, engine: Engine, reply: Reply, claimed: int) -> None:
        self.reply = reply
        self._engine = engine
        self._claimed = claimed
        self._subject = subjects.stream_subject_of(reply.address.served_as)
        self._text = ""
        self._is_begun = False
        self._repeat_at = 0.0

    async def add(self, text: str, *, anew: bool = False) -> None:
        """Go on with this text, or begin `anew` with it."""
        at = 0 if anew else len(self._text)
        self._text = self._text[:at] + text
        self._is_begun = True
        if not at or anyio.current_time() >= self._repeat_at:
            await self.repeat()
        elif len(self._text) <= LONGEST:
            await self._tell(StreamPiece(self.reply, self._claimed, at, text))

    async def repeat(self) -> None:
        """Tell the whole, if there is anything."""
        self._repeat_at = anyio.current_time() + REPEAT
        if self._is_begun:
            await self._tell(StreamPiece(self.reply, self._claimed, text=self._text[:LONGEST]))

    async def rest(self) -> None:
        """Nothing more is written. Where no delivery ends it soon, what is shown is ended as it stands."""
        if self._is_begun:
            await self._tell(StreamPiece(self.reply, self._claimed, is_over=True))

    async def _tell(self, piece: StreamPiece) -> None:
        try:
            await self._engine.publish(self._subject, msgspec.json.encode(piece))
        except EngineError as error:
            log.info("a piece of reply %s is not told: %s", self.reply.id, error)


def decode_piece(data: bytes) -> StreamPiece:
    return msgspec.json.decode(data, type=StreamPiece)
