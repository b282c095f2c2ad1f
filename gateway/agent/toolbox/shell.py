"""A shell for the agent: asked for, bounded in time and output, and ended with all that it started."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio
from anyio.abc import Process
from msgspec import Meta

from gateway.agent.tools import Tool, tool_from
from gateway.config.settings import ToolSettings

PLAIN_COMMAND = re.compile(r"[\w./=:@%+, -]+\Z", re.ASCII)
KILL_GRACE = 2.0
DRAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """Where commands run, and all of the environment that they get: ours is not inherited.

    A program of `shell_allow` runs without asking, as long as the command is nothing but the program and its words.
    """

    settings: ToolSettings
    folder: Path
    env: Mapping[str, str]

    def needs_approval(self, command: str) -> bool:
        """Must a person agree first? Not for a plain command whose program is allowed."""
        words = command.split()
        is_allowed = bool(words) and words[0] in self.settings.shell_allow and PLAIN_COMMAND.match(command) is not None
        return self.settings.shell == "ask" and not is_allowed


def make_shell_tool(shell: ShellOptions) -> Tool:
    """`shell`: asks first, unless it need not."""

    async def run(command: Annotated[str, Meta(min_length=1, max_length=20_000)]) -> str:
        """Run a command in a shell and get its output, standard error included."""
        return await run_command(shell, command)

    return tool_from(
        run,
        name="shell",
        asks=lambda args: shell.needs_approval(str(args["command"])),
        subject=lambda args: str(args["command"]),
    )


async def run_command(shell: ShellOptions, command: str) -> str:
    """The output of a command and how it ended; at its limit it is ended, and so is what it leaves behind."""
    process = await anyio.open_process(
        ["/bin/sh", "-c", command],
        cwd=shell.folder,
        env=dict(shell.env),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    output = _OutputBuffer(shell.settings.output_limit)
    try:
        with anyio.move_on_after(shell.settings.shell_timeout) as limit:
            await _read_output(process, output)
    finally:
        with anyio.CancelScope(shield=True):
            await _stop_process_group(process)
    text = output.text()
    if limit.cancelled_caught:
        return f"{text}\n[ended: it still ran after {shell.settings.shell_timeout:g} seconds]".lstrip()
    if process.returncode:
        return f"{text}\n[exit code {process.returncode}]".lstrip()
    return text or "[no output]"


async def _read_output(process: Process, output: "_OutputBuffer") -> None:
    """Read until the command is over, and not until all that it left running in the background is."""
    is_read = anyio.Event()

    async def read() -> None:
        assert process.stdout
        async for piece in process.stdout:
            output.add(piece)
        is_read.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await process.wait()
        with anyio.move_on_after(DRAIN_SECONDS):
            await is_read.wait()
        group.cancel_scope.cancel()


async def _stop_process_group(process: Process) -> None:
    """End the whole process group: politely, then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with anyio.move_on_after(KILL_GRACE):
            await process.wait()
            while _is_group_alive(process.pid):  # noqa: ASYNC110 - what others forked tells nobody when it ends
                await anyio.sleep(0.01)
            break
    await process.aclose()


def _is_group_alive(group: int) -> bool:
    """Does a process of this group still run? Zombies (which stay in a container without init) do not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    states = [stat.rpartition(")")[2].split() for stat in _read_process_stats()]
    return not states or any(words[2] == str(group) and words[0] not in "ZX" for words in states if len(words) > 2)


def _read_process_stats() -> Iterator[str]:
    """`/proc/<pid>/stat` of every process; nothing where there is no such thing."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            yield path.read_text(errors="replace")


class _OutputBuffer:
    """The beginning and the end of what comes, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = b""
        self._tail = b""
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        free = self._half - len(self._head)
        self._head += piece[:free]
        self._tail = (self._tail + piece[max(free, 0) :])[-self._half :]

    def text(self) -> str:
        lost = self._size - len(self._head) - len(self._tail)
        middle = f"\n[{lost} bytes left out]\n".encode() if lost > 0 else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace").rstrip()
