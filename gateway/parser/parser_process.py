"""The process in which foreign pages, long JSON and foreign patterns are read: a worker of the fork server, for all.

A text can be written so that reading it takes for ever: tags that a parser of HTML looks for again and again, a regular
expression that tries all ways to fail. On the loop that would hold up everybody. So it is done in a worker, which has
no network, no file of anybody's, no secret and little memory, and is killed when it has run for two seconds: who asked
is told so, and the next who asks gets a new one. It is started when it is first wanted, and ends when nobody has wanted
it for a while.

What is asked is done one after the other: a page that takes its time must not use up that of another one.
"""

import asyncio
import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from gateway.errors import AgentError, HookError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.process_handle import write_memory_file
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.process_tree import read_process
from gateway.worker.protocol import CallMeta, WorkerSpec
from gateway.worker.sandbox import Sandbox, find_needed_paths

HANDLER = Path(__file__).with_name("handler.py")
TIME_LIMIT = 2.0  # seconds for one page or pattern
WAIT_LIMIT = 5.0  # seconds until it has had these, on a machine that is busy with other things
LOOK_PAUSE = 0.1  # seconds between two looks at how long it has run
MEMORY_LIMIT = 256_000_000  # bytes of data, where a page has two million at most
IDLE_LIMIT = 60.0  # seconds that it lives after it was last wanted
MOST_MATCHES = 10_000  # results that are remembered
DECIDES = CallMeta(decides=True, writable=())


class ParserProcess:
    """`read_page`, `match` and `compact`; each raises AgentError, in words for who asked, when it cannot be done."""

    def __init__(self, fork_server: ForkServerClient, log: Path, idle: float = IDLE_LIMIT) -> None:
        self._fork_server = fork_server
        self._log = log
        self._idle = idle
        self._turn = anyio.Lock()
        self._worker: WorkerHandle | None = None
        self._input = -1  # the worker's: a file in memory, of which neither side has to make lines
        self._end: asyncio.TimerHandle | None = None
        self._matches: dict[tuple[str, str], bool] = {}

    @property
    def pid(self) -> int:
        """Of the process that there is now; 0: there is none."""
        return self._worker.process.pid if self._worker and not self._worker.gone else 0

    async def read_page(self, body: bytes, kind: str, charset: str, limit: int) -> str:
        """The text of a document of this media type, HTML without its tags; at most so many characters of it."""
        return await self._ask("page", "the page", body, {"kind": kind, "charset": charset, "limit": limit})

    async def compact(self, message: bytes, limit: int) -> bytes:
        """The same JSON-RPC message, with texts of at most so many characters in it."""
        return (await self._ask("message", "the answer", message, {"limit": limit})).encode()

    async def match(self, pattern: str, names: Sequence[str]) -> bool:
        """Whether the whole of one of these names is what this regular expression describes."""
        unknown = [name for name in names if (pattern, name) not in self._matches]
        if unknown:
            about = {"pattern": pattern, "names": unknown}
            if len(self._matches) > MOST_MATCHES:
                self._matches.clear()
            matching = await self._ask("pattern", f"the pattern {pattern[:200]!r}", b"", about)
            self._matches |= {(pattern, name): name in matching.split("\n") for name in unknown}
        return any(self._matches.get((pattern, name)) for name in names)

    async def _ask(self, verb: str, what: str, data: bytes, about: Mapping[str, Any]) -> str:
        async with self._turn:
            worker = await self._ready(what)
            _write_anew(self._input, data)
            try:
                with _limiting_time(worker.process.pid):
                    answer = await worker.call(verb, about, DECIDES, 2 * WAIT_LIMIT)
            except TimeoutError:
                raise AgentError(f"{what} could not be read within {TIME_LIMIT:g} s") from None
            except HookFailed as failed:
                raise AgentError(f"{what} could not be read: {failed}") from None
            else:
                self._end = asyncio.get_running_loop().call_later(self._idle, self._finish)
            finally:
                if self._end is None:  # late, failed or given up: whatever it does now, nobody waits for it
                    self._finish()
        # In base64 no text can look like a message of many values, which the wire refuses.
        return base64.b64decode(answer.result["text"]).decode("utf-8", "replace")

    async def _ready(self, what: str) -> WorkerHandle:
        """A process that does nothing now, and will not end for idleness."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._worker is None or self._worker.gone:
            self._finish()
            self._input = write_memory_file("parser")
            spec = WorkerSpec(
                name="parser",
                handler=str(HANDLER),
                env={},
                options={},
                path=(),
                modules={},
                memory=MEMORY_LIMIT,
                plugin=None,
                is_offline=True,
                label="",
                sandbox=Sandbox(read=find_needed_paths()),
            )
            try:
                self._worker = await self._fork_server.start(spec, _refuse, self._log, stdin=self._input)
            except HookFailed as failed:
                raise AgentError(f"{what} could not be read: no process can be made for it: {failed}") from None
        return self._worker

    def _finish(self) -> None:
        worker, self._worker, self._end = self._worker, None, None
        if worker is not None:
            worker.process.kill("the gateway does not need it any more")
        if self._input >= 0:
            os.close(self._input)
            self._input = -1


def _write_anew(descriptor: int, data: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)


@contextmanager
def _limiting_time(pid: int) -> Iterator[None]:
    """Raises TimeoutError once this process has had its time, or does not get it."""
    loop, before = asyncio.get_running_loop(), read_process(pid)
    timers: list[asyncio.TimerHandle] = []

    def look() -> None:
        now = read_process(pid)
        if now is None or before is None or now.ran - before.ran >= TIME_LIMIT - LOOK_PAUSE:
            scope.cancel()
        else:
            timers[:] = [loop.call_later(LOOK_PAUSE, look)]

    timers.append(loop.call_later(TIME_LIMIT, look))
    with anyio.move_on_after(WAIT_LIMIT) as scope:
        try:
            yield
        finally:
            timers[0].cancel()
    if scope.cancelled_caught:
        raise TimeoutError


async def _refuse(verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise HookError(f"the parser asks for nothing, and wanted {verb!r}")
