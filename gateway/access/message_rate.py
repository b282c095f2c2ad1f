"""The rate limit on each person's messages, wherever they write.

A message counts at the time it was sent, if its network gives that time: a backlog of hours is no flood when it is read
at once. A message beyond the limit may wait until the previous minute has room.
"""

import math
import time
from bisect import bisect_right, insort
from collections.abc import Callable

import msgspec

from gateway.messages.message import Message

MINUTE = 60.0
MOST_PEOPLE = 10_000  # people whose rates are remembered before silent ones are dropped


class Pace(msgspec.Struct):
    """The times of a person's messages in the last minute, sent or planned, and of their last warning."""

    due: list[float] = msgspec.field(default_factory=list)
    warned: float = -math.inf

    @property
    def last(self) -> float:
        return max(self.warned, self.due[-1] if self.due else -math.inf)


class MessageRate(msgspec.Struct, eq=False):
    """Counts the messages of each person in each minute, by a steady clock: it does not follow a wall clock."""

    _clock: Callable[[], float] = time.monotonic
    _paces: dict[tuple[str, str], Pace] = {}

    def take(self, message: Message, most: int, *, age: float = 0.0, waiting: int = 0) -> float | None:
        """Count this message, sent `age` seconds ago; return the seconds until it is due.

        None: it does not count, because it exceeds the limit and too many of its sender's messages wait already.
        """
        now = self._clock()
        if len(self._paces) > MOST_PEOPLE:
            self._paces = {person: pace for person, pace in self._paces.items() if pace.last > now - MINUTE}
        due, at = self._pace_of(message).due, now - max(0.0, age)
        del due[: bisect_right(due, at - MINUTE)]
        at = find_room(due, at, most)
        if at > now and len(due) - bisect_right(due, now) >= waiting:
            return None
        insort(due, at)
        return max(0.0, at - now)

    def is_warning_due(self, message: Message) -> bool:
        """Return True if this person should be warned now: once a minute."""
        pace, now = self._pace_of(message), self._clock()
        if now - pace.warned <= MINUTE:
            return False
        pace.warned = now
        return True

    def _pace_of(self, message: Message) -> Pace:
        return self._paces.setdefault((message.address.platform, message.user_id), Pace())


def find_room(due: list[float], at: float, most: int) -> float:
    """Return the time itself if every minute around it has room; otherwise the first one after all due messages."""
    place = bisect_right(due, at)
    near = [*due[:place], at, *due[place:]]
    first, last = max(0, place - most), min(place, len(due) - most)
    if all(near[one + most] - near[one] >= MINUTE for one in range(first, last + 1)):
        return at
    return max(due[-1], due[-most] + MINUTE) if most else math.inf
