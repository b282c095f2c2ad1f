"""The two clocks of a journal: the wall's, which people set, and the steady one, which only goes forward."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """`wall` stamps records and ends their time to live; everything that waits goes by `steady`."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
