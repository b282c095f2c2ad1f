"""A shell for the agent: asked for, bounded in time and output, and ended with all that it started."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import anyio
from msgspec import Meta

from gateway.agent.toolbox.shell_rules import PlainCommand, RuleTable, ShellPlaces
from gateway.agent.tools import Tool, tool_from
from gateway.config.settings import ToolSettings
from gateway.worker.protocol import CommandSpec

RunCommand: TypeAlias = Callable[[CommandSpec, Callable[[bytes], None]], Awaitable[int]]
"""Runs a program, gives what it prints to the function, and returns its exit code when nothing is left of it."""


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """Where commands run, and all of the environment that they get: ours is not inherited."""

    settings: ToolSettings
    places: ShellPlaces
    env: Mapping[str, str]
    run: RunCommand

    def needs_approval(self, command: str) -> bool:
        """Must a person agree first? Not where a rule of `shell_allow` lets it run."""
        return self.settings.shell == "ask" and self.find_plain_command(command) is None

    def find_plain_command(self, command: str) -> PlainCommand | None:
        """The command as a rule lets it run unasked; None where it is one for a shell."""
        return (
            None if self.settings.shell == "allow" else RuleTable(self.settings.shell_allow).find(command, self.places)
        )


def make_shell_tool(shell: ShellOptions) -> Tool:
    """`shell`: asks first, unless it need not."""

    async def run(command: Annotated[str, Meta(min_length=1, max_length=20_000)]) -> str:
        """Run a command in a shell and get its output, standard error included."""
        return await run_command(shell, command)

    return tool_from(
        run,
        name="shell",
        asks=lambda args, _facts: shell.needs_approval(str(args["command"])),
        subject=lambda args: str(args["command"]),
    )


async def run_command(shell: ShellOptions, command: str) -> str:
    """The output of a command and how it ended; when it is over, or at its limit, so is all that it started."""
    plain = shell.find_plain_command(command) or PlainCommand(("/bin/sh", "-c", command), {})
    spec = CommandSpec(program=plain.program, folder=str(shell.places.folder), env={**shell.env, **plain.env})
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
