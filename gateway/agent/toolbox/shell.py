"""A shell for the agent: asked for, bounded in time and output, and ended with all that it started."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any, TypeAlias

import anyio
import msgspec
from msgspec import Meta

from gateway.agent.context_files import RunningCommand
from gateway.agent.toolbox.shell_rules import PlainCommand, RuleTable, ShellPlaces, read_job_question
from gateway.agent.toolbox.shell_sandbox import ShellSandbox, is_refused, is_trusted
from gateway.agent.tools import Tool, ToolContext, tool_from
from gateway.config.settings import ToolSettings
from gateway.errors import AgentError
from gateway.events import is_yes
from gateway.worker.protocol import CommandSpec

RunCommand: TypeAlias = Callable[[CommandSpec, Callable[[bytes], None]], Awaitable[int]]
"""Runs a program, gives what it prints to the function, and returns its exit code when nothing is left of it."""

WatchCommand: TypeAlias = Callable[[], AbstractAsyncContextManager[RunningCommand]]

SHELL = "shell"
LONGEST_COMMAND = 20_000
ASK_OUTSIDE = (
    "It failed, maybe because of the sandbox. May I run it once outside of it, with all your rights? Programs "
    "of this folder that it runs (hooks of git, a Makefile, a script) have them too. Earlier commands may have "
    "changed these."
)
MAY_BE_SANDBOX = "[it may be the sandbox: `tools.sandbox` of the configuration says what commands reach]"
NOT_OUTSIDE = (
    "It failed, maybe because of the sandbox (`tools.sandbox` of the configuration says what commands reach), "
    "and the person did not let it run outside of it."
)
NO_OUTPUT = "[no output]"
CHANGED_INSTRUCTIONS = (
    "[{name} changed. It steers later turns, so these go on with its former text, until the owner of the "
    "gateway has read it and touched it: touch {path}. Tell the person what you would change there.]"
)


class ShellOptions(msgspec.Struct, frozen=True):
    """The folder of commands, and their whole environment: ours is not inherited."""

    settings: ToolSettings
    find_places: Callable[[Mapping[str, Any]], ShellPlaces]  # by the facts of the turn: those of the person who asks
    env: Mapping[str, str]
    run: RunCommand
    sandbox: ShellSandbox
    watch: WatchCommand  # notices whether a command changes what steers later turns

    def needs_approval(self, command: str, facts: Mapping[str, Any]) -> bool:
        """Return True if a person must approve first: no rule allows it, and the sandbox does not contain it."""
        if self.settings.shell == "allow" or self.is_held(facts):
            return False
        return self.find_plain_command(command, self.find_places(facts)) is None

    def is_held(self, facts: Mapping[str, Any]) -> bool:
        """Return True if the sandbox, without network, replaces an approval."""
        return self.settings.shell == "sandboxed" and self.sandbox.is_held and is_trusted(facts)

    def find_plain_command(self, command: str, places: ShellPlaces) -> PlainCommand | None:
        """Return the command as a rule lets it run unasked; None for a command that needs a shell."""
        if self.settings.shell == "allow":
            return None
        return RuleTable(self.settings.shell_allow).find(command, places)

    def make_spec(self, command: str, facts: Mapping[str, Any], is_outside: bool) -> CommandSpec:
        places = self.find_places(facts)
        plain = self.find_plain_command(command, places)
        words, env = (plain.program, {**self.env, **plain.env}) if plain else (("/bin/sh", "-c", command), self.env)
        sandbox = None if is_outside else self.sandbox.make(places, is_offline=plain is None and self.is_held(facts))
        front = () if is_outside else self.sandbox.find_front(places)
        return CommandSpec(program=(*front, *words), folder=str(places.folder), env=dict(env), sandbox=sandbox)


class CommandOutput(msgspec.Struct, frozen=True):
    """The output of a command and its end, in words; and if the sandbox may be the reason of a failure.

    `status` is its exit code; None: it was ended at its limit.
    """

    text: str
    status: int | None = 0
    may_be_sandbox: bool = False


def make_shell_tool(shell: ShellOptions) -> Tool:
    """Make `shell`, which asks first if necessary, and again if the sandbox may have made a command fail."""

    async def run(command: Annotated[str, Meta(min_length=1, max_length=LONGEST_COMMAND)], context: ToolContext) -> str:
        """Run a command in a shell and get its output, standard error included."""
        if found := read_job_question(command):
            if context.chat is None:
                raise AgentError("jobs belong to chats, and this turn has none")
            return await context.chat.read_jobs(*found)
        ask, question = context.ask if is_trusted(context.facts) else None, _question_of(command)
        if ask and question in context.answers:  # it has run inside, and is not run there again
            if not is_yes(ask(ASK_OUTSIDE, question)):
                return NOT_OUTSIDE
            return (await run_command(shell, command, context.facts, is_outside=True)).text
        output = await run_command(shell, command, context.facts)
        if ask and output.may_be_sandbox:
            ask(ASK_OUTSIDE, question)
        return output.text

    def asks(args: dict[str, Any], facts: Mapping[str, Any]) -> bool:
        command = str(args["command"])
        return read_job_question(command) is None and shell.needs_approval(command, facts)

    return tool_from(run, name=SHELL, asks=asks, subject=lambda args: str(args["command"]))


def _question_of(command: str) -> str:
    """Return the id of the question to run this very command outside; a changed command needs another approval."""
    return f"outside-{hashlib.sha256(command.encode()).hexdigest()[:16]}"


async def run_command(
    shell: ShellOptions, command: str, facts: Mapping[str, Any], is_outside: bool = False, seconds: float = 0.0
) -> CommandOutput:
    """Run a command, and return its output and its end; at its end or its limit, all its processes have ended.

    The limit is `seconds`, or that of the settings.
    """
    limit = seconds or shell.settings.shell_timeout
    spec = shell.make_spec(command, facts, is_outside)
    output = _OutputBuffer(shell.settings.output_limit)
    status = 0
    async with nullcontext(RunningCommand()) if is_outside else shell.watch() as watched:
        with anyio.move_on_after(limit) as clock:
            status = await shell.run(spec, output.add)
    text = output.text()
    for path in watched.changed:
        text = f"{text}\n{CHANGED_INSTRUCTIONS.format(name=path.name, path=path)}".lstrip()
    if clock.cancelled_caught:
        return CommandOutput(f"{text}\n[ended: it still ran after {limit:g} seconds]".lstrip(), None)
    if not status:
        return CommandOutput(text or NO_OUTPUT)
    is_inside = spec.sandbox is not None or (shell.sandbox.has_front and not is_outside)
    may_be = is_inside and is_refused(text)
    more = f"\n{MAY_BE_SANDBOX}" if may_be else ""
    return CommandOutput(f"{text}\n[exit code {status}]{more}".lstrip(), status, may_be)


class _OutputBuffer:
    """The beginning and the end of a command's output, in bounded memory."""

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
