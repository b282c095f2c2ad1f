"""A wake-up call for any number of sleepers, none of which is ever missed."""

import asyncio


class Signal:
    """Take hold of the bell that hangs there, look whether there is something to do, and if not wait for that bell.

    To ring it is to hang up a new one too. So what happens between the look and the wait wakes the sleeper at once.
    """

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def notify(self) -> None:
        rung, self.event = self.event, asyncio.Event()
        rung.set()
