"""The configured servers of tools: each starts when a turn first wants it, and again, with back-off, when it ends.

A server belongs to a task of its own for as long as it is configured. A turn that wants its tools waits a while for its
start, and learns why when there are none.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import anyio
import anyio.abc
import msgspec

from gateway.agent.mcp.client import CONNECT_TIMEOUT, McpConnection, McpSpec, connect
from gateway.agent.mcp.trust import SnapshotStore
from gateway.agent.tools import Tool
from gateway.backoff import Attempts, Backoff
from gateway.errors import AgentError, describe_error, unwrap_error
from gateway.worker.tool_names import prefix_of

log = logging.getLogger(__name__)

START_WAIT = 20.0  # how long a turn waits for a server that is being started
BACKOFF = Backoff(0.5, 60.0, 0.8, 1.2)
STABLE_AFTER = 60.0  # a server that was up for so long begins with the small pauses again


class McpServer(msgspec.Struct, eq=False):
    """One server of tools. `state` and `reason` are for display."""

    spec: McpSpec
    _snapshots: SnapshotStore
    state: Literal["idle", "starting", "up", "down"] = "idle"
    reason: str = ""
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    _connection: McpConnection | None = None
    _wanted: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _tried: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _last_line: str = ""

    @property
    def prefix(self) -> str:
        return prefix_of(self.spec.name)

    @property
    def changed(self) -> Mapping[str, str]:
        """Its tools that have changed since a person last saw them, and how; known while it is up."""
        return self._connection.changed if self._connection else {}

    async def tools(self) -> Sequence[Tool]:
        """Return the server's tools; the first call starts it. Raises AgentError if they cannot be had now."""
        self._wanted.set()
        with anyio.move_on_after(START_WAIT):
            await self._tried.wait()
        connection = self._connection
        if connection is None or connection.ended.is_set():
            why = self.reason or "it is still being started"
            raise AgentError(f"The tools of {self.spec.name} cannot be used now: {why}.")
        try:
            with anyio.fail_after(START_WAIT):
                return await connection.tools()
        except Exception as error:
            connection.ended.set()
            raise AgentError(
                f"The tools of {self.spec.name} cannot be used now: {_describe_failure(error)}."
            ) from error

    async def serve(self) -> None:
        """Keep the server until it is not configured any more."""
        attempts = Attempts(BACKOFF, STABLE_AFTER)
        with self.scope:
            while True:
                await self._wanted.wait()
                begun = time.monotonic()
                was_up = await self._run_once()
                pause = attempts.pause(time.monotonic() - begun if was_up else 0.0)
                log.warning("the tool server %s: %s; again in %.1f s", self.spec.name, self.reason, pause)
                await anyio.sleep(pause)
                self._tried = anyio.Event()
                if not was_up:
                    self._wanted = anyio.Event()
        self.scope = anyio.CancelScope()

    async def _run_once(self) -> bool:
        """Run the server from its start to its end. Returns whether it was up."""
        self.state, self._last_line, was_up = "starting", "", False
        try:
            async with connect(self.spec, self._note_line, self._snapshots) as connection:
                with anyio.fail_after(CONNECT_TIMEOUT):
                    await connection.tools()
                was_up = True
                self._connection, self.state, self.reason = connection, "up", ""
                self._tried.set()
                log.info("the tool server %s is up", self.spec.name)
                await connection.ended.wait()
            self.reason = self._with_last_line("it ended")
        except Exception as error:  # noqa: BLE001 - a server is foreign, and so is the library that reaches it
            self.reason = self._with_last_line(_describe_failure(error))
        finally:
            self._connection, self.state = None, "down"
            self._tried.set()
        return was_up

    def _note_line(self, line: str) -> None:
        self._last_line = line
        log.info("%s says: %s", self.spec.name, line)

    def _with_last_line(self, reason: str) -> str:
        return f"{reason} (its last words: {self._last_line[:300]})" if self._last_line else reason


class McpServers:
    """All servers of tools. `run` keeps them; `update` replaces the list."""

    def __init__(self, specs: Iterable[McpSpec], snapshots: SnapshotStore) -> None:
        self.servers: Mapping[str, McpServer] = {}
        self._snapshots = snapshots
        self._tasks: anyio.abc.TaskGroup | None = None
        self.update(specs)

    @property
    def specs(self) -> list[McpSpec]:
        return [server.spec for server in self.servers.values()]

    def update(self, specs: Iterable[McpSpec]) -> None:
        """Replace the list of servers: unchanged ones go on, others end, and a new one waits until a turn wants it."""
        before = self.servers
        self.servers = {
            spec.name: before[spec.name]
            if spec.name in before and before[spec.name].spec == spec
            else McpServer(spec, self._snapshots)
            for spec in specs
        }
        for name, server in before.items():
            if self.servers.get(name) is not server:
                server.scope.cancel()
        for name, server in self.servers.items():
            if self._tasks and before.get(name) is not server:
                self._tasks.start_soon(server.serve, name=f"mcp {name}")

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the servers until cancelled; then all of them end."""
        try:
            async with anyio.create_task_group() as self._tasks:
                for name, server in self.servers.items():
                    self._tasks.start_soon(server.serve, name=f"mcp {name}")
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._tasks = None


def _describe_failure(error: BaseException) -> str:
    error = unwrap_error(error)
    return f"program {error.filename} not found" if isinstance(error, FileNotFoundError) else describe_error(error)
