"""A thread that works through jobs in batches, and reports each batch to the event loop at once.

The event loop never waits for the thread, and the thread never waits for the loop. A queue passes jobs to the thread,
and one call passes the results of a whole batch to the loop. If a caller is cancelled, the thread still does its job,
and the result is dropped.

Each field belongs to one side. The loop has `is_closed` and `_round`, the jobs of the loop's current iteration: waking
the thread for each job would cost more than the job, so the first job of an iteration schedules `_hand_over`, which
puts all its jobs into the queue at once. The thread has `_left`, the jobs that it took out of the queue beyond
MAX_BATCH. The two sides share the queue and the loop's `call_soon_threadsafe`, nothing else: no lock.

To end the thread, `stop` puts an empty list into the queue, `NO_MORE_JOBS`, behind all jobs. If `_gather` takes this
list after other jobs, it puts the list back, so that the thread does these jobs first and the next `_gather` finds the
list alone.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from gateway.errors import EngineError

MAX_BATCH = 500
NO_MORE_JOBS: list[Any] = []

log = logging.getLogger(__name__)

T = TypeVar("T")
ResourceT = TypeVar("ResourceT")


class ThreadJob(msgspec.Struct, Generic[ResourceT, T]):
    """A job for the thread's resource, and its result. Without a future no caller waits for the job."""

    work: Callable[[ResourceT], T]
    future: "asyncio.Future[T] | None" = None
    value: T | None = None
    error: Exception | None = None

    def resolve(self) -> None:
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(cast(T, self.value))


class JobHandler(Protocol[ResourceT]):
    """The work of a `JobThread`; all methods run on the thread."""

    def open(self) -> None: ...

    def serve(self, jobs: list[ThreadJob[ResourceT, Any]]) -> Callable[[], None] | None:
        """Do the jobs; the returned function runs on the event loop before the callers get their results."""

    def rest(self) -> float | None:
        """Do the handler's own work between jobs; return the longest wait for the next job, None for no limit."""

    def close(self) -> None: ...


class JobThread(Generic[ResourceT]):
    """One thread and the handler of its jobs."""

    def __init__(self, name: str, handler: JobHandler[ResourceT]) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._round: list[ThreadJob[ResourceT, Any]] = []
        self._queue: SimpleQueue[list[ThreadJob[ResourceT, Any]]] = SimpleQueue()
        self._left: list[ThreadJob[ResourceT, Any]] = []
        self._began: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        """Start the thread; raises the exception of the handler's `open`."""
        self._thread.start()
        await asyncio.shield(self._began)

    async def stop(self) -> None:
        """End the thread after all earlier jobs."""
        if not self.is_closed:
            self.is_closed = True
            self._hand_over()
            self._queue.put(NO_MORE_JOBS)
        if self._thread.ident is not None:
            await asyncio.shield(self._ended)

    def submit(self, work: Callable[[ResourceT], T]) -> "asyncio.Future[T]":
        """Queue a job; the returned future gets the result or the exception of `work`."""
        future: asyncio.Future[T] = self._loop.create_future()
        self.post(work, future)
        return future

    def post(self, work: Callable[[ResourceT], T], future: "asyncio.Future[T] | None" = None) -> None:
        """Queue a job; without a future its result is dropped."""
        if self.is_closed:
            raise EngineError("the journal is closed")
        self._round.append(ThreadJob(work, future))
        if len(self._round) == 1:
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if self._round:
            jobs, self._round = self._round, []
            self._queue.put(jobs)

    def _run(self) -> None:
        try:
            try:
                self._handler.open()
            except BaseException as error:  # noqa: BLE001 - any error goes to the caller that opens
                self._call_loop(self._began.set_exception, error)
                return
            self._call_loop(self._began.set_result, None)
            with closing(self._handler):
                while jobs := self._gather():
                    self._do(jobs)
        finally:
            self._call_loop(self._ended.set_result, None)

    def _gather(self) -> list[ThreadJob[ResourceT, Any]]:
        """Wait for jobs and return at least one, or an empty list at the end."""
        jobs = self._left or self._await_jobs()
        while jobs and len(jobs) < MAX_BATCH:
            try:
                more = self._queue.get_nowait()
            except Empty:
                break
            if not more:
                self._queue.put(NO_MORE_JOBS)  # for the next `_gather`: these jobs come first
                break
            jobs += more
        self._left = jobs[MAX_BATCH:]
        return jobs[:MAX_BATCH]

    def _await_jobs(self) -> list[ThreadJob[ResourceT, Any]]:
        while True:
            with suppress(Empty):
                return self._queue.get(timeout=self._handler.rest())

    def _do(self, jobs: list[ThreadJob[ResourceT, Any]]) -> None:
        try:
            after = self._handler.serve(jobs)
        except Exception as error:
            # A bug of ours must not leave the callers waiting for ever.
            log.exception("the journal's thread failed")
            after = None
            for job in jobs:
                job.error = EngineError(f"the journal failed: {error!r}")

        def report() -> None:
            if after is not None:
                after()
            for job in jobs:
                job.resolve()

        self._call_loop(report)

    def _call_loop(self, call: Callable[..., object], *args: object) -> None:
        # If the loop was closed without closing this thread, no caller waits any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)
