"""Forward events of other nodes to the people who watch events here.

While a person watches, the node of the watcher publishes a request to all other nodes, repeatedly, and the other nodes
send that node their events as live messages. Events during an interruption are lost, as for any watcher that is too
slow. While no person watches, no node sends events. The watcher's own node does not use this relay for its own events.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec

from gateway.daemon.nodes import EventRelay, ForwardedEvent, NoteEvent
from gateway.engine.interface import PART_BYTES, Engine
from gateway.errors import EngineError
from gateway.events.catalogue import remove_live_fields
from gateway.hooks import HookRegistry
from gateway.records import subjects

REPEAT = 5.0
LASTS = 15.0  # seconds after which a request ends unless it is repeated
LOOK_PATIENCE = 2.0  # seconds for a live gateway to answer

Names: TypeAlias = tuple[str, ...]


class EventRequest(msgspec.Struct, frozen=True):
    """A request for events of the given names, from one run of a gateway."""

    run_id: str
    names: Names


class SharedEventRelay(EventRelay):
    """Sends and receives events while `run` runs. `node` is the name under which other nodes get our events."""

    def __init__(self, engine: Engine, registry: HookRegistry, run_id: str, node: str) -> None:
        self._engine = engine
        self._registry = registry
        self._run_id = run_id
        self._node = node
        self._watchers: dict[Names, list[NoteEvent]] = {}
        self._wanted: dict[tuple[str, Names], float] = {}  # the ends of requests, by run and names
        self._news = anyio.Event()

    @contextmanager
    def watching(self, names: Sequence[str], note: NoteEvent) -> Iterator[None]:
        watchers = self._watchers.setdefault(tuple(names), [])
        watchers.append(note)
        self._news.set()
        try:
            yield
        finally:
            watchers.remove(note)
            if not watchers:
                self._watchers.pop(tuple(names), None)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._serve)
            await tasks.start(self._hear)
            await tasks.start(self._tell, tasks)
            task_status.started()
            while True:
                self._news = anyio.Event()
                for names in list(self._watchers):
                    request = msgspec.json.encode(EventRequest(self._run_id, names))
                    with suppress(EngineError):
                        await self._engine.publish(subjects.EVENT_REQUEST_SUBJECT, request)
                with anyio.move_on_after(REPEAT if self._watchers else None):
                    await self._news.wait()

    async def is_running(self, run_id: str) -> bool:
        """Return True if the run `run_id` is alive; a run that does not answer in time has ended, or hangs."""
        try:
            await self._engine.request(subjects.run_subject_of(run_id), b"", LOOK_PATIENCE)
        except (TimeoutError, EngineError):
            return False
        return True

    async def _serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Answer other nodes that ask whether this run is alive."""

        async def answer(_data: bytes) -> bytes:
            return b""

        stop_serving = await self._engine.serve(subjects.run_subject_of(self._run_id), answer)
        try:
            task_status.started()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await stop_serving()

    async def _hear(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        told = await self._engine.tail(subjects.forwarded_event_subject_of(self._run_id))
        task_status.started()
        async for record in told:
            event = msgspec.json.decode(record.data, type=ForwardedEvent)
            for note in list(self._watchers.get(event.names, ())):
                note(event)

    async def _tell(self, tasks: anyio.abc.TaskGroup, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        wishes = await self._engine.tail(subjects.EVENT_REQUEST_SUBJECT)
        task_status.started()
        async for record in wishes:
            request = msgspec.json.decode(record.data, type=EventRequest)
            if request.run_id == self._run_id:
                continue
            key = request.run_id, request.names
            is_new = key not in self._wanted
            self._wanted[key] = anyio.current_time() + LASTS
            if is_new:
                tasks.start_soon(self._tell_while_wanted, *key)

    async def _tell_while_wanted(self, run_id: str, names: Names) -> None:
        subject = subjects.forwarded_event_subject_of(run_id)

        async def tell(event_type: str, context: Mapping[str, Any]) -> None:
            fields = remove_live_fields(event_type, context)
            told = msgspec.json.encode(ForwardedEvent(names, self._node, event_type, fields), enc_hook=str)
            if len(told) <= PART_BYTES:
                with suppress(EngineError):
                    await self._engine.publish(subject, told)

        remove = self._registry.watch(list(names), tell)
        try:
            # A repeated request extends the time.
            while (left := self._wanted[run_id, names] - anyio.current_time()) > 0:  # noqa: ASYNC110
                await anyio.sleep(left)
        finally:
            remove()
            del self._wanted[run_id, names]
