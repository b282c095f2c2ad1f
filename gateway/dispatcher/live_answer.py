"""The live display of an answer while the model writes. No model waits for the display; it combines fast pieces.

This module stores no text: `ShownAnswer` has the text that the chat displays, and the turn has the answer so far. If a
hook may still change the model's text, the chat displays none of the text before that hook has run.
"""

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import NamedTuple, TypeAlias

import anyio
import anyio.abc
import msgspec

from gateway.dispatcher.tool_progress import ShownAnswer
from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.files.lines import FileLineFilter
from gateway.hooks import HookRegistry
from gateway.messages.message import Reply
from gateway.outbox.stream_writer import REPEAT
from gateway.records import subjects
from gateway.sessions.session import OpenTurn
from gateway.turn_marks import watch_steps

PAUSE = 0.02  # pieces within this time are sent as one
PIECE = "llm:chunk"
# Events at which a whole answer may still change.
AFTER_ALL = ("node:after", "handoff:after", "agent:end")
AFTER_WRITING = ("llm:after", "message:add", *AFTER_ALL)
BEFORE_SENDING = ("message:sending",)


class ToolLine(NamedTuple):
    """A line about the tools, displayed after the text so far."""

    text: str


LiveEntry: TypeAlias = str | ToolLine | Reply | None
"""A text, the line of the tools, or the next reply; None: the text so far is void."""


class LivePiece(NamedTuple):
    """The entries that came in one pause.

    They count in this order: `is_void` (the text displayed so far is not the answer), `text`, `line`, and `next`, the
    reply to which all later entries belong.
    """

    text: str
    is_void: bool
    line: str | None
    next: Reply | None = None


def can_change(registry: HookRegistry, names: tuple[str, ...]) -> bool:
    """Return True if a hook may change the answer at these events.

    A hook that also intercepts each chunk does not count: that hook has changed the answer there.
    """
    able = {hook.key for hook in registry.at(*names) if hook.intercepts and hook.traits.rewords}
    return bool(able) and not able <= {hook.key for hook in registry.at(PIECE) if hook.intercepts}


class LiveAnswer(msgspec.Struct, eq=False):
    """Publishes one turn's text, and displays the text in the chat as `answer`, by the node that serves the network.

    `delta` does not await, so that no watcher can slow the model down; if `is_held`, `delta` publishes nothing.
    """

    _engine: Engine
    _session_key: str
    _turn: OpenTurn
    _tasks: anyio.abc.TaskGroup
    _answer: ShownAnswer | None = None
    is_held: bool = False
    _count: int = 0
    _lines: FileLineFilter = msgspec.field(default_factory=FileLineFilter)
    _waiting: deque[LiveEntry] = msgspec.field(default_factory=deque)
    _news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    _lock: anyio.Lock = msgspec.field(default_factory=partial(anyio.Lock, fast_acquire=True))
    _is_begun: bool = False
    _is_over: bool = False

    def delta(self, text: str) -> None:
        if not self.is_held:
            self._put(text)

    def show_line(self, line: str) -> None:
        self._put(ToolLine(line))

    def begin_part(self, reply: Reply) -> None:
        """Close the current part; the text that follows belongs to `reply`."""
        self._put(reply)

    def discard(self) -> None:
        """Discard the streamed text of the current answer."""
        self._put(None)

    def _put(self, entry: LiveEntry) -> None:
        self._waiting.append(entry)
        self._news.set()
        if not self._is_begun:
            self._is_begun = True
            self._tasks.start_soon(watch_steps, self._publish)

    async def __aenter__(self) -> "LiveAnswer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._is_over = True
        self._news.set()
        if kind is None and self._answer is None:  # in our own chats the reply arrives with the end of its turn
            await self._publish_waiting()

    async def _publish(self) -> None:
        while self._waiting or not self._is_over:
            if self._waiting:
                await self._publish_waiting()
                if not self._is_over:  # at the end, all entries are here already
                    await anyio.sleep(PAUSE)
                continue
            self._news.clear()
            if self._answer is None:
                await self._news.wait()
                continue
            with anyio.move_on_after(REPEAT) as pause:
                await self._news.wait()
            if pause.cancelled_caught:  # no text has come for a while, and the model still writes
                await self._answer.repeat()
        if self._answer:
            await self._answer.rest()

    async def _publish_waiting(self) -> None:
        async with self._lock:  # the end waits for the piece in progress
            if self._waiting:
                await self._publish_piece(self._gather())

    def _gather(self) -> LivePiece:
        pieces, is_void, line = list[str](), False, None
        while self._waiting:
            one = self._waiting.popleft()
            if isinstance(one, Reply):
                return LivePiece("".join(pieces), is_void, line, one)
            if isinstance(one, ToolLine):
                line = one.text
            elif one is None:
                pieces, is_void = [], True
            else:
                pieces.append(one)
                line = None
        return LivePiece("".join(pieces), is_void, line)

    async def _publish_piece(self, piece: LivePiece) -> None:
        if piece.is_void:
            self._lines = FileLineFilter()
        text = self._lines.feed(piece.text)
        if text or piece.is_void:
            if self._answer:
                await self._answer.add(text, anew=piece.is_void)
            await self._tell(text=text, void=piece.is_void)
        if not self._answer and piece.line is not None:
            await self._tell(text="", tools=piece.line)
        if self._answer and piece.line is not None:
            await self._answer.show_line(piece.line)
        if self._answer and piece.next:
            await self._answer.begin_part(piece.next)

    async def _tell(self, **what: object) -> None:
        self._count += 1
        place = (self._turn.claimed, self._count)  # the place only rises: a turn that continues has another claim
        with suppress(EngineError):  # no one listens now; the answer itself is in the journal
            delta = {"turn_id": self._turn.turn_id, "place": place, **what}
            await self._engine.publish(subjects.delta_subject_of(self._session_key), msgspec.json.encode(delta))
