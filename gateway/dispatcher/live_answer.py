"""An answer on its way while the model writes it: live only, never waited for, gathered where it comes too fast.

It keeps no text: what the chat shows is kept by the outbox's `Stream`, the present answer by the turn itself. Where a
hook may still change what the model has written, nothing of it is shown before that hook has had its say.
"""

import math
from types import TracebackType

import anyio
import anyio.abc
import msgspec

from gateway import record_subjects
from gateway.engine import Engine
from gateway.file_lines import FileLineFilter
from gateway.hooks import HookRegistry
from gateway.outbox import Stream
from gateway.turn_marks import watch_steps

PAUSE = 0.02  # what comes within it goes out as one piece
PIECE = "llm:chunk"
# Where a whole answer may still be changed.
AFTER_WRITING = ("llm:after", "node:after", "handoff:after", "message:add", "agent:end")
BEFORE_SENDING = ("message:sending",)


def can_change(registry: HookRegistry, names: tuple[str, ...]) -> bool:
    """Whether a hook may change the answer at one of these events. Who intercepts each piece has had its say there."""
    heard = {hook.key for hook in registry.at(PIECE) if hook.intercepts}
    return any(
        hook.intercepts and hook.rewords and hook.key not in heard for name in names for hook in registry.at(name)
    )


class LiveAnswer:
    """Publishes one turn's text, and shows it in the chat by `stream` where the network can edit what was sent.

    `delta` is plain, so that no watcher can slow the model down; of an answer that `is_held` it shows nothing.
    """

    def __init__(
        self,
        engine: Engine,
        session_key: str,
        turn_id: str,
        tasks: anyio.abc.TaskGroup,
        stream: Stream | None = None,
        *,
        is_held: bool = False,
    ) -> None:
        self._is_held = is_held
        self._stream = stream
        self._engine = engine
        self._subject = record_subjects.delta_subject_of(session_key)
        self._turn_id = turn_id
        self._lines = FileLineFilter()
        self._tasks = tasks
        self._send, self._receive = anyio.create_memory_object_stream[str | None](math.inf)

    def delta(self, text: str) -> None:
        if not self._is_held:
            self._send.send_nowait(text)

    def discard(self) -> None:
        """What was streamed of the present answer is void."""
        self._send.send_nowait(None)

    async def __aenter__(self) -> "LiveAnswer":
        self._tasks.start_soon(watch_steps, self._publish)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._send.close()

    async def _publish(self) -> None:
        with self._receive:
            async for text in self._receive:
                await self._publish_piece(*self._gather(text))
                await anyio.sleep(PAUSE)
        if self._stream:
            self._stream.rest()

    def _gather(self, first: str | None) -> tuple[str, bool]:
        pieces, is_void = [first or ""], first is None
        while self._receive.statistics().current_buffer_used:
            text = self._receive.receive_nowait()
            if text is None:
                pieces, is_void = [], True
            else:
                pieces.append(text)
        return "".join(pieces), is_void

    async def _publish_piece(self, text: str, is_void: bool) -> None:
        if is_void:
            self._lines = FileLineFilter()
        text = self._lines.feed(text)
        if not text and not is_void:
            return
        if self._stream:
            self._stream.add(text, anew=is_void)
        delta = {"turn_id": self._turn_id, "text": text} | ({"void": True} if is_void else {})
        await self._engine.publish(self._subject, msgspec.json.encode(delta))
