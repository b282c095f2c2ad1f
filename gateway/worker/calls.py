"""The calls that are under way in a worker: each a task, each answered once, whatever its handler does."""

import asyncio
import contextvars
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from gateway.worker.capabilities import GatewayRequests, HookCapabilities
from gateway.worker.confine import WorkerDescriptors, repair_output
from gateway.worker.context import HandlerCall, ShowFields, TurnMemory, session_variables
from gateway.worker.error_report import describe_await, describe_error
from gateway.worker.link import WireMessage, WorkerLink
from gateway.worker.loader import Handlers
from gateway.worker.protocol import CANNOT_ANSWER, RAISED, CallMeta, WorkerSpec
from gateway.worker.tool_names import TOOL_SERVERS

_decode_meta = msgspec.json.Decoder(CallMeta).decode


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
        self._handlers = handlers
        self._ends = ends
        self._link = link
        self._requests = requests
        self._gateway = HookCapabilities(requests.make)
        self._memory = memory
        self._show = show
        self._open: dict[int | str | None, asyncio.Task[None]] = {}
        self.enter_session: Callable[[Mapping[str, str]], object] = lambda _: (
            None
        )  # before each call, with what it is of

    def begin(self, message: WireMessage) -> None:
        """Never raises: whatever is wrong with a call is its answer."""
        try:
            meta, name = _decode_meta(message.meta), message.method or ""
            context = self._make_context(meta)
            call = context.run(HandlerCall, name, message.params, meta, self._spec.name, self._memory, self._show)
            function = self._handlers.bind(call.meta.target, call.context)
        except Exception as error:  # noqa: BLE001 - it is the daemon that must hear of it
            self._fail(message.id, error)
            return
        call.equip(self._spec.options, self._gateway, self._spec.data)
        run = self._run(message.id, call, function)
        task = asyncio.get_running_loop().create_task(run, name=message.method, context=context)
        self._open[message.id] = task
        task.add_done_callback(lambda task: self._ended(message.id, task))

    def _make_context(self, meta: CallMeta) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(session_variables.set, meta.session)
        context.run(self._requests.during.set, meta.event)
        context.run(TOOL_SERVERS.set, lambda: meta.servers)
        return context

    async def _run(self, number: int | str | None, call: HandlerCall, function: Callable[[], Any]) -> None:
        try:
            self.enter_session(call.meta.session)
            self._send(number, await call.run(partial(self._requests.call_handler, function)))
        except BaseException as error:  # noqa: BLE001 - calling a hook
            self._fail(number, error)

    def _send(self, number: int | str | None, answer: dict[str, Any]) -> None:
        self._link.send({"jsonrpc": "2.0", "id": number} | answer)

    def _fail(self, number: int | str | None, error: BaseException) -> None:
        repair_output(self._ends.log)
        try:
            with self._link.signal_guard as guard:
                self._send(number, {"error": {"code": RAISED} | describe_error(error, self._spec.folder)})
                guard.afterwards = None  # here no handler holds the loop
        except BaseException:  # noqa: BLE001 - without an answer the daemon would wait until its limit
            os._exit(CANNOT_ANSWER)

    def _ended(self, number: int | str | None, task: "asyncio.Task[None]") -> None:
        del self._open[number]
        if task.cancelled():  # before it began: nothing of ours ran in it
            self._fail(number, asyncio.CancelledError())

    def cancel(self, number: int) -> None:
        task = self._open.get(number)
        if task is not None:
            where = describe_await(task.get_coro())
            if where:
                os.write(self._ends.dump, f"Waiting (most recent call last):\n{where}".encode())
            task.cancel()

    async def finish(self) -> None:
        """Wait until all are answered."""
        while self._open:
            await asyncio.wait(self._open.values())
