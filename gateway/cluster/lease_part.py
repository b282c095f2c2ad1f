"""A part that runs on one node at a time: the one with its lease. On the others it is on standby.

It keeps the lease while it is paused, and while it restarts after a fault. If it has not worked for a while and another
node waits for it, that node may try.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.lowlevel

from gateway.daemon.parts import Part, ServeFunction

if TYPE_CHECKING:
    from gateway.cluster.nodes import SharedNodes

ILL_SECONDS = 60.0  # after that another node may try


class LeasePart(Part):
    """A part with a lease named `key`, which parts may share. `rest` gets the reason for each standby.

    `prepare` does slow work in advance, so that the part works as soon as it has the lease.
    """

    def __init__(
        self,
        name: str,
        serve: ServeFunction,
        nodes: "SharedNodes",
        key: str,
        rest: Callable[[str], None] = lambda _why: None,
        prepare: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        super().__init__(name, self._serve_alone)
        self._rest, self._prepare = rest, prepare
        self._work = serve
        self._nodes = nodes
        self._key = key
        self.patience = ILL_SECONDS
        self._ill_since: float | None = None

    def up(self, detail: str = "") -> None:
        self._ill_since = None
        self._nodes.note_well(self._key)
        super().up(detail)

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._nodes.release(self._key)

    async def _serve_alone(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        await self._prepare()
        while True:
            await self._nodes.take(self._key, self._note_holder)
            try:
                with self._nodes.working(self._key) as scope:
                    await self._work(task_status=task_status)
            except Exception:
                await self._leave_if_ill()
                raise
            if not scope.cancelled_caught:
                return
            await self._nodes.release(self._key)

    def _note_holder(self, holder: str) -> None:
        why = f"stands by: {holder} serves it" if holder else "waits until it is free"
        if (self.facts.state, self.facts.detail) != ("standby", why):
            self.stand_by(why)
            self._rest(why)

    async def _leave_if_ill(self) -> None:
        now = anyio.current_time()
        self._ill_since = self._ill_since or now
        if now - self._ill_since >= self.patience and self._nodes.is_wanted(self._key):
            self._ill_since = None
            await self._nodes.release(self._key, is_given=True)
