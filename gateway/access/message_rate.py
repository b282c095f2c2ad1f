"""How many messages a person may send a minute, whoever they are and wherever they write."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.messages import Message

MINUTE = 60.0
MOST_PEOPLE = 10_000  # whose pace is remembered before those who have been silent are forgotten


@dataclass(slots=True)
class Pace:
    """When somebody's messages of the last minute came, and when they were last told that there were too many."""

    came: deque[float] = field(default_factory=deque)
    warned: float = -math.inf

    @property
    def last(self) -> float:
        return max(self.warned, self.came[-1] if self.came else -math.inf)


class MessageRate:
    """Counts the messages of each person in the last minute, by a steady clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._paces: dict[tuple[str, str], Pace] = {}

    def take(self, message: Message, most: int) -> bool:
        """Counts this message; returns False, and counts nothing, when its sender has used up their minute."""
        now = self._clock()
        if len(self._paces) > MOST_PEOPLE:
            self._paces = {person: pace for person, pace in self._paces.items() if pace.last > now - MINUTE}
        came = self._pace_of(message).came
        while came and came[0] <= now - MINUTE:
            came.popleft()
        if len(came) >= most:
            return False
        came.append(now)
        return True

    def is_warning_due(self, message: Message) -> bool:
        """Returns True when somebody who is too fast should be told so: once a minute."""
        pace, now = self._pace_of(message), self._clock()
        if now - pace.warned <= MINUTE:
            return False
        pace.warned = now
        return True

    def _pace_of(self, message: Message) -> Pace:
        return self._paces.setdefault((message.address.platform, message.user_id), Pace())
