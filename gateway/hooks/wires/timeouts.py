"""The steps after a call's time limit, each harder than the step before.

First, the task of the call is cancelled. Then a hook that blocks the loop writes its stacks, and is interrupted. At
last, a hook that resists is killed. A hook that handles cancellation well never sees the second step.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import anyio
import msgspec

from gateway.hooks.wires.codec import RpcMessage, encode_fields
from gateway.hooks.wires.peer import Peer
from gateway.hooks.wires.wire import HookFailed
from gateway.worker.protocol import BatchTerms, CallMeta

HELD_AFTER = 0.1  # seconds from the cancellation until the loop counts as blocked
DUMP_TIME = 0.03  # seconds to write the stacks
GRACE = 1.0  # seconds from the cancellation to the kill

_encode = msgspec.json.Encoder().encode


class CallHolder(Protocol):
    """The process that runs the call."""

    def dump(self) -> None: ...

    def free(self) -> None: ...

    def kill(self, reason: str) -> None: ...


class CallTimeout:
    """The time limit of a call; `spare` seconds pass before the limited part begins."""

    def __init__(self, holder: CallHolder, cancel: Callable[[], None], limit: float, spare: float = 0.0) -> None:
        self._holder = holder
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._timer = self._loop.call_later(limit + spare, self.begin)
        self._has_ended = False
        self.limit = limit
        self.why = ""
        self.is_abandoned = False
        self.is_alone = True  # no other call ran at the same time: processes started since are this call's

    @property
    def is_late(self) -> bool:
        return bool(self.why)

    @property
    def age(self) -> float:
        return self._loop.time() - self._begun

    def abandon(self) -> None:
        """Cancel the call, because its caller is gone. The answer may arrive at the same moment."""
        if not self.is_late and not self._has_ended:
            self.is_abandoned = True
            self.begin("was cancelled")

    def begin(self, why: str = "") -> None:
        """Start the steps, because the time is over."""
        if not self.is_late:
            self.why = why or f"was over its {self.limit:g} s"
            self._end = self._loop.time() + GRACE
            self._cancel()
            self._next(HELD_AFTER, self._dump)

    def end(self) -> None:
        self._has_ended = True
        self._timer.cancel()

    def _next(self, delay: float, step: Callable[[], None]) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(delay, step)

    def _dump(self) -> None:
        self._holder.dump()
        self._next(DUMP_TIME, self._free)

    def _free(self) -> None:
        """Interrupt the hook repeatedly: the first signal may come while the worker writes a message."""
        if self._loop.time() < self._end:
            self._holder.free()
            self._next(HELD_AFTER, self._free)
        else:
            self._holder.kill(f"{self.why} and did not let go")


class ActiveCalls(msgspec.Struct, eq=False):
    """The running calls of one peer.

    `late` makes the error of a call over its limit; `over` is called for each call that has ended.
    """

    _peer: Peer
    _holder: CallHolder
    _late: Callable[[str], HookFailed]
    _over: Callable[[CallTimeout], None]
    _running: dict[int, CallTimeout] = {}

    async def make(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> RpcMessage:
        """Make a call. Raises HookFailed if no answer comes, or comes too late."""
        call, answered = self._begin(name, encode_fields(fields), _encode(meta), timeout)
        try:
            message = await answered
        except asyncio.CancelledError:
            call.abandon()
            raise
        except HookFailed:
            if not call.is_late:
                raise
        if call.is_late:
            raise self._late(call.why)
        return message

    async def make_batch(
        self, batch: bytes, terms: BatchTerms, limit: float, note: Callable[[RpcMessage, CallTimeout], None]
    ) -> None:
        """Make one call with many events. `note` gets the answer, even after a cancellation.

        `limit` is the time for each event.

        Raises HookFailed if no answer comes.
        """
        call, answered = self._begin("$events", batch, _encode(terms), limit, terms.seconds)
        try:
            message = await asyncio.shield(answered)
        except asyncio.CancelledError:
            call.abandon()
            with anyio.CancelScope(shield=True), suppress(HookFailed):
                note(await answered, call)
            raise
        except HookFailed as failed:
            raise (self._late(call.why) if call.is_late else failed) from None
        note(message, call)

    def _begin(
        self, name: str, params: bytes, meta: bytes, limit: float, spare: float = 0.0
    ) -> tuple[CallTimeout, "asyncio.Future[RpcMessage]"]:
        number, answered = self._peer.call(name, params, meta, self._leave)
        call = CallTimeout(self._holder, partial(self._peer.tell, "$cancel", {"id": number}), limit, spare)
        if self._running:
            for each in (call, *self._running.values()):
                each.is_alone = False
        self._running[number] = call
        return call, answered

    def _leave(self, number: int) -> None:
        call = self._running.pop(number)
        call.end()
        self._over(call)
