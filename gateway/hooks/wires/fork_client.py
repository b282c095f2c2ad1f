"""The gateway's handle on the fork server, the process that makes the workers; a fork server that ends is replaced.

Theory of operation

The fork server is a program of its own. The fork server starts with the first request for a process, or earlier if
`begin` announces a request: a gateway without hooks has no fork server. Its environment holds only a mark, which
identifies its processes. The fork server gets everything over one socket: lines of JSON, and with a request for a
worker the worker's descriptors. When the gateway ends, in any way, the socket closes, and the fork server kills all
workers; `worker/fork_server.py` is the other side.

A worker starts in three steps. `start` makes both ends of the worker's wire (the connection to the gateway), its output
and its stack file, and sends the worker's ends to the fork server, which forks. The worker reads its `WorkerSpec` from
the wire, into which `start` wrote the spec before the fork. The worker imports the hook and says `$ready`, or `$broken`
with the reason.

At most `MOST_STARTS` workers start at a time, since more workers would share the processors, and all be late. A slow
start makes room for the next start after a moment (`SLOW_START`).

A worker counts as gone when the fork server has reaped it (`ended`), not when its wire closes: by then, the processes
that the worker left behind have been killed too. If the fork server itself ends or hangs, all its workers are lost at
once. The calls of these workers fail as "orphaned", which is not the hooks' fault, and the hooks start again when a new
fork server is up. After each start and kill, the gateway sends a ping: a fork server that does not answer counts as
hanging only after it had the processor time to answer (`ProcessHealth`), which a busy host may not give to the fork
server.
"""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.backoff import Attempts, Backoff
from gateway.errors import AgentError
from gateway.hooks.wires.command_process import CommandProcess
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.process_handle import LOOK_PAUSE, ProcessHealth, write_memory_file
from gateway.hooks.wires.program_process import ProgramProcess, connect_program
from gateway.hooks.wires.wire import Capability, HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.threads import run_in_thread
from gateway.worker import kernel
from gateway.worker.process_marks import env_of, kill_marked, make_mark
from gateway.worker.protocol import CommandSpec, ForkServerSettings, ProgramRequest, WorkerSpec

ENDLESS = "it had {} processes and threads, and {} (three quarters of hooks.processes) are the most of one hook"
ENDED = "the fork server ended, and its workers with it"
BOOT_FILE = Path(__file__).resolve().parents[2] / "worker" / "boot.py"
CHUNK = 1 << 16
READY_TIMEOUT = 10.0  # seconds for a worker, or for a new fork server
MOST_STARTS = 16  # workers that start at a time
SLOW_START = 0.5  # seconds after which a slow start makes room for the next
END_TIMEOUT = 5.0  # seconds for a fork server to end all its workers and itself
STEADY_AFTER = 1.0  # seconds after which a fork server counts as started
POLL_PAUSE = 0.05  # seconds between two checks whether the process has ended
RESTARTS = Backoff(0.05, 5.0)  # seconds before another try after a failed start


class ServedProcess(Protocol):
    """A process that the fork server has made, seen from the gateway."""

    pid: int
    is_stopping: bool

    def kill(self, reason: str) -> None: ...

    def end(self, how: int | str) -> None:
        """Handle the end; `how` is the exit code, minus the signal that ended the process, or a text."""

    def lose(self, why: str) -> None:
        """Handle the loss of the fork server."""


class ForkServerProcess:
    """One fork server process, and its workers by number."""

    def __init__(self, settings: ForkServerSettings, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._workers: dict[int, ServedProcess] = {}
        self.numbers = itertools.count(1)
        self._asked = 0  # the number of the last ping
        self._looking: asyncio.TimerHandle | None = None  # while the last ping has no answer
        self._text = b""
        self._unsent: deque[tuple[bytes, list[int]]] = deque()  # with our own copies of the descriptors
        self.begun = self._loop.time()
        self.is_open = True
        self._is_closing = False  # no further requests will be sent
        self.trouble = ""
        self.mark = make_mark(settings.mark)
        self._socket, self._process = _start_process(settings, self.mark)
        self._loop.add_reader(self._socket, self._read)

    @property
    def pid(self) -> int:
        return self._process.pid

    def add(self, verb: str, number: int, process: ServedProcess, descriptors: Sequence[int]) -> None:
        """Request a process: `start` makes a worker, `run` the keeper of a command, `program` a program."""
        if not self.is_open:  # the fork server ended while the worker's wire was made
            process.lose(ENDED)
            return
        self._workers[number] = process
        self._send({"verb": verb, "worker": number}, descriptors)
        self._expect_answer()

    def control(self, number: int, verb: str, since: float = 0) -> None:
        """Send a command about a worker; no effect if the worker is gone."""
        if number in self._workers:
            self._send({"verb": verb, "worker": number, "since": since})
            if verb == "kill":
                self._expect_answer()

    def _expect_answer(self) -> None:
        """Send a ping, so that no start or kill waits for a fork server that hangs."""
        self._asked += 1
        self._send({"verb": "ping", "worker": self._asked})
        if self._looking is None and self.is_open:
            self._begin_looking()

    def _begin_looking(self) -> None:
        self._stop_looking()
        self._looking = self._loop.call_later(LOOK_PAUSE, self._look, ProcessHealth(self.pid))

    def _look(self, health: ProcessHealth) -> None:
        if health.is_hanging():
            self._lose("the fork server hangs")
        else:
            self._looking = self._loop.call_later(LOOK_PAUSE, self._look, health)

    def _receive_pong(self, asked: int) -> None:
        """Handle the answer to a ping: the fork server has done all earlier requests, so it does not hang."""
        if asked == self._asked:
            self._stop_looking()
        else:
            self._begin_looking()

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def close(self) -> None:
        """End all workers at once, and then the fork server."""
        for process in self._workers.values():
            process.is_stopping = True
            process.kill("the gateway stopped")
        self._is_closing = True
        if self.is_open:
            self._socket.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(END_TIMEOUT, shield=True):
            await _wait_ended(self._process)
        self._lose("the gateway stopped")
        await self.wait_gone()

    async def wait_gone(self) -> None:
        """Kill the process, and wait until nothing of it is left."""
        self._process.kill()
        with anyio.CancelScope(shield=True):
            await _wait_ended(self._process)

    def _send(self, what: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._is_closing:
            return
        data = json.dumps(what).encode() + b"\n"
        if self.is_open and (self._unsent or not self._write(data, descriptors)):
            self._unsent.append((data, [os.dup(one) for one in descriptors]))
            self._loop.add_writer(self._socket, self._send_rest)

    def _write(self, data: bytes, descriptors: Sequence[int]) -> bool:
        """Send the data; return False if the socket is full."""
        try:
            if socket.send_fds(self._socket, [data], descriptors) < len(data):
                self._lose("the fork server reads no requests")
        except BlockingIOError:
            return False
        except OSError as error:
            self._lose(f"the fork server takes no requests: {error}")
        return True

    def _send_rest(self) -> None:
        while self._unsent and self._write(*self._unsent[0]):
            if self._unsent:  # otherwise the fork server was lost
                close_all(self._unsent.popleft()[1])
        if self.is_open and not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line))
        if not data:
            self._lose(self.trouble or ENDED)

    def _receive(self, message: dict[str, Any]) -> None:
        match message:
            case {"started": number, "pid": pid}:
                self._workers[number].pid = pid
            case {"ended": number, "status": status}:
                self._workers.pop(number).end(status)
            case {"failed": number, "why": why}:
                self._workers.pop(number).end(why)
            case {"pong": asked}:
                self._receive_pong(asked)
            case {"endless": number, "size": size, "most": most}:
                self._workers[number].kill(ENDLESS.format(size, most))
            case {"broken": why}:
                self.trouble = f"the fork server could not start: {why}"

    def _lose(self, why: str) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._stop_looking()
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        while self._unsent:
            close_all(self._unsent.pop()[1])
        workers, self._workers = self._workers, {}
        for process in workers.values():
            process.lose(why)
        self._ended()


def close_all(descriptors: Sequence[int]) -> None:
    for one in descriptors:
        os.close(one)


class LastingForkServer:
    """A fork server that starts with the first request, and is replaced when it ends."""

    def __init__(self, settings: ForkServerSettings, tasks: TaskGroup) -> None:
        self._settings = settings
        self._tasks = tasks
        self._server: ForkServerProcess | None = None  # the last process that was started
        self._up = anyio.Event()
        self._trouble = ""  # why no fork server could be started
        self._attempts = Attempts(RESTARTS, STEADY_AFTER)
        self._has_begun = False
        self.is_closing = False  # an ended fork server is not replaced any more

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server else None

    def begin(self) -> None:
        """Start the fork server in the background."""
        if not self._has_begun and not self.is_closing:
            self._has_begun = True
            if not self._start():
                self._tasks.start_soon(self._replace)

    async def find(self, timeout: float) -> ForkServerProcess | None:
        """Return the running fork server; None if it does not run within `timeout` seconds."""
        self.begin()
        with anyio.move_on_after(timeout):
            await self._up.wait()
        return self._server if self._up.is_set() else None

    def describe_trouble(self) -> str:
        return self._trouble or (self._server and self._server.trouble) or "no fork server runs"

    async def close(self) -> None:
        if self._server:
            await self._server.close()

    def _start(self) -> bool:
        try:
            self._server = ForkServerProcess(self._settings, self._miss)
        except OSError as error:
            self._trouble = f"the fork server cannot be started: {error}"
            return False
        self._trouble = ""
        self._up.set()
        return True

    def _miss(self) -> None:
        """Replace a fork server that has ended."""
        if not self.is_closing:
            self._up = anyio.Event()
            self._tasks.start_soon(self._replace, self._server)

    async def _replace(self, ended: ForkServerProcess | None = None) -> None:
        lived = 0.0
        if ended:
            await ended.wait_gone()
            self._tasks.start_soon(run_in_thread, kill_marked, ended.mark)  # processes that its workers left behind
            lived = anyio.current_time() - ended.begun
        while not self._up.is_set() and not self.is_closing:
            await anyio.sleep(self._attempts.pause(lived))
            lived = 0.0
            self._start()


class ForkServerClient:
    """The client: `async with ForkServerClient() as server: await server.start(...)`.

    When the context ends, no hook process is left.
    """

    def __init__(self, settings: ForkServerSettings, redact: Callable[[str], str] = str) -> None:
        self.settings = settings
        self._redact = redact  # removes secrets from the output of workers
        self._stack = AsyncExitStack()
        self._starts = anyio.Semaphore(MOST_STARTS)

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._server = LastingForkServer(self.settings, self._tasks)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._server.is_closing = True
        self._tasks.cancel_scope.cancel()
        try:
            return await self._stack.__aexit__(kind, error, trace)
        finally:
            await self._server.close()

    @property
    def pid(self) -> int | None:
        """Return the process id; None before the first start."""
        return self._server.pid

    def begin(self) -> None:
        """Start the fork server now, because a request will come soon."""
        self._server.begin()

    async def start(
        self, spec: WorkerSpec, serve: Capability, log: Path, timeout: float = READY_TIMEOUT, stdin: int | None = None
    ) -> WorkerHandle:
        """Start a worker and wait until its hook is imported.

        `stdin` is a file for the worker's standard input; if `stdin` is None, the input is empty.

        `timeout` counts from the start of this worker, not from the call: a thousand calls at once would all be late.

        Raises:
            HookFailed: the worker did not start; nothing of it is left.
        """
        async with self._begin():
            return await self._start(spec, serve, log, timeout, stdin)

    @asynccontextmanager
    async def _begin(self) -> AsyncIterator[None]:
        """Limit the starts at a time; a slow start makes room for the next start."""
        await self._starts.acquire()
        is_left = False

        def leave() -> None:
            nonlocal is_left
            if not is_left:
                is_left = True
                self._starts.release()

        late = asyncio.get_running_loop().call_later(SLOW_START, leave)
        try:
            yield
        finally:
            late.cancel()
            leave()

    async def _start(
        self, spec: WorkerSpec, serve: Capability, log: Path, timeout: float, stdin: int | None
    ) -> WorkerHandle:
        if (server := await self._server.find(timeout)) is None:
            raise HookFailed(self._server.describe_trouble(), kind="orphaned")
        number, output = next(server.numbers), HookOutput(log, self._redact)
        spec = msgspec.structs.replace(spec, env=spec.env | env_of(server.mark))
        worker = WorkerHandle(spec, partial(server.control, number), output, serve, self._tasks)
        ours, theirs = socket.socketpair()
        reads, writes = os.pipe()
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin)
        output.attach(reads)
        try:
            await worker.connect(ours)
            ends = (theirs.fileno(), writes, worker.process.stacks.descriptor, given)
            server.add("start", number, worker.process, ends)
        except BaseException:
            worker.process.end("its start was cancelled")
            raise
        finally:
            theirs.close()
            os.close(writes)
            os.close(given)
        try:
            await worker.wait_ready(timeout)
        except HookFailed as failed:
            if server.is_open and worker.process.pid:
                raise
            raise HookFailed(str(failed), kind="short" if server.is_open else "orphaned") from failed
        return worker

    async def run(self, command: CommandSpec, output: Callable[[bytes], None]) -> int:
        """Run a command and pass on its output. Return the exit code, or minus the signal that ended the command.

        At the end, nothing is left of the processes that the command started, even if the caller is cancelled.

        Raises:
            AgentError: the command could not run, or was killed.
        """
        if (server := await self._server.find(READY_TIMEOUT)) is None:
            raise AgentError(self._server.describe_trouble())
        number = next(server.numbers)
        reads, writes = os.pipe()
        process = CommandProcess(partial(server.control, number), output, reads)
        spec = write_memory_file("command", msgspec.json.encode(command))
        try:
            server.add("run", number, process, (spec, writes))
        except BaseException:
            process.end("its start was cancelled")
            raise
        finally:
            os.close(spec)
            os.close(writes)
        how = await process.wait()
        if isinstance(how, str):
            raise AgentError(f"the command could not come to its end: {how}")
        return how

    async def start_program(
        self, program: ProgramRequest, protocol: asyncio.SubprocessProtocol, stderr: int | None = None
    ) -> asyncio.SubprocessTransport:
        """Start a program in a process of the fork server, like `subprocess_exec`; `stderr` receives the errors.

        Raises:
            OSError: the program could not be started.
        """
        if (server := await self._server.find(READY_TIMEOUT)) is None:
            raise OSError(self._server.describe_trouble())
        number = next(server.numbers)
        (their_in, our_in), (our_out, their_out) = os.pipe(), os.pipe()
        our_err, their_err = (None, os.dup(stderr)) if stderr is not None else os.pipe()
        process = ProgramProcess(partial(server.control, number), our_in, our_out, our_err)
        spec = write_memory_file("program", msgspec.json.encode(program))
        try:
            server.add("program", number, process, (spec, their_in, their_out, their_err))
        finally:
            for end in (spec, their_in, their_out, their_err):
                os.close(end)
        return await connect_program(process, protocol)


def _start_process(settings: ForkServerSettings, mark: str) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    ours, theirs = socket.socketpair()
    start = {
        "control": theirs.fileno(),
        "daemon": os.getpid(),
        "settings": msgspec.to_builtins(settings),
        "path": [entry for entry in sys.path if entry],
    }
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(BOOT_FILE), "fork_server", json.dumps(start)],
            stdin=subprocess.DEVNULL,
            env=env_of(mark),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    kernel.restore_descriptor_limit(process.pid)
    ours.setblocking(False)
    return ours, process


async def _wait_ended(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of the process, without a thread, since the gateway may leave no thread behind."""
    while process.poll() is None:  # noqa: ASYNC110 - no event signals its end
        await anyio.sleep(POLL_PAUSE)
