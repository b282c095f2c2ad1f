"""The process of one hook: its event loop, and how a blocked loop is freed.

The loop lives as long as the worker, and so do clients, tasks and child processes of the hook. Every hook is called on
it, a plain `def` as well: some of those create tasks. Each call has a copy of the context variables.

When a call is over its time, the daemon first cancels its task. If the loop is blocked, the daemon then sends a signal,
whose handler raises `CallTimedOut` in the blocking code: that frees a sleep, an endless loop or a long regular
expression without losing the worker. Code that resists is killed from outside.
"""

import asyncio
import atexit
import importlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import msgspec

from gateway.worker.asked_variables import watch_environment
from gateway.worker.calls import HandlerCalls
from gateway.worker.capabilities import GatewayRequests
from gateway.worker.confine import (
    RELEASE_SIGNAL,
    WorkerDescriptors,
    isolate,
    log_to_stderr,
    reserve_low_descriptors,
    set_surroundings,
)
from gateway.worker.context import TurnMemory, keep_context_in_threads
from gateway.worker.error_report import describe_error
from gateway.worker.idle_check import IdleCheck
from gateway.worker.link import WireMessage, WorkerLink, replace_by_nothing
from gateway.worker.loader import Handlers, load_handler
from gateway.worker.protocol import CANNOT_RESTRICT, IMPORT_FAILED, LOOP_BROKEN, WorkerSpec
from gateway.worker.sandbox import Sandbox, restrict

AddModules = Callable[[Mapping[str, Path | None]], None]

HELD_AFTER = 0.05  # seconds; a shorter block ends without help
TASKS_TIMEOUT = 1.0  # seconds for background tasks to end


class CallTimedOut(BaseException):
    """An exception: the time of this call is over."""


_decode_spec = msgspec.json.Decoder(dict[str, WorkerSpec]).decode  # made before the fork, for all workers


class TimedSelector(selectors.DefaultSelector):
    """A selector that knows since when the loop has not returned to it."""

    since: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        self.since = None
        try:
            return super().select(timeout)
        finally:
            self.since = time.monotonic()


class Worker:
    def __init__(
        self,
        spec: WorkerSpec,
        loop: asyncio.SelectorEventLoop,
        watch: TimedSelector,
        link: WorkerLink,
        ends: WorkerDescriptors,
        idle: IdleCheck,
    ) -> None:
        self._spec = spec
        self._loop = loop
        self._watch = watch
        self._link = link
        self._ends = ends
        self._idle = idle
        link.left = lambda: loop.call_soon(self.dispatch)
        self._requests = GatewayRequests(link)
        self._memory = TurnMemory()
        self._is_done = False
        self._freed = 0.0

    def run(self) -> NoReturn:
        signal.signal(RELEASE_SIGNAL, self._release)
        os.register_at_fork(after_in_child=self._in_fork)
        watch_environment(self._loop, lambda names: self._tell("$asked", lambda: {"names": names}))
        self._loop.call_soon(self._boot)
        while not self._is_done:
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt, CallTimedOut) as error:
                self._report("$trouble", error)  # of a background task
            except BaseException as error:  # noqa: BLE001 - a hook broke the loop: nothing can run here any more
                self._report("$trouble", error)
                os._exit(LOOP_BROKEN)
        try:
            atexit._run_exitfuncs()  # noqa: SLF001 - the interpreter's own exit would wait for the hook's threads
            sys.stdout.flush()
        finally:
            os._exit(0)

    def _in_fork(self) -> None:
        """Close the wire and the loop's selector in a process that the hook forked."""
        replace_by_nothing(self._link.wire_guard.descriptor)
        if hasattr(self._watch, "fileno"):
            replace_by_nothing(self._watch.fileno())
        signal.set_wakeup_fd(-1)
        signal.signal(RELEASE_SIGNAL, signal.SIG_DFL)

    def _release(self, *_: Any) -> None:
        since = self._watch.since
        if since is None or since == self._freed or time.monotonic() - since < HELD_AFTER:
            return
        if self._link.signal_guard:
            self._link.signal_guard.afterwards = self._release
            return
        self._freed = since  # once for each block: later code is the hook's own cleanup
        raise CallTimedOut

    def _report(self, what: str, error: BaseException) -> None:
        self._tell(what, partial(describe_error, error, self._spec.folder))

    def _remark(self, text: str) -> None:
        self._tell("$remark", lambda: {"text": text})

    def _tell(self, what: str, make_params: Callable[[], dict[str, Any]]) -> None:
        try:
            with self._link.signal_guard as guard:
                self._link.send({"jsonrpc": "2.0", "method": what, "params": make_params()})
                guard.afterwards = None  # here no hook blocks the loop
        except BaseException:  # noqa: BLE001 - no report is possible any more
            os._exit(LOOP_BROKEN)

    def _boot(self) -> None:
        """Import the hook while the loop runs: some create tasks at import."""
        try:
            shapes = importlib.import_module(self._spec.shapes) if self._spec.shapes else None
            handlers = self._load(shapes)
            if self._spec.is_compared:
                self._idle.remember()
            found = msgspec.structs.replace(handlers.describe(), patches=tuple(self._requests.patches))
            self._link.send({"jsonrpc": "2.0", "method": "$ready", "params": found})
        except BaseException as error:  # noqa: BLE001 - importing a hook
            self._report("$broken", error)
            os._exit(IMPORT_FAILED)
        show = shapes.show_fields if shapes else None
        self._calls = HandlerCalls(self._spec, handlers, self._ends, self._link, self._requests, self._memory, show)
        if shapes:
            self._calls.enter_session = shapes.enter_session
        self._loop.add_reader(self._link.wire_guard.descriptor, self._read)
        self._read()

    def _load(self, shapes: ModuleType | None) -> Handlers:
        spec = self._spec
        if shapes is None:
            return load_handler(spec.label or spec.name, Path(spec.handler))
        handlers: Handlers = shapes.load(spec, self._requests, partial(self._report, "$trouble"), self._remark)
        return handlers

    def _read(self) -> None:
        self._link.read()
        self.dispatch()

    def dispatch(self) -> None:
        with self._link.signal_guard:
            for message in self._link.take():
                self._act(message)
            self._link.signal_guard.afterwards = None  # here no hook blocks the loop

    def _act(self, message: WireMessage) -> None:
        match message.method:
            case None:
                self._requests.answer(message)
            case "$cancel":
                self._calls.cancel(msgspec.json.decode(message.params)["id"])
            case "$stop":
                self._last = self._loop.create_task(self._stop())
            case "$events":
                self._calls.begin_batch(message)
            case "$kept":
                self._link.send({"jsonrpc": "2.0", "id": message.id, "result": self._memory.export()})
            case "$idle":
                left = {"obstacle": self._idle.find_obstacle(), "kept": self._memory.export()}
                self._link.send({"jsonrpc": "2.0", "id": message.id, "result": left})
            case "$adopt":
                self._memory.restore(msgspec.json.decode(message.params))
            case _:
                self._calls.begin(message)

    async def _stop(self) -> None:
        """Finish the running calls, and cancel tasks that the hook left running."""
        await self._calls.finish()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=TASKS_TIMEOUT)
        self._is_done = True
        self._loop.stop()


def run_worker(ends: WorkerDescriptors, fork_server: int, processes: int | None, add_modules: AddModules) -> NoReturn:
    """Become the worker that the daemon wants, in a fresh process, to its end."""
    ends = isolate(ends, fork_server, processes)
    with reserve_low_descriptors():
        watch = TimedSelector()
        loop = asyncio.SelectorEventLoop(watch)
    asyncio.set_event_loop(loop)
    link = WorkerLink(ends.wire)
    spec = _decode_spec(link.receive_first().params)["spec"]
    set_surroundings(spec)
    keep_context_in_threads()
    add_modules({name: Path(file) if file else None for name, file in spec.modules.items()})
    sys.path[:0] = spec.path
    sys.argv = [spec.handler]
    idle = IdleCheck(loop, spec.folder)
    if spec.sandbox is not None:
        _enter(spec.sandbox)  # no code of the hook has run yet, and only one thread exists
    Worker(spec, loop, watch, link, ends, idle).run()


def _enter(sandbox: Sandbox) -> None:
    try:
        restrict(sandbox)
    except OSError as error:
        print(f"it cannot be restricted: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the hook's own log
        os._exit(CANNOT_RESTRICT)


def main(start: dict[str, Any], add_modules: AddModules) -> NoReturn:
    """Run a worker in a fresh interpreter, on systems without forking."""
    log_to_stderr()
    run_worker(WorkerDescriptors(*start["ends"]), start["fork_server"], start["limit"], add_modules)
