"""The running calls of a worker: each is a task, and gets one answer in every case."""

import asyncio
import contextvars
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from gateway.worker.capabilities import GatewayRequests, HookCapabilities
from gateway.worker.confine import WorkerDescriptors, repair_output
from gateway.worker.context import NO_PARAMS, HandlerCall, HookOptions, ShowFields, TurnMemory, session_variables
from gateway.worker.error_report import describe_await, describe_error
from gateway.worker.link import WireMessage, WorkerLink, encode
from gateway.worker.loader import Handlers
from gateway.worker.protocol import (
    CANNOT_ANSWER,
    RAISED,
    BatchAnswer,
    BatchEvent,
    BatchTerms,
    CallMeta,
    EventBatch,
    EventSession,
    WorkerSpec,
)
from gateway.worker.tool_names import TOOL_SERVERS

LOOP_SECONDS = 0.005  # for which a batch may block the loop if its hook takes less

_decode_meta = msgspec.json.Decoder(CallMeta).decode
_decode_batch = msgspec.json.Decoder(EventBatch).decode
_decode_terms = msgspec.json.Decoder(BatchTerms).decode


class HandlerCalls:
    def __init__(
        self,
        spec: WorkerSpec,
        handlers: Handlers,
        ends: WorkerDescriptors,
        link: WorkerLink,
        requests: GatewayRequests,
        memory: TurnMemory,
        show: ShowFields | None = None,
    ) -> None:
        self._spec = spec
        self._options = HookOptions(spec.options)
        self._handlers = handlers
        self._ends = ends
        self._link = link
        self._requests = requests
        self._gateway = HookCapabilities(requests.make)
        self._memory = memory
        self._show = show
        self._open: dict[int | str | None, asyncio.Task[None]] = {}
        self.enter_session: Callable[[Mapping[str, str]], object] = id  # gets each call's session before the call

    def begin(self, message: WireMessage) -> None:
        """Start a call. Never raises: an error becomes the answer."""
        try:
            meta, name = _decode_meta(message.meta), message.method or ""
            context = contextvars.copy_context()
            call = context.run(self._make_call, name, msgspec.json.decode(message.params), meta, message.params)
            function = self._handlers.bind(meta.target, call.context)
        except Exception as error:  # noqa: BLE001 - the daemon must get it
            self._fail(message.id, error)
            return
        self._start(message, self._run(message.id, call, function), context)

    def begin_batch(self, message: WireMessage) -> None:
        """Start a batch of events that the hook only observes: one after the other, in one task."""
        try:
            batch, terms = _decode_batch(message.params), _decode_terms(message.meta)
        except Exception as error:  # noqa: BLE001 - the daemon must get it
            self._fail(message.id, error)
        else:
            self._start(message, self._run_batch(message.id, batch, terms), contextvars.copy_context())

    def _start(self, message: WireMessage, run: Coroutine[Any, Any, None], context: contextvars.Context) -> None:
        task = asyncio.get_running_loop().create_task(run, name=message.method, context=context)
        self._open[message.id] = task
        task.add_done_callback(lambda task: self._ended(message.id, task))

    def _make_call(
        self, name: str, fields: dict[str, Any], meta: CallMeta, params: msgspec.Raw = NO_PARAMS
    ) -> HandlerCall:
        """Make a call in its own context."""
        session_variables.set(meta.session)
        self._requests.during.set(meta.event)
        if meta.servers:
            TOOL_SERVERS.set(lambda: meta.servers)
        call = HandlerCall(name, fields, meta, self._spec.name, self._memory, self._show, params)
        call.equip(self._options, self._gateway, self._spec.data)
        return call

    async def _run(self, number: int | str | None, call: HandlerCall, function: Callable[[], Any]) -> None:
        try:
            self.enter_session(call.meta.session)
            self._send(number, await call.run(partial(self._requests.call_handler, function)))
        except BaseException as error:  # noqa: BLE001 - calling a hook
            self._fail(number, error)

    async def _run_batch(self, number: int | str | None, batch: EventBatch, terms: BatchTerms) -> None:
        told = BatchAnswer()
        with suppress(BaseException):  # cut off between two events
            await self._tell_all(batch, terms, told)
        try:
            self._send(number, {"result": told})
        except BaseException as error:  # noqa: BLE001 - the daemon waits for an answer
            self._fail(number, error)

    async def _tell_all(self, batch: EventBatch, terms: BatchTerms, told: BatchAnswer) -> None:
        first = looked = begun = time.perf_counter()
        in_row = 0
        for place, (event, key) in enumerate(zip(batch.events, batch.keys, strict=True)):
            is_cut_off = await self._tell(place, event, key, terms, told)
            now = time.perf_counter()
            told.micros.append(int((now - begun) * 1e6))
            begun, in_row = now, in_row + 1 if place in told.failed else 0
            if is_cut_off or in_row >= terms.failures or now - first > terms.seconds:
                break
            if now - looked > LOOP_SECONDS:  # lets its own tasks run, and reads the wire
                await asyncio.sleep(0)
                looked = now

    async def _tell(self, place: int, event: BatchEvent, key: int, terms: BatchTerms, told: BatchAnswer) -> bool:
        """Handle one event of a batch. Return True if the hook was cut off: the daemon then ends the batch."""
        fields = event.fields
        fields["delivery"] = {"key": fields.get("delivery", {}).get("key", key), "attempt": 1}
        session = EventSession(fields)
        turn = str(fields.get("turn_id") or "")
        meta = CallMeta(event=str(fields.get("id", "")), turn=turn, session=session, servers=terms.servers)
        try:
            self.enter_session(session)
            context = contextvars.copy_context()
            call = context.run(self._make_call, event.name, fields, meta)
            function = self._handlers.bind("", call.context)
            answer = await call.run(partial(self._requests.call_handler, function), context)
            if len(answer) > 1 or answer["result"] is not None:
                told.answers[place] = msgspec.Raw(encode(answer))
        except BaseException as error:  # noqa: BLE001 - calling a hook
            repair_output(self._ends.log)
            told.failed[place] = describe_error(error, self._spec.folder)
            return not isinstance(error, Exception)
        return False

    def _send(self, number: int | str | None, answer: dict[str, Any]) -> None:
        self._link.send({"jsonrpc": "2.0", "id": number} | answer)

    def _fail(self, number: int | str | None, error: BaseException) -> None:
        repair_output(self._ends.log)
        try:
            with self._link.signal_guard as guard:
                self._send(number, {"error": {"code": RAISED} | describe_error(error, self._spec.folder)})
                guard.afterwards = None  # here no hook blocks the loop
        except BaseException:  # noqa: BLE001 - without an answer the daemon would wait until its limit
            os._exit(CANNOT_ANSWER)

    def _ended(self, number: int | str | None, task: "asyncio.Task[None]") -> None:
        del self._open[number]
        if task.cancelled():  # before it began: no code of ours ran in it
            self._fail(number, asyncio.CancelledError())

    def cancel(self, number: int) -> None:
        task = self._open.get(number)
        if task is not None:
            where = describe_await(task.get_coro())
            if where:
                os.write(self._ends.dump, f"Waiting (most recent call last):\n{where}".encode())
            task.cancel()

    async def finish(self) -> None:
        """Wait until all calls are answered."""
        while self._open:
            await asyncio.wait(self._open.values())
