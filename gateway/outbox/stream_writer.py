"""The writer's end of a stream: it sends the growing answer live to the node that serves its network.

Nothing is stored. So each piece has its position, and the whole is sent again every few seconds, even without new text:
a reader that joins late, or has missed a piece, displays nothing new until then, and a writer that is silent for long
has gone.
"""

import logging

import anyio
import msgspec

from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.messages.message import Reply
from gateway.records import subjects

REPEAT = 5.0  # seconds after which the whole is sent again
LONGEST = 100_000  # characters that are sent: no chat displays more of a growing answer

log = logging.getLogger(__name__)


class StreamPiece(msgspec.Struct, frozen=True):
    """A piece of a reply: its text follows the first `at` characters; with 0 it is the whole.

    claimed: the sequence of the claim under which it is written; of two claims on a turn the later one counts.
    """

    reply: Reply
    claimed: int
    at: int = 0
    text: str = ""
    is_over: bool = False


class StreamWriter:
    """The writer, from `Outbox.stream`. A piece that cannot be sent is not displayed early, which does no harm."""

    def __init__(self, engine: Engine, reply: Reply, claimed: int) -> None:
        self.reply = reply
        self._engine = engine
        self._claimed = claimed
        self._subject = subjects.stream_subject_of(reply.address.served_as)
        self._text = ""
        self._is_begun = False
        self._repeat_at = 0.0

    async def add(self, text: str, *, anew: bool = False) -> None:
        """Append this text, or start `anew` with it."""
        at = 0 if anew else len(self._text)
        self._text = self._text[:at] + text
        self._is_begun = True
        if not at or anyio.current_time() >= self._repeat_at:
            await self.repeat()
        elif len(self._text) <= LONGEST:
            await self._tell(StreamPiece(self.reply, self._claimed, at, text))

    async def repeat(self) -> None:
        """Send the whole text, if there is any."""
        self._repeat_at = anyio.current_time() + REPEAT
        if self._is_begun:
            await self._tell(StreamPiece(self.reply, self._claimed, text=self._text[:LONGEST]))

    async def rest(self) -> None:
        """Announce the end of the text. If no delivery follows soon, what is displayed is ended as it is."""
        if self._is_begun:
            await self._tell(StreamPiece(self.reply, self._claimed, is_over=True))

    async def _tell(self, piece: StreamPiece) -> None:
        try:
            await self._engine.publish(self._subject, msgspec.json.encode(piece))
        except EngineError as error:
            log.info("a piece of reply %s is not told: %s", self.reply.id, error)


def decode_piece(data: bytes) -> StreamPiece:
    return msgspec.json.decode(data, type=StreamPiece)
