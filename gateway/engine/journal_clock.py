"""The clock by which journal records expire: it runs steadily, even if the wall clock is set.

This clock shows the time of the wall clock as long as the wall clock is not set. It counts by the kernel's clock of
seconds since boot, asleep or awake, which continues from one process to the next. No clock counts across a reboot.
After a reboot this clock continues where it was, and catches up when a chat network sends its time with a message
(`learn`), as far as the wall clock and the network agree: neither of the two alone can expire a record. So this clock
may be late, but never early.

Time that passed while the journal was closed counts only an hour after the opening, so that waiting work is handled
first. If the wall clock was set by more than an hour, the log says so, and no record expires for a day (`is_held`): the
person who sets the clock may not be done yet. For the same reason, nothing becomes due by a forward jump of the wall
clock until something confirms the jump (`find_unconfirmed_jump`): the time of a chat network, the kernel's word that a
time server keeps the clock, or ten minutes.

Use this clock for age alone, and the wall clock for a time of day. `stamp` returns a time that people see and by which
a record also expires.
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
SHORT = 2 * HOUR  # a pause that short between two processes needs no extra time before records expire
GRACE = HOUR  # after a longer pause, the time before records expire, to handle the waiting work first
FIRST_GRACE = DAY  # after an older version, which set an expiry even on unanswered messages
CONFIRMED_AFTER = 600.0  # seconds after which a clock that was set forward is believed
LONGEST_OFF = 60 * DAY  # a host that seems to have been off for longer may have a wrong clock
NOTEWORTHY = 60.0
TIME_ERROR, TIMEX_SIZE = 5, 512  # no time server keeps the clock; more than `struct timex` has on any machine

log = logging.getLogger(__name__)


# Seconds since the host was booted, asleep or awake.
read_machine_time = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def _is_synchronised() -> bool:
    """Ask the kernel, which says no once the clock was set by hand. False if the kernel cannot answer."""
    import ctypes  # noqa: PLC0415 - only a clock that was set needs it

    try:
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_SIZE))  # zeros: it changes nothing
    except (OSError, AttributeError):
        return False
    return 0 <= state < TIME_ERROR


class Clock(msgspec.Struct, frozen=True):
    """The source clocks: `wall` can be set, `steady` is for waiting, and `machine` counts from the boot `boot`."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    machine: Callable[[], float] = read_machine_time
    boot: int = msgspec.field(default_factory=lambda: zlib.crc32(read_boot_id()))
    is_synchronised: Callable[[], bool] = _is_synchronised  # whether a time server keeps the wall clock


class ClockState(msgspec.Struct, frozen=True):
    """The readings of all clocks at one moment, and `held_until`, the time until which no record may expire.

    `jump` are the seconds by which the wall clock was set forward at `jumped_at`; 0 if that is confirmed.
    """

    now: float
    wall: float
    machine: float
    boot: float
    held_until: float = 0.0
    jump: float = 0.0
    jumped_at: float = 0.0
    unsure: float = 0.0  # 1 after a reboot, until a chat network has sent the time


class JournalClock:
    """The clock of one journal. It is thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._state = ClockState(clock.wall(), clock.wall(), clock.machine(), clock.boot)
        self._missed = 0.0  # seconds that passed while the journal was closed and do not count yet
        self._learned = 0.0
        self._grace_until = 0.0
        self.is_changed = False  # True if the state has changed by more than the passing of time, and must be saved

    def read(self) -> float:
        """Return the time by which records expire."""
        state = self._state
        passed = self._clock.machine() - state.machine
        return state.now + passed if passed > 0 else state.now

    def latest(self) -> float:
        """Return the latest time that is known, including time that `read` does not count yet."""
        now = self.read() + self._missed
        return now if self._learned <= now else max(now, min(self._learned, self._clock.wall()))

    def latest_possible(self) -> float:
        """Return the latest possible time, for grants that must not last too long, such as a permission."""
        return max(self.latest(), self._clock.wall()) if self._state.unsure else self.latest()

    def calculate_difference(self) -> float:
        """Return by how many seconds the wall clock is ahead of this clock; 0 if the difference is small or unknown.

        After a reboot the difference is unknown until a chat network has sent its time.
        """
        ahead = self._clock.wall() - self.latest()
        if abs(ahead) <= NOTEWORTHY:
            return 0.0
        is_set = abs(self._calculate_jump()) > HOUR or self.is_held
        return 0.0 if self._state.unsure and not is_set else ahead

    def calculate_stamp_difference(self) -> float:
        """Return by how many seconds `stamp` is ahead of `latest`, for instance after the wall clock was set back."""
        difference = self.calculate_difference()
        ahead = difference + self.stamp() - self._clock.wall() if difference else 0.0
        return ahead if abs(ahead) > NOTEWORTHY else 0.0

    def stamp(self) -> float:
        """Return the time for values that people see and that also expire: never earlier than `read`."""
        return max(self._clock.wall(), self.read())

    def find_unconfirmed_jump(self) -> float:
        """Return by how many seconds the wall clock was set forward, as long as nothing has confirmed its time."""
        self.look()
        if self._state.jump and self._is_confirmed():
            log.info("the time that the clock was set to is confirmed")
            with self._lock:
                self._state = replace(self._state, jump=0.0)
                self.is_changed = True
        return self._state.jump

    @property
    def is_held(self) -> bool:
        """True while no record may expire."""
        return self.read() < self._state.held_until

    def get_state(self) -> ClockState:
        """Return the current state, for the caller to save."""
        with self._lock:
            self.is_changed = False
            return self._move_on()

    def resume(self, before: ClockState | None, newest: float | None) -> None:
        """Continue from a saved state, or from the time of the newest record (None: the journal is empty)."""
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
        """Hold expiry if the wall clock was set, and count the time while the journal was closed after its grace."""
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
        """Take the time of a message from a chat network: the true time is not earlier."""
        self._learned = max(self._learned, network_time)
        if self._state.unsure:
            with self._lock:
                self._state = replace(self._state, unsure=0.0)
                self.is_changed = True

    def _is_confirmed(self) -> bool:
        if self.read() - self._state.jumped_at >= CONFIRMED_AFTER or self._clock.is_synchronised():
            return True
        return self._learned >= self._clock.wall() - HOUR

    def _calculate_jump(self) -> float:
        """Return by how many seconds the wall clock was set, or may have been set, since the last check."""
        return self._clock.wall() - self._state.wall - (self._clock.machine() - self._state.machine)

    def _hold(self, ahead: float) -> None:
        way = "forward" if ahead > 0 else "back"
        log.warning("the clock was set %s by %.0f s; nothing is removed for its age for a day", way, abs(ahead))
        now, jump = self._state.now, self._state.jump + ahead
        jumped = {"jump": jump if jump > HOUR else 0.0, "jumped_at": now}
        self._state = replace(self._state, held_until=now + DAY, **jumped)
        self.is_changed = True

    def _move_on(self) -> ClockState:
        """Return the state with the current readings of all clocks."""
        return replace(self._state, now=self.read(), wall=self._clock.wall(), machine=self._clock.machine())
