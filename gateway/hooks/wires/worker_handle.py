"""The gateway's handle on one worker: a process that runs one folder hook.

The fork server makes a worker. The worker is ready when its hook has been imported, and gone when its process and all
child processes have ended. The owner of this handle then starts the next worker.

Theory of operation: a call that takes too long

Each call has a `CallTimeout`, whose timer starts with the call. When the time is over (or the caller is gone), these
steps follow, each harder than the step before, until the worker has answered the call:

1. At once: `$cancel` over the wire. The worker notes where the coroutine waits and cancels its task. A hook that awaits
  ends here and never sees the next step.
2. After 0.1 s the worker's loop counts as blocked, by a plain function that sleeps or computes. The fork server sends a
  signal on which the interpreter writes the stack of each thread into the worker's stack file ("dump").
3. After another 0.03 s, the fork server sends a second signal ("free"), whose handler raises `CallTimedOut` in the code
  that blocks the loop. The signal is repeated every 0.1 s, since the first may come during a message.
4. One second after the cancellation, the fork server kills the process ("kill") and its children.

In steps 1 to 3 the worker survives, and with it the data that the hook keeps in memory; the processes that the call
started are killed ("prune") if no other call ran at the same time. The hook has certainly stopped when the worker has
answered or is gone. Only then the caller gets its error, with the stacks of step 2 as the traceback.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.hooks.wires.codec import RpcErrorObject, RpcMessage, answer_from
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.peer import Peer
from gateway.hooks.wires.process_handle import CLOSED, ProcessControl, ProcessHandle
from gateway.hooks.wires.timeouts import DUMP_TIME, ActiveCalls, CallTimeout
from gateway.hooks.wires.wire import Capability, HookAnswer, HookFailed
from gateway.worker.protocol import (
    AskedNames,
    BatchAnswer,
    BatchTerms,
    CallMeta,
    LoadedHandlers,
    WorkerRemark,
    WorkerSpec,
)
from gateway.worker.tool_names import TOOL_SERVERS

BUFFER_BYTES = 1 << 14  # of each worker; most answers are short
LAST_READS = 32  # of the socket's remaining data when its writer is gone
EXIT_DELAY = 0.05  # seconds for a process to exit after it closed its wire
ANSWER_TIMEOUT = 1.0  # seconds for an idle worker to report the values it keeps, and whether it may end
MAX_ASKED = 1_000
MAX_REMARKS, MAX_REMARK = 20, 300  # the most remarks of a running worker, and the most characters of each
KILL_TIMEOUT = 5.0  # seconds until a killed process is gone, on the busiest host


class BatchOutcome(NamedTuple):
    """The seconds that each begun event took; by position, the errors of failed events, and answers without effect."""

    seconds: Sequence[float]
    failed: Mapping[int, HookFailed]
    answers: Mapping[int, Any]


class WorkerPipe(asyncio.BufferedProtocol):
    """The bytes between the socket and the peer."""

    def __init__(self, peer: Peer, closed: Callable[[], object]) -> None:
        self._peer = peer
        self._closed = closed
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._peer.received(self._buffer[:nbytes])

    def pause_writing(self) -> None:
        self._peer.pause_requests()

    def resume_writing(self) -> None:
        self._peer.resume_requests()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._peer.hang_up()
        self._closed()


class WorkerHandle:
    """One hook's process, from `ForkServerClient.start`."""

    def __init__(
        self, spec: WorkerSpec, control: ProcessControl, output: HookOutput, serve: Capability, tasks: TaskGroup
    ) -> None:
        self.spec = spec
        self.process = ProcessHandle(control, output, self._read_rest, self._ended)
        self.gone = self.process.gone
        self._peer = Peer(serve, tasks, self._noticed, self.process.kill)
        self._calls = ActiveCalls(self._peer, self.process, self._late, self._over)
        self._transport: asyncio.Transport | None = None
        self._loaded: asyncio.Future[LoadedHandlers] = asyncio.get_running_loop().create_future()
        self.remarks: dict[str, None] = {}  # the worker's remarks at run time about code without an effect, each once
        self.asked: dict[str, None] = {}  # the environment variables that the hook looked up in vain
        self.on_asked: Callable[[], object] = bool
        self.is_worn = False  # the worker ran out of memory: a new worker should replace it

    @property
    def is_asking(self) -> bool:
        """Return True if the worker waits for an answer of the gateway."""
        return self._peer.is_serving

    @property
    def loaded(self) -> LoadedHandlers:
        return self._loaded.result()

    async def connect(self, sock: socket.socket) -> None:
        """Take this end of the wire, and send the specification of the hook to the worker."""
        loop = asyncio.get_running_loop()
        self._socket = sock
        pipe = WorkerPipe(self._peer, lambda: loop.call_later(EXIT_DELAY, self.process.kill, CLOSED))
        self._transport, _ = await loop.create_unix_connection(lambda: pipe, sock=sock)
        self._peer.attach(self._transport, self._transport)
        self._peer.tell("$start", {"spec": self.spec})

    async def wait_ready(self, timeout: float) -> None:
        """Wait until the hook is imported. Raises HookFailed with the reason; nothing of the worker is left then."""
        try:
            with anyio.fail_after(timeout):
                await asyncio.shield(self._loaded)
        except TimeoutError:
            self.process.dump()
            await anyio.sleep(DUMP_TIME)
            stacks = self.process.look()
            why = f"its import was not done after {timeout:g} s"
            await self._end(why)
            raise HookFailed(why, kind="timeout", traceback=stacks) from None
        except BaseException:
            await self._end("ended while it started, since the hook was changed or switched off")
            raise

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        if self.gone:
            raise self.process.failure()
        if self.spec.shapes:
            meta = msgspec.structs.replace(meta, servers=tuple(TOOL_SERVERS.get()()))
        message = await self._calls.make(name, fields, meta, timeout)
        if message.error is not None:
            raise self._failed(message.error)
        return answer_from(message, meta)

    async def tell_batch(
        self, batch: bytes, terms: BatchTerms, limit: float, note: Callable[[BatchOutcome], None]
    ) -> None:
        """Notify the hook of several events in one message; `limit` applies to each event.

        `note` gets the outcomes, even after a cancellation. Raises HookFailed if the outcomes are unknown.
        """
        if self.gone:
            raise self.process.failure()
        if self.spec.shapes:
            terms = msgspec.structs.replace(terms, servers=tuple(TOOL_SERVERS.get()()))
        await self._calls.make_batch(batch, terms, limit, lambda message, call: note(self._read_told(message, call)))

    def _read_told(self, message: RpcMessage, call: CallTimeout) -> BatchOutcome:
        """Read the outcomes of a batch; an event that was cut off is late, or stays pending if the caller is gone."""
        if message.error is not None:
            raise self._failed(message.error)
        told = msgspec.convert(message.result, BatchAnswer, str_keys=True)
        last = len(told.micros) - 1
        is_cut_off = call.is_late and told.failed.pop(last, None) is not None
        failed = {place: self._failed(msgspec.convert(fault, RpcErrorObject)) for place, fault in told.failed.items()}
        if is_cut_off and call.is_abandoned:
            del told.micros[last]
        elif is_cut_off:
            failed[last] = self._late(call.why)
        return BatchOutcome([one / 1e6 for one in told.micros], failed, told.answers)

    async def stop(self, grace: float = 2.0) -> None:
        """Stop the worker: it finishes its calls, cancels its background tasks, and is killed after `grace` seconds."""
        self.process.is_stopping = True
        self._peer.tell("$stop")
        try:
            with anyio.move_on_after(grace):
                await self.gone.wait()
        finally:
            await self._end("it did not stop within its time")

    def adopt(self, kept: Mapping[str, Any]) -> None:
        """Pass on the values that the previous worker kept for running turns."""
        self._peer.tell("$adopt", kept)

    async def ask(self, what: str) -> Any:
        """Ask the worker a question about itself; return None if no answer comes in time."""
        if not self.gone:
            _, answered = self._peer.call(what, b"{}", b"{}", lambda _: None)
            with anyio.move_on_after(ANSWER_TIMEOUT), suppress(HookFailed):
                return (await answered).result
        return None

    async def _end(self, why: str) -> None:
        if not self.gone:
            self.process.kill(why)
            with anyio.move_on_after(KILL_TIMEOUT, shield=True):
                await self.gone.wait()

    def _late(self, why: str) -> HookFailed:
        self.process.note(why, self.process.hangs)
        return HookFailed(why, kind="timeout", traceback=self.process.hangs)

    def _over(self, call: CallTimeout) -> None:
        if call.is_late and not self.gone:
            self.process.look()
            if call.is_alone:
                self.process.prune(call.age)

    def _failed(self, fault: RpcErrorObject) -> HookFailed:
        data = fault.data if isinstance(fault.data, dict) else {}
        self.is_worn = self.is_worn or data.get("worn") is True
        traceback = str(data.get("traceback", ""))
        self.process.note(fault.message, traceback)
        return HookFailed(fault.message, kind="raised", traceback=traceback)

    def _noticed(self, message: RpcMessage) -> None:
        """Handle the worker's messages about itself. The hook's own code may write anything to our wire."""
        try:
            if message.method == "$ready":
                _resolve(self._loaded, msgspec.convert(message.params, LoadedHandlers))
                self.process.has_begun = True
            elif message.method == "$remark":
                said = msgspec.convert(message.params, WorkerRemark).text[:MAX_REMARK]
                if len(self.remarks) < MAX_REMARKS:
                    self.remarks[said] = None
            elif message.method == "$asked":
                names = msgspec.convert(message.params, AskedNames).names
                self.asked |= dict.fromkeys(names[: max(0, MAX_ASKED - len(self.asked))])
                self.on_asked()
            else:
                failed = self._failed(msgspec.convert(message.params, RpcErrorObject))
                if message.method == "$broken":
                    _resolve(self._loaded, failed)
        except msgspec.ValidationError as error:
            self.process.kill(f"it wrote no message of ours: {error}")

    def _read_rest(self) -> None:
        """Read the worker's last output, since a busy loop may learn of the end first."""
        with suppress(OSError):
            for _ in range(LAST_READS):
                self._peer.received(self._socket.recv(BUFFER_BYTES))

    def _ended(self) -> None:
        _resolve(self._loaded, self.process.failure())
        self._peer.close(self.process.failure)
        if self._transport is not None:
            self._transport.abort()


def _resolve(future: "asyncio.Future[LoadedHandlers]", what: LoadedHandlers | HookFailed) -> None:
    """Set the result of the future, unless it is done."""
    if future.done():
        return
    if isinstance(what, LoadedHandlers):
        future.set_result(what)
    else:
        future.set_exception(what)
        future.exception()  # no task may be waiting any more
