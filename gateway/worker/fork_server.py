"""The fork server's program: it makes a worker for each request, reaps ended processes, and kills the ones left behind.

Theory of operation

Copies in a fork. A child of `os.fork` has the parent's memory, descriptors and signal handlers, and of its threads
only the one that forked. So this process is kept small and harmless: it has imported and run once what every worker
needs (`preload`), which the workers then share page by page until they write to it; it runs no code of a user; its
environment is empty; its only socket is the one to the daemon, and the child drops that first. `gc.freeze` keeps the
collector of a worker from writing into, and thereby copying, every page that it shares.

No threads. A lock that another thread holds at the moment of the fork stays locked in the child for ever,
for its holder is not copied. The daemon has threads, therefore it never forks; this process has none, and refuses to
start if a preloaded module has started one. It waits in `poll`, without an event loop.

Reaping. A worker is a child of this process, in a session of its own: a worker that fills the processors then
takes them neither from other workers nor from this process, which may have to kill it. The worker is a subreaper: a
process that its hook starts and detaches (a double fork, `setsid`) becomes the worker's child. When the worker is dead,
its group is killed, and detached processes come to this process, which is a subreaper too: a child without a number in
`WorkerProcesses` is such an orphan, and is killed with all its descendants. A command that is not a hook has a keeper
(`command.py`), which counts as a worker here. A worker's pid is signalled only while the worker is not reaped: until
then the kernel gives the number to no other process.

The daemon's death. The kernel closes its end of the socket, and `poll` reports that at once; in case a copy of that
end survives somewhere, the kernel also sends SIGTERM to this process (`die_with_parent`), which then sees that it has
another parent. All workers are killed, then all orphans, until no process is left. When this process dies first, the
kernel kills each worker by the same means, and the daemon kills their groups.
"""

import asyncio
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gateway.worker import command, kernel, mounts, worker
from gateway.worker.calls import HandlerCalls
from gateway.worker.capabilities import GatewayRequests
from gateway.worker.command import CommandDescriptors
from gateway.worker.confine import (
    DUMP_SIGNAL,
    FORK_SERVER_SIGNALS,
    RELEASE_SIGNAL,
    ProcessLimit,
    WorkerDescriptors,
    log_to_stderr,
    reserve_low_descriptors,
    reset_signals,
)
from gateway.worker.context import TurnMemory
from gateway.worker.link import WorkerLink
from gateway.worker.loader import Handlers
from gateway.worker.process_tree import count_threads, find_children, find_descendants, kill_tree, read_process
from gateway.worker.program import ProgramDescriptors, run_program
from gateway.worker.protocol import CANNOT_BEGIN, ForkServerSettings, WorkerSpec
from gateway.worker.worker import AddModules, TimedSelector

ROUNDS = 10  # Python optimizes a function after eight calls, and once more when it knows its arguments
FIELDS = {"tool": "shell", "args": {"command": "ls"}}
META = {"decides": True, "writable": ["args"], "turn": "t", "event": "e"}
SPEC = WorkerSpec(name="rehearsal", handler="/", env={}, options={}, path=(), modules={}, memory=None, label="")
EVENT = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tool:before", "params": FIELDS, "meta": META}).encode()


def prewarm_code() -> None:
    for _ in range(ROUNDS):
        _run_sample_call()
    GatewayRequests.own = None


def _run_sample_call() -> None:
    daemons, workers = socket.socketpair()
    with daemons, reserve_low_descriptors():
        loop = asyncio.SelectorEventLoop(TimedSelector())
        link = WorkerLink(workers.detach())
        with link.wire_guard.socket:
            handlers, ends = Handlers(_sample_handler, {}), WorkerDescriptors(-1, -1, -1, -1)
            calls = HandlerCalls(SPEC, handlers, ends, link, GatewayRequests(link), TurnMemory())
            daemons.sendall(EVENT + b"\n")
            loop.run_until_complete(_answer_call(link, calls))
        loop.close()


async def _answer_call(link: WorkerLink, calls: HandlerCalls) -> None:
    calls.begin(link.receive_first())
    await calls.finish()


def _sample_handler(_event: str, _context: object) -> None:
    """Return nothing, as most hooks do."""


AnyEnds = WorkerDescriptors | CommandDescriptors | ProgramDescriptors
STARTS: Mapping[str, type[AnyEnds]] = {
    "start": WorkerDescriptors,
    "run": CommandDescriptors,
    "program": ProgramDescriptors,
}

WATCH_MS = 500  # ms between two checks if the host has more processes than before
RENEW_MS = 60_000  # ms between two counts of the user's other processes
WEIGHING_MS = 110  # ms after which the kernel lets an ordinary user change the weight of another session
STOPPING_POLL_MS = 50  # ms between two checks for survivors
MAX_DESCRIPTORS = 24


class ForkRequests(msgspec.Struct, eq=False):
    """Lines of JSON from the daemon, with descriptors beside requests for a process."""

    _control: socket.socket
    _text: bytes = b""
    _descriptors: deque[int] = msgspec.field(default_factory=deque)

    def read(self) -> list[dict[str, Any]] | None:
        """Read the requests that have arrived; None when the daemon is gone."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, MAX_DESCRIPTORS)
        except OSError:
            return None
        if not data:
            return None
        self._descriptors += descriptors
        *lines, self._text = (self._text + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def take_descriptors(self, kind: type[AnyEnds]) -> AnyEnds:
        """Take the descriptors of the oldest request for a process."""
        return kind(*(self._descriptors.popleft() for _ in kind._fields))


class WorkerProcesses(msgspec.Struct, eq=False):
    """The workers by number, until they are reaped: until then no other process gets the pid."""

    pids: dict[int, int] = {}
    _keepers: set[int] = set()  # the numbers of keepers of commands, which are no hooks
    _heavy: list[int] = []

    @property
    def needs_limit(self) -> bool:
        """Return True while some workers still have the daemon's share of the processors."""
        return bool(self._heavy)

    def add(self, number: int, pid: int, is_keeper: bool) -> None:
        self.pids[number] = pid
        if is_keeper:
            self._keepers.add(number)
        else:
            self._heavy.append(pid)

    def find_largest(self) -> tuple[int, int]:
        """Return the hook with the most processes and threads by its number (0: none), and how many it has."""
        sizes = count_threads(self.pids.values())
        hooks = ((sizes[pid], number) for number, pid in self.pids.items() if number not in self._keepers)
        return max(hooks, default=(0, 0))[::-1]

    def kill_tree(self, number: int) -> None:
        """Kill a worker and all its descendants at once: any of them could start more."""
        pid = self.pids[number]
        kill_tree(lambda: [pid, *(one.pid for one in find_descendants({pid}))])

    def limit_weight(self) -> None:
        self._heavy = [pid for pid in self._heavy if not kernel.limit_weight(pid)]

    def remove(self, pid: int) -> int | None:
        """Remove a process that was reaped and kill its group. Return its number if it was a worker."""
        number = next((number for number, known in self.pids.items() if known == pid), None)
        if number is not None:
            del self.pids[number]
            self._keepers.discard(number)
            self._heavy = [heavy for heavy in self._heavy if heavy != pid]
            kernel.kill_group(pid)
        return number

    def has_orphans(self) -> bool:
        alive = set(self.pids.values())
        return any(pid not in alive for pid in find_children(os.getpid()))

    def kill_orphans(self) -> None:
        """Kill the orphans that this process adopted; living workers adopt their own."""
        if self.has_orphans():
            spared = frozenset(self.pids.values())
            kill_tree(lambda: [one.pid for one in find_descendants({os.getpid()}, spared)])

    def kill(self) -> None:
        for pid in self.pids.values():
            kernel.kill_with_group(pid)


# For all workers, and while their files may still be read; by name, since this program knows no other.
PRELOADED = ("gateway.hooks", "gateway.hermes.plugin.plugin", "gateway.hermes.shim.handlers")


class ForkServer:
    def __init__(self, control: int, daemon: int, settings: ForkServerSettings, add_modules: AddModules) -> None:
        self._daemon = daemon
        self._settings = settings
        self._add_modules = add_modules
        self._control = socket.socket(fileno=control)
        self._requests = ForkRequests(self._control)
        self._limit = ProcessLimit(settings.processes)
        self._workers = WorkerProcesses()
        self._stopping = False
        self._renewal = time.monotonic() + RENEW_MS / 1000
        self._woken = watch_signals()

    def run(self) -> None:
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._woken):
            poll.register(descriptor, select.POLLIN)
        while not self._stopping or self._workers.pids or self._workers.has_orphans():
            ready = [descriptor for descriptor, _ in poll.poll(self._choose_pause())]
            if self._woken in ready:
                os.read(self._woken, 1 << 12)
            if self._control.fileno() in ready and not self._stopping:
                self._serve()
            if os.getppid() != self._daemon:  # SIGTERM may come from any process; a new parent is certain
                self._stop()
            self._reap()
            if self._workers.needs_limit:
                self._workers.limit_weight()
            if not self._stopping:
                self._watch_number()

    def _choose_pause(self) -> int:
        if self._stopping:
            return STOPPING_POLL_MS
        return WEIGHING_MS if self._workers.needs_limit else WATCH_MS if self._workers.pids else RENEW_MS

    def _watch_number(self) -> None:
        """Renew the limits now and then, and kill a hook that spawns without end before others have to wait."""
        now = time.monotonic()
        if now >= self._renewal or self._limit.is_outgrown(len(self._workers.pids)):
            self._renewal = now + RENEW_MS / 1000
            self._limit.renew(self._workers.pids.values())
        if not self._limit.needs_look():
            return
        number, size = self._workers.find_largest()
        self._limit.largest = size
        if size >= self._limit.most_of_one:
            self.send({"endless": number, "size": size, "most": self._limit.most_of_one})
            self._workers.kill_tree(number)

    def send(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self._stop()

    def _serve(self) -> None:
        requests = self._requests.read()
        if requests is None:
            self._stop()
        for request in requests or ():
            number = request["worker"]
            if request["verb"] == "ping":
                self.send({"pong": number})
            elif ends := STARTS.get(request["verb"]):
                self._start(number, self._requests.take_descriptors(ends))
            elif number in self._workers.pids:
                self._carry_out(request, self._workers.pids[number])

    def _carry_out(self, request: dict[str, Any], pid: int) -> None:
        match request["verb"]:
            case "kill":
                kernel.kill_with_group(pid)
            case "end":
                kernel.send_signal(pid, signal.SIGTERM)
            case "dump":
                kernel.send_signal(pid, DUMP_SIGNAL)
            case "free":
                kernel.send_signal(pid, RELEASE_SIGNAL)
            case "prune":  # the processes of a call over its time; the worker lives on
                since = int(request["since"] * os.sysconf("SC_CLK_TCK"))
                kill_tree(lambda: [one.pid for one in find_descendants({pid}) if one.started >= since])

    def _start(self, number: int, ends: AnyEnds) -> None:
        try:
            pid = self._fork(ends) if self._settings.fork else self._spawn(ends)
        except OSError as error:
            self.send({"failed": number, "why": f"no process could be made: {error}"})
        else:
            self._workers.add(number, pid, is_keeper=isinstance(ends, CommandDescriptors))
            self.send({"started": number, "pid": pid})
        finally:
            for end in ends:
                os.close(end)

    def _count_limit(self) -> int | None:
        """Return the limit on processes if one more worker starts."""
        return self._limit.now(len(self._workers.pids) + 1)

    def _fork(self, ends: AnyEnds) -> int:
        me, limit = os.getpid(), self._count_limit() if isinstance(ends, WorkerDescriptors) else None
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                self._control.detach()
                if isinstance(ends, CommandDescriptors):
                    command.run_command(ends, me)
                if isinstance(ends, ProgramDescriptors):
                    run_program(ends)
                worker.run_worker(ends, me, limit, self._add_modules)
            finally:
                os._exit(CANNOT_BEGIN)
        return pid

    def _spawn(self, ends: AnyEnds) -> int:
        if isinstance(ends, ProgramDescriptors):
            raise OSError("a restricted program is forked, and here nothing is")
        role = "command" if isinstance(ends, CommandDescriptors) else "worker"
        settings = {"path": sys.path, "ends": ends, "fork_server": os.getpid(), "limit": self._count_limit()}
        program = [sys.executable, "-P", str(Path(__file__).parent / "boot.py"), role, json.dumps(settings)]
        for end in ends:
            os.set_inheritable(end, True)
        return os.posix_spawn(sys.executable, program, {})

    def _reap(self) -> None:
        ended = False
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                ended = True
                number = self._workers.remove(found[0])
                self._workers.kill_orphans()
                if number is not None:
                    self.send({"ended": number, "status": os.waitstatus_to_exitcode(found[1])})
        if ended or self._stopping:
            self._workers.kill_orphans()

    def _stop(self) -> None:
        self._stopping = True
        self._workers.kill()


def watch_signals() -> int:
    """Return a descriptor that becomes readable when a child ends, or when a signal asks this process to end."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in FORK_SERVER_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return woken


def preload(names: Sequence[str]) -> str:
    """Import and run what all workers use, once; return a description of a fault, or ""."""
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    prewarm_code()
    gc.collect()
    gc.freeze()
    process = read_process(os.getpid())
    if process is not None and process.threads > 1:
        return f"one of the modules to preload ({', '.join(names)}) starts a thread, which no fork survives"
    return ""


def main(start: dict[str, Any], add_modules: AddModules) -> None:
    reset_signals()
    log_to_stderr()
    settings = msgspec.convert(start["settings"], ForkServerSettings)
    wrong = ""
    try:
        mounts.can_restrict()  # processes that are forked from here know the result
    except OSError as error:
        wrong = f"no process can be made: {error.strerror}"
    fork_server = ForkServer(start["control"], start["daemon"], settings, add_modules)
    for name in PRELOADED:
        importlib.import_module(name)
    wrong = wrong or preload(settings.preload)
    kernel.adopt_orphans()
    kernel.die_with_parent(signal.SIGTERM)
    kernel.write_proc_file("comm", "hook-forkserver")
    if wrong:
        fork_server.send({"broken": wrong})
    else:
        fork_server.run()
