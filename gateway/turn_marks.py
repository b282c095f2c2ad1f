"""The marks of turns: a file that names the turn whose code runs at this instant, and outlives the process.

A turn may kill the process: by memory, or by a fault in a library written in C. The next process must know which one it
was, since dozens of others were under way beside it and did nothing wrong. So a turn's mark is set before each step of
its code on the event loop and removed after it, in one place: the loop runs one step at a time, so at most one turn is
marked, and a turn that only waits (for a model, a tool of another process, its slot) never is.

Work that a step hands to a thread runs on while the loop is elsewhere. A turn that was cut off several times, though it
was never found marked, is therefore doubted (`is_doubted`): its mark is in a place of its own through the whole call of
a tool, waiting included.

A mark that the process before this one has left stays in such a place until the turn's claim has counted this death:
otherwise a second turn that kills could end this process first, and the death of the first one would never count.

The last place of the file holds the last time at which tools that may change files were at work: if one of them ended
the process, its changes to files are no person's doing.

A mark is a few bytes written into the page cache: it survives the end of the process, and need not survive that of the
machine, which no turn brings about. After a start of the machine the file is void. (The file is not mapped into memory:
if a full disk has no room for a changed page, as with btrfs, that would kill the process.)
"""

import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import Any, Generic, TypeVar, TypeVarTuple

import msgspec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
WIDTH = 48  # bytes that a mark takes in the file; the first mark is the id of the machine's start
STEP_PLACE = 1
HELD_PLACES = range(2, 34)
TOOLS_PLACE = HELD_PLACES.stop
BLANK = b" " * WIDTH
AFTERMATH = 3.0  # seconds after a tool's end in which a change of a file may be its doing
CLOCK_STEP = 0.05  # seconds by which the times of files lag behind
MOST_REMEMBERED = 4096  # calls of tools

log = logging.getLogger(__name__)

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


class ToolTimes:
    """The times at which tools that may change files were at work: a file's own times do not name its writer."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._running: list[tuple[float, float]] = []  # when each began: by the clock, and by what is never set
        self._past: deque[tuple[float, float]] = deque(maxlen=MOST_REMEMBERED)
        self.on_end: Callable[[], object] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note that a tool is at work inside."""
        began = self._clock(), monotonic()
        self._running.append(began)
        try:
            yield
        finally:
            self._running.remove(began)
            self._past.append(self._span_since(*began))
            if self.on_end:
                self.on_end()

    @property
    def last(self) -> tuple[float, float]:
        """The last beginning and end of the tools' work."""
        return (min(began for began, _ in self._running), inf) if self._running else self._past[-1]

    def remember(self, began: float, ended: float) -> None:
        """Remember when tools were at work in the process before this one."""
        self._past.append((began, min(ended, self._clock())))

    def may_have_changed(self, at: float) -> bool:
        """Tell if a tool may have made a change of this time."""
        running = ((self._span_since(*began)[0], at) for began in self._running)
        return any(began - CLOCK_STEP <= at < ended + AFTERMATH for began, ended in (*self._past, *running))

    def _span_since(self, began: float, began_steady: float) -> tuple[float, float]:
        """Return the beginning and end by the clock, as it was set before and after, if it was set meanwhile."""
        now, lasted = self._clock(), monotonic() - began_steady
        return min(began, now - lasted), max(now, began + lasted)


class TurnMarks:
    """The marks of one process, in a file of its home; without a file no turn is ever found guilty.

    `cut_off`: the turns whose mark was set when the process before this one died, each until it is claimed again.
    """

    def __init__(self, path: Path | None = None, tools: ToolTimes | None = None) -> None:
        self.tools = tools or ToolTimes()
        self.cut_off: set[str] = set()
        self._path = path
        self._file = -1
        self._held: dict[int, str] = {}
        self._stepping = BLANK

    def open(self) -> None:
        """Read the marks of the process before this one, and clear the file. Without the file all else goes on."""
        if self._path is None:
            return
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            left = os.pread(self._file, WIDTH * (TOOLS_PLACE + 1), 0)
            boot, *marks = [left[at : at + WIDTH].strip() for at in range(0, len(left), WIDTH)] or [b""]
            if boot == (now := read_boot_id()):
                self.cut_off.update(mark.decode("ascii", "replace") for mark in marks[: TOOLS_PLACE - 1] if mark)
                with suppress(ValueError):  # an empty place
                    began, ended = map(float, b" ".join(marks[TOOLS_PLACE - 1 :]).split())
                    self.tools.remember(began, ended)
            self._held = dict(zip(HELD_PLACES, self.cut_off, strict=False))
            held = b"".join(_encode(self._held.get(place, "")) for place in HELD_PLACES)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, now.ljust(WIDTH) + BLANK + held, 0)
        except OSError as error:
            log.warning("a turn that kills the gateway will not be found out: %s: %s", self._path, error.strerror)

    def close(self) -> None:
        if self._file >= 0:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1

    def forget(self, turn_id: str) -> None:
        """Remove the marks that the process before this one left of the turn, whose death is recorded now."""
        self.cut_off.discard(turn_id)
        for place in [place for place, held in self._held.items() if held == turn_id]:
            del self._held[place]
            self._write(place, BLANK)

    @contextmanager
    def use(self, turn_id: str, *, is_doubted: bool = False) -> Iterator[None]:
        """Run code for this turn inside, with every task that it starts through `watch_steps`."""
        token = _current.set(TurnMark(self, turn_id, is_doubted))
        try:
            yield
        finally:
            _current.reset(token)

    def put(self, mark: bytes) -> bytes:
        """Set the mark of the step that runs from now on; returns the mark before it."""
        before, self._stepping = self._stepping, mark
        if mark != before:
            self._write(STEP_PLACE, mark)
        return before

    @contextmanager
    def hold(self, turn_id: str) -> Iterator[None]:
        """Keep the mark set inside, whatever else runs meanwhile."""
        place = next((place for place in HELD_PLACES if place not in self._held), None)
        if place is None:
            yield
            return
        self._held[place] = turn_id
        self._write(place, _encode(turn_id))
        try:
            yield
        finally:
            del self._held[place]
            self._write(place, BLANK)

    @contextmanager
    def changing_files(self) -> Iterator[None]:
        """Note that a tool that may change files is at work inside; the next process knows it, if this one dies."""
        try:
            with self.tools.running():
                self._mark_tools()
                yield
        finally:
            self._mark_tools()

    def _mark_tools(self) -> None:
        began, ended = self.tools.last
        self._write(TOOLS_PLACE, f"{began:.3f} {ended:.3f}".encode().ljust(WIDTH))

    def _write(self, place: int, mark: bytes) -> None:
        if self._file >= 0:
            with suppress(OSError):  # no room: then no turn is marked, which wrongs none
                os.pwrite(self._file, mark, place * WIDTH)


class TurnMark(msgspec.Struct, frozen=True):
    """The mark of the turn in whose name code runs."""

    marks: TurnMarks
    turn_id: str
    is_doubted: bool


_current: ContextVar[TurnMark | None] = ContextVar("turn_mark", default=None)


async def watch_steps(function: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT) -> T:
    """Await this, with the turn's mark up while its code runs. Each task of a turn begins with it."""
    mark = _current.get()
    if mark is None:
        return await function(*args)
    return await _MarkedSteps(_await(function, *args), mark.marks, _encode(mark.turn_id))


@contextmanager
def keep_mark(*, changes_files: bool = False) -> Iterator[None]:
    """Keep the mark of a doubted turn set inside, since its work may run in threads."""
    mark = _current.get()
    with ExitStack() as held:
        if mark and mark.is_doubted:
            held.enter_context(mark.marks.hold(mark.turn_id))
        if mark and changes_files:
            held.enter_context(mark.marks.changing_files())
        yield


@dataclass(frozen=True, slots=True)
class _MarkedSteps(Generic[T]):
    """A coroutine whose every step, from one wait to the next, is marked."""

    coroutine: Coroutine[Any, Any, T]
    marks: TurnMarks
    mark: bytes

    def __await__(self) -> Generator[Any, Any, T]:
        value, error = None, None
        while True:
            before = self.marks.put(self.mark)
            try:
                waits_for = self.coroutine.send(value) if error is None else self.coroutine.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # what the coroutine returned
            finally:
                self.marks.put(before)
            value, error = None, None
            try:
                value = yield waits_for
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is for the coroutine
                error = thrown


async def _await(function: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT) -> T:
    return await function(*args)


def _encode(turn_id: str) -> bytes:
    return turn_id.encode("ascii", "replace")[:WIDTH].ljust(WIDTH)


def read_boot_id() -> bytes:
    """Return the kernel's id of this start of the machine."""
    try:
        return BOOT_ID.read_bytes().strip()[:WIDTH]
    except OSError:
        return b"?"
