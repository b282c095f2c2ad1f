"""The clock by which what the journal holds grows old: it goes on as time passes, whatever the wall clock is set to.

Its time looks like that of the wall clock, and is that where nobody sets it. It goes by the kernel's clock, which
counts the seconds since the machine was started, asleep or awake, also from one process to the next: what the wall
clock does meanwhile changes nothing. Over a start of the machine nobody counts. Then it goes on where it was, and
catches up when a chat network tells its time with a message (`learn`): as far as wall clock and network agree, so
that neither alone makes anything old. So it may be behind the truth, but never before it.

What passed while nobody had the journal open is counted an hour after it was opened again: what waited for us is
taken up first. A wall clock that was set by over an hour is told of in the log, and nothing is removed for its age
for a day (`is_held`): who sets clocks may not be done yet.

All this is for age alone. Who means a time of day takes the wall clock; `stamp` is for what is shown and grows old
too.
"""

import logging
import time
import zlib
from collections.abc import Callable
from functools import partial
from threading import Lock

import msgspec
from msgspec.structs import replace

from gateway.turn_marks import read_boot_id

HOUR, DAY = 3600.0, 86400.0
SHORT = 2 * HOUR  # between two processes: nobody need be given time for what it made older
GRACE = HOUR  # after a longer one what waited for us is taken up first, before anything of it can be too old
FIRST_GRACE = DAY  # where an older version kept the journal, which gave a time even to what is not answered
LONGEST_OFF = 60 * DAY  # a machine that seems to have been off for longer has a clock that may be wrong
NOTEWORTHY = 60.0

log = logging.getLogger(__name__)


# Seconds since the machine was started, asleep or awake.
read_machine_time = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def _read_boot() -> int:
    return zlib.crc32(read_boot_id())


class Clock(msgspec.Struct, frozen=True):
    """What others say: `wall` can be set, `steady` is for waiting, `machine` counts since the start called `boot`."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    machine: Callable[[], float] = read_machine_time
    boot: int = msgspec.field(default_factory=_read_boot)


class ClockState(msgspec.Struct, frozen=True):
    """What the clock showed when the two others showed that, and until when nothing is removed for its age."""

    now: float
    wall: float
    machine: float
    boot: float
    held_until: float = 0.0
    unsure: float = 0.0  # 1: the machine was started since, and nobody has said how late it is


class JournalClock:
    """The clock of one journal. Any thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._state = ClockState(clock.wall(), clock.wall(), clock.machine(), clock.boot)
        self._missed = 0.0  # seconds that passed while nobody had the journal open, not counted yet
        self._learned = 0.0
        self._grace_until = 0.0
        self.is_changed = False  # by more than time: whoever keeps the state writes it down

    def read(self) -> float:
        """The time for what is removed when it is over."""
        state = self._state
        passed = self._clock.machine() - state.machine
        return state.now + passed if passed > 0 else state.now

    def latest(self) -> float:
        """As late as it is known to be, with all that `read` does not count yet."""
        now = self.read() + self._missed
        return now if self._learned <= now else max(now, min(self._learned, self._clock.wall()))

    def latest_possible(self) -> float:
        """As late as it may be, for what must not last too long, such as a permission."""
        return max(self.latest(), self._clock.wall()) if self._state.unsure else self.latest()

    def calculate_difference(self) -> float:
        """By how many seconds the wall clock is ahead of what is believed of it: all, but what was set lately.

        Where the machine was started since, and no network has told its time, nothing else is known.
        """
        ahead = self._clock.wall() - self.latest()
        if abs(ahead) <= NOTEWORTHY:
            return 0.0
        is_set = abs(self._calculate_jump()) > HOUR or self.is_held
        return 0.0 if self._state.unsure and not is_set else ahead

    def calculate_stamp_difference(self) -> float:
        """The same of `stamp`, which does not follow a clock that is set back."""
        difference = self.calculate_difference()
        ahead = difference + self.stamp() - self._clock.wall() if difference else 0.0
        return ahead if abs(ahead) > NOTEWORTHY else 0.0

    def stamp(self) -> float:
        """The time for what is shown to people and grows old as well: never before `read`."""
        return max(self._clock.wall(), self.read())

    @property
    def is_held(self) -> bool:
        """Asks whether nothing is to be removed for its age now."""
        return self.read() < self._state.held_until

    def get_state(self) -> ClockState:
        """Where it is now."""
        with self._lock:
            self.is_changed = False
            return self._move_on()

    def resume(self, before: ClockState | None, newest: float | None) -> None:
        """Go on where a journal was; without its state, from the time of its newest record (None: there is none)."""
        wall, machine, boot = self._clock.wall(), self._clock.machine(), self._clock.boot
        passed = machine - before.machine if before and before.boot == boot else -1.0
        if before is None:
            self._state = ClockState(wall if newest is None else min(wall, newest), wall, machine, boot)
            self._grace_until = self._state.now + (0.0 if newest is None else FIRST_GRACE)
        elif 0 <= passed <= SHORT:
            self._state = before
        else:
            self._missed = max(0.0, passed)
            ahead = wall - before.wall - self._missed
            unsure = 1.0 if passed < 0 else before.unsure
            self._state = replace(before, wall=wall, machine=machine, boot=boot, unsure=unsure)
            self._grace_until = before.now + GRACE
            if ahead < -HOUR or ahead > (HOUR if passed >= 0 else LONGEST_OFF):
                self._hold(ahead)
        self.look()

    def look(self) -> None:
        """See whether somebody has set the wall clock, and whether what was missed is to be counted now."""
        with self._lock:
            if abs(ahead := self._calculate_jump()) > HOUR:
                self._state = self._move_on()
                self._hold(ahead)
            now, latest = self.read(), self.latest()
            if now < latest - NOTEWORTHY and now >= self._grace_until:
                log.info("what is kept grew older by %.0f s, while the gateway was not there", latest - now)
                self._state, self._missed = replace(self._move_on(), now=latest), 0.0
                self.is_changed = True

    def learn(self, network_time: float) -> None:
        """A chat network says that it is this late, at least: its own time stood on a message."""
        self._learned = max(self._learned, network_time)
        if self._state.unsure:
            with self._lock:
                self._state = replace(self._state, unsure=0.0)
                self.is_changed = True

    def _calculate_jump(self) -> float:
        """By how much the wall clock was set since we last looked, or may have been."""
        return self._clock.wall() - self._state.wall - (self._clock.machine() - self._state.machine)

    def _hold(self, ahead: float) -> None:
        way = "forward" if ahead > 0 else "back"
        log.warning("the clock was set %s by %.0f s; nothing is removed for its age for a day", way, abs(ahead))
        self._state = replace(self._state, held_until=self._state.now + DAY)
        self.is_changed = True

    def _move_on(self) -> ClockState:
        """The state as it is at this moment."""
        return replace(self._state, now=self.read(), wall=self._clock.wall(), machine=self._clock.machine())
