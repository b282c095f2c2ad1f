"""The life of a hook's process: its start, the handover to the next process, and its death.

The gateway reaches the process over a wire, the connection to the process. `state` tells a caller what to expect: the
caller waits while a wire is being opened, and gets the reason if the wire is broken.
"""

import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import anyio
import msgspec

from gateway.backoff import Backoff
from gateway.errors import HookError
from gateway.hooks.folders.handlers import HandlerTargets
from gateway.hooks.places.idle import check_idle
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.trusted_copy import use_copy
from gateway.hooks.registry import INTERCEPT_LIMIT
from gateway.hooks.services import HookServices
from gateway.hooks.stats import HookState
from gateway.hooks.wires.wire import Capability, Disconnection, HookAnswer, HookFailed, Wire
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.threads import run_in_thread
from gateway.worker.protocol import CallMeta
from gateway.yaml_source.units import format_duration

STOP_TIMEOUT = 2.0  # seconds in which a wire has to end
RESTARTS = Backoff(0.05, 30.0)  # seconds between a death and the next start
STABLE_AFTER = 60.0  # seconds after which a death is no failed start
MOST_KILLED_STARTS = 5
LOOK_INTERVAL = 600.0  # seconds between two checks of `hooks.idle`, which may change
MAX_RESTART_WAIT = 1.0  # seconds: an interceptor does not wait for a restart that is further away

StartWire = Callable[[bool], Coroutine[Any, Any, None]]

log = logging.getLogger("gateway.hooks")


class WireHandover(msgspec.Struct, eq=False):
    """The handover from one wire to the next, and the count of the calls on each wire.

    The gateway uses the old wire until the new wire is ready. The old wire finishes its calls, and ends. Observers wait
    for this end, so that no effect of the old wire comes after the new wire's first event. Interceptors do not wait for
    this end, because a turn waits for the interceptors.
    """

    _users: dict[Wire, int] = {}
    _eased: anyio.Event | None = None  # exists only while a caller waits for it
    eased_at: float = 0.0  # when a call ended last

    @contextmanager
    def using(self, wire: Wire) -> Iterator[None]:
        """Count a call on this wire within the context.

        A call that the end of the fork server cut off fails as "orphaned".
        """
        self.enter(wire)
        try:
            yield
        except HookFailed as failed:
            if not wire.gone.is_orphaned or failed.kind == "orphaned":
                raise
            raise HookFailed(str(failed), kind="orphaned", traceback=failed.traceback) from failed
        finally:
            self.leave(wire)

    def enter(self, wire: Wire) -> None:
        """Count one more user of this wire: a call, or the wire's own end."""
        self._users[wire] = self._users.get(wire, 0) + 1

    def leave(self, wire: Wire) -> None:
        """Remove one user of this wire from the count."""
        self._users[wire] -= 1
        if not self._users[wire]:
            del self._users[wire]
        self.eased_at = time.monotonic()
        if self._eased:
            self._eased.set()
            self._eased = None

    def is_used(self, wire: Wire) -> bool:
        """Tell whether a call runs on this wire."""
        return wire in self._users

    def is_alone(self, wire: Wire) -> bool:
        """Tell whether no call runs on any other wire."""
        return all(other is wire for other in self._users)

    async def wait_for_change(self) -> None:
        """Wait until a caller has left any of the wires."""
        self._eased = self._eased or anyio.Event()
        await self._eased.wait()

    async def wait_finished(self, wire: Wire) -> None:
        """Wait until no call runs on this wire, so that the caller is the last user of the wire."""
        while self._users[wire] > 1:
            await self.wait_for_change()


class DecisionWire:
    """The wire to a hook whose decision a turn waits for: a call that the fork server cut off is repeated.

    `used` keeps the wires of its calls in use until the decision is made.
    """

    def __init__(self, process: "HookProcess", wire: Wire, used: ExitStack) -> None:
        self._process = process
        self._used = used
        self._use(wire)

    @property
    def gone(self) -> Disconnection:
        return self._wire.gone

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        while True:
            try:
                return await self._wire.call(name, fields, meta, timeout)
            except HookFailed as failed:
                if not self._wire.gone.is_orphaned and failed.kind != "orphaned":
                    raise
            self._use(await self._process.get_wire(timeout))

    async def stop(self, grace: float) -> None:
        await self._wire.stop(grace)

    def _use(self, wire: Wire) -> None:
        self._wire = wire
        self._used.enter_context(self._process.using(wire))


class HookProcess:
    """The process of one hook, and the wire to it.

    `revive` opens the next wire; `revive(True)` also replaces a wire that is alive. `may_rest` tells whether the
    process may end while nothing calls it.
    """

    def __init__(self, name: str, services: HookServices, revive: StartWire, may_rest: Callable[[], bool]) -> None:
        self.state: HookState = "registered"
        self.reason = ""
        self.restarts = 0
        self.loaded_at = 0.0
        self.wire: Wire | None = None  # the current wire
        self.targets: HandlerTargets | None = None
        self._told: Wire | None = None  # the last wire that received an event
        self._handover = WireHandover()
        self.using = self._handover.using
        self._name = name
        self._services = services
        self._revive = revive
        self._may_rest = may_rest
        self.is_resting = False  # the process has ended, since nothing called it
        self._kept: Mapping[str, Any] = {}  # values of the process that rests, for turns that go on
        self._settled: anyio.Event | None = None  # exists only while the process is being started
        self._scope: anyio.CancelScope | None = None
        self._falls = 0
        self._killed_starts = 0  # in a row
        self._due = 0.0
        self._is_over = False
        self._is_orphaned = False  # the process died with the fork server

    @property
    def is_silent(self) -> bool:
        """Tell whether nothing calls the process now, and it could come back unchanged."""
        wire = self.wire
        return wire is not None and not wire.gone and not self._handover.is_used(wire) and self._may_rest()

    def enter(self, state: HookState, reason: str = "") -> None:
        self.state, self.reason = state, self._services.redact(reason)
        if state in ("starting", "waiting"):
            self._settled = self._settled or anyio.Event()
        elif self._settled:
            self._settled.set()
            self._settled = None

    def cancel_start(self) -> None:
        """Cancel a start that is no longer wanted."""
        if self._scope:
            self._scope.cancel()

    async def start(self, version: HookVersion, serve: Capability) -> Wire | None:
        """Open a new wire, then let the old wire end; return None if the start was cancelled.

        Raises:
            HookError: the new wire could not be opened; the old wire, if any, goes on.
        """
        with anyio.CancelScope() as self._scope:
            try:
                wire = await _open_wire(self._name, version, self._services, serve)
            except (OSError, RuntimeError) as error:  # no descriptor, thread or process is left, for now
                raise HookFailed(f"the system gives it no process: {error}", kind="short") from error
        if self._scope.cancelled_caught:
            return None
        old, self.wire = self.wire, wire
        if old:
            self._handover.enter(old)
        self.targets = HandlerTargets(wire, is_plugin=version.dialect.starts_early)
        self.loaded_at = time.time()
        self._killed_starts = 0
        self._is_orphaned = self.is_resting = False
        self.enter("loaded")
        if self._kept and isinstance(wire, WorkerHandle):
            wire.adopt(self._kept)
            self._kept = {}
        if old:
            self._services.tasks.start_soon(self._leave, old, wire)
        self._services.tasks.start_soon(self._attend, wire)
        return wire

    async def stop(self, *, rests: bool = False) -> None:
        """End the process and drop its offers; running calls have a moment to end.

        If `rests` is set, the process will come back unchanged, and keeps its offers.
        """
        wire, self.wire, self.is_resting = self.wire, None, rests
        if not rests:
            self.targets = None
        if wire:
            with self._services.endings.ending(wire):
                await wire.stop(STOP_TIMEOUT)

    async def end(self) -> None:
        self._is_over = True
        self.cancel_start()
        if self._settled:
            self._settled.set()
        await self.stop()

    async def get_wire(self, patience: float | None) -> Wire:
        """Return the wire, after opening it if necessary. Raises HookFailed if the wire is late.

        If the hook died with the fork server, the caller waits at least as long as a decision may take.
        """
        wire = self.wire
        if wire and not wire.gone:
            return wire
        if wire:
            self._lose(wire)
        if self.state == "registered":
            self.enter("starting")
            self._services.tasks.start_soon(self._revive, False)
        if self._is_orphaned and patience is not None:
            patience = max(patience, INTERCEPT_LIMIT)
        is_near = patience is None or self._due - time.monotonic() < MAX_RESTART_WAIT
        if self._settled and (self.state == "starting" or (self.state == "waiting" and is_near)):
            with anyio.move_on_after(patience):
                await self._settled.wait()
        if not (wire := self.wire):
            why = f"it is {self.state}: {self.reason}" if self.reason else f"it is {self.state}"
            raise HookFailed(why, kind="orphaned" if self._is_orphaned else "refused")
        return wire

    async def get_wire_alone(self) -> Wire:
        """Return the wire once the previous wire has ended.

        The first event also waits for the wires of removed hooks: a removed hook may have been this hook, under another
        name.
        """
        while True:
            wire = await self.get_wire(None)
            if not self._handover.is_alone(wire):
                await self._handover.wait_for_change()
            elif self._told is not wire:
                await self._services.endings.wait()
                self._told = wire
            else:
                return wire

    def replace_if_worn(self) -> None:
        """Replace a worker that ran out of memory by a new worker."""
        wire = self.wire
        if isinstance(wire, WorkerHandle) and wire.is_worn and not wire.gone:
            wire.is_worn = False  # once
            self._services.tasks.start_soon(self._revive, True)

    async def _leave(self, old: Wire, new: Wire) -> None:
        """Let the old wire finish its calls, pass its worker's values for turns to the new worker, and end it."""
        try:
            await self._handover.wait_finished(old)
            kept = await old.ask("$kept") if isinstance(old, WorkerHandle) and not new.gone else None
            if isinstance(new, WorkerHandle) and isinstance(kept, dict):
                new.adopt(kept)
            await old.stop(STOP_TIMEOUT)
        finally:
            self._handover.leave(old)

    async def _attend(self, wire: Wire) -> None:
        """Watch the wire until it is gone; after `hooks.idle` without a call, end a process that may rest."""
        begun, pause = time.monotonic(), self._services.settings.idle
        while not wire.gone:
            with anyio.move_on_after(pause or LOOK_INTERVAL):
                await wire.gone.wait()
            idle = self._services.settings.idle
            silence = time.monotonic() - max(begun, self._handover.eased_at)
            pause = max(idle - silence, 0) or idle
            if idle and silence >= idle and wire is self.wire and self.is_silent:
                await self._rest(wire, idle)
        self._lose(wire)

    async def _rest(self, wire: Wire, idle: float) -> None:
        """End the process, unless it would lose something, or a call has come."""
        answer = await check_idle(wire)
        if answer.obstacle:
            log.debug("%s stays, though it is not called: %s", self._name, answer.obstacle, extra={"hook": self._name})
        elif wire is self.wire and self.is_silent:
            self._kept = answer.kept if any(answer.kept.values()) else {}
            self.enter("registered", f"it was not called for {format_duration(idle)}; it starts at its next event")
            await self.stop(rests=True)

    def _lose(self, wire: Wire) -> None:
        """Note that the process died, and start it again; a second note of the same death has no effect."""
        if wire is not self.wire or self._is_over:
            return
        self.wire = None
        self.restarts += 1
        if time.time() - self.loaded_at > STABLE_AFTER:
            self._falls = 0
        if not isinstance(wire, WorkerHandle):  # a worker writes its own log
            self._services.note(self._name, wire.gone.reason)
        self.start_again(wire.gone.reason, wire.gone.is_orphaned)

    def retry_start(self, error: HookError) -> bool:
        """Start a process again if its failure was not the hook's fault; return False otherwise.

        A process that is killed at each start may be to blame, so its starts are limited.
        """
        kind = error.kind if isinstance(error, HookFailed) else ""
        self._killed_starts += kind == "killed"
        is_innocent = kind in ("orphaned", "short") or (kind == "killed" and self._killed_starts <= MOST_KILLED_STARTS)
        if is_innocent:
            self.start_again(str(error), kind == "orphaned")
        return is_innocent

    def start_again(self, why: str, is_orphaned: bool) -> None:
        """Start the process again after a pause.

        The pause grows with each early death in a row, unless the fork server caused the death.
        """
        self._is_orphaned = is_orphaned
        self._falls += not is_orphaned
        pause = RESTARTS.first if is_orphaned else RESTARTS.pause_after(self._falls)
        self._due = time.monotonic() + pause
        self.enter("waiting", f"{why}; it is started again")
        log.warning("%s: %s; it is started again in %.2g s", self._name, why, pause, extra={"hook": self._name})
        self._services.tasks.start_soon(self._rise, pause)

    async def _rise(self, pause: float) -> None:
        await anyio.sleep(pause)
        if self.state == "waiting":
            await self._revive(False)


async def _open_wire(name: str, version: HookVersion, services: HookServices, serve: Capability) -> Wire:
    environment = services.environment
    if environment.ports.file_writer and version.manifest:
        await environment.ports.file_writer.keep_files(version.manifest.reading.files)
    if version.pinned and version.files:
        version = await run_in_thread(use_copy, version, environment.copies)
    return await version.source.open_wire(version, services, serve, environment.log_of(name))
