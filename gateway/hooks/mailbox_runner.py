"""Where the mailboxes are emptied: from the moment it opens until it closes, which gives what is left a while."""

import logging
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway.hooks.mailbox import Mailbox

log = logging.getLogger("gateway.hooks")


class MailboxRunner:
    """The mailboxes of nested registries. It opens once; what is told earlier waits, what is told later is dropped."""

    def __init__(self) -> None:
        self._boxes: dict[Mailbox, None] = {}
        self._group: TaskGroup | None = None
        self._loop: AbstractEventLoop | None = None
        self._thread = 0
        self._context: Context | None = None
        self._is_closed = False

    def install(self, box: Mailbox) -> None:
        """One more mailbox to empty."""
        self._boxes[box] = None
        if self._is_closed:
            box.close()

    def remove(self, box: Mailbox) -> None:
        """Its observer is gone."""
        self._boxes.pop(box, None)

    def call(self, function: Callable[[], None]) -> None:
        """Have it called on the loop: at once when this is its thread, never when nothing is delivered here."""
        if self._group is None or self._loop is None:
            return
        if get_ident() == self._thread:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    def start(self, runner: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """A mailbox wants one more runner. It gets the context in which the room was opened, not that of who told."""
        assert self._group is not None
        assert self._context is not None
        self._context.run(partial(self._group.start_soon, runner, name=f"hook {name}"))

    async def settled(self) -> None:
        """Wait until all that was told has been delivered, and what the observers told on that occasion too."""
        while waiting := [box for box in tuple(self._boxes) if not box.is_quiet]:
            if self._group is None:
                raise RuntimeError("nothing is delivered: the registry is not open (`async with registry`)")
            await waiting[0].wait_until_quiet()

    @asynccontextmanager
    async def open(self, grace: float) -> AsyncIterator[None]:
        """Deliver. At the end, what is left has `grace` seconds."""
        if self._group or self._is_closed:
            raise RuntimeError("a registry opens once, the outermost one for all those within it")
        failure: BaseException | None = None
        async with anyio.create_task_group() as group:
            self._begin(group)
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised again below, as it came and not within a group
                failure = error
            with anyio.move_on_after(grace, shield=True):
                await self.settled()
            self._end()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _begin(self, group: TaskGroup) -> None:
        self._group, self._loop, self._thread = group, get_running_loop(), get_ident()
        self._context = copy_context()
        for box in tuple(self._boxes):
            for _ in range(len(box.queue)):
                box.wake_runner()

    def _end(self) -> None:
        self._group = None
        self._is_closed = True
        for box in tuple(self._boxes):
            if box.queue:
                box.hook.health.dropped += len(box.queue)
                log.warning("%s was not told of %d events: the time to stop was over", box.hook, len(box.queue))
            box.close()
