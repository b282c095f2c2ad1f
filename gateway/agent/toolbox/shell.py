"""A shell for the agent: asked for, bounded in time and output, and ended with all that it started."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import anyio
from msgspec import Meta

from gateway.agent.tools import Tool, tool_from
from gateway.config.settings import ToolSettings
from gateway.worker.protocol import CommandSpec

PLAIN_COMMAND = re.compile(r"[\w./=:@%+, -]+\Z", re.ASCII)

RunCommand: TypeAlias = Callable[[CommandSpec, Callable[[bytes], None]], Awaitable[int]]
"""Runs a program, gives what it prints to the function, and returns its exit code when nothing is left of it."""


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """Where commands run, and all of the environment that they get: ours is not inherited.

    A program of `shell_allow` runs without asking, as long as the command is nothing but the program and its words.
    """

    settings: ToolSettings
    folder: Path
    env: Mapping[str, str]
    run: RunCommand

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
    """The output of a command and how it ended; when it is over, or at its limit, so is all that it started."""
    spec = CommandSpec(program=("/bin/sh", "-c", command), folder=str(shell.folder), env=dict(shell.env))
    output = _OutputBuffer(shell.settings.output_limit)
    status = 0
    with anyio.move_on_after(shell.settings.shell_timeout) as limit:
        status = await shell.run(spec, output.add)
    text = output.text()
    if limit.cancelled_caught:
        return f"{text}\n[ended: it still ran after {shell.settings.shell_timeout:g} seconds]".lstrip()
    if status:
        return f"{text}\n[exit code {status}]".lstrip()
    return text or "[no output]"


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
