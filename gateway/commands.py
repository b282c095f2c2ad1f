"""The commands that people type in a chat: one table, from which every network's menu is made.

The table holds facts only. What a command does is written where the parts that it needs are known (the dispatcher);
a command of a plugin, which may come and go at any time, brings with it what runs it.
"""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

# What was typed after the command, and who typed it where (the common fields of a turn's events); the reply.
RunCommand: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `urgent` ones act at once, also while a turn runs; the others wait for their place in the lane.

    Those that answer a question are for whoever is asked, and for admins.
    """

    name: str
    summary: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    urgent: bool = False
    admin: bool = False
    hidden: bool = False
    answers: bool = False
    run: RunCommand | None = None


BUILT_IN = (
    Command("help", "what can be typed here", aliases=("commands",), urgent=True),
    Command("start", "say hello", hidden=True, urgent=True),
    Command("status", "what the gateway and this session are doing", urgent=True),
    Command("whoami", "who you are here, and what you may do", urgent=True),
    Command("stop", "stop what is running in this session", urgent=True),
    Command("new", "begin a new session", aliases=("reset",)),
    Command("retry", "answer the last message again"),
    Command("undo", "forget the last turns", usage="[N]"),
    Command("title", "show the session's title, or set it", usage="[TEXT]"),
    Command("model", "show the session's model, or choose one", usage="[NAME|default]"),
    Command("sessions", "list the sessions of this chat"),
    Command("resume", "go back to an earlier session", usage="ID"),
    Command("branch", "go on in a copy of this session", aliases=("fork",)),
    Command("usage", "tokens that this session has used", urgent=True),
    Command("queue", "messages that wait in this session", urgent=True),
    Command("hooks", "the hooks there are, and how they fare", urgent=True),
    Command("approve", "say yes to the question that is open", usage="[session|always]", urgent=True, answers=True),
    Command("approvals", "what tools may do without asking", usage="[revoke NUMBER]"),
    Command("deny", "say no to the question that is open", urgent=True, answers=True),
    Command(
        "platform", "the platforms, and how they fare", usage="[pause|resume|restart NAME]", urgent=True, admin=True
    ),
    Command("pairing", "who asks to be let in", usage="[approve CODE|revoke ID]", urgent=True, admin=True),
    Command("restart", "start the gateway again", urgent=True, admin=True),
)


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A text that is a command: the word as typed, and what came after it."""

    word: str
    args: str


def parse_command(text: str) -> ParsedCommand | None:
    """The command in a text, if it is one: `/word ...`, or `!word ...` where slashes do not reach."""
    if len(text) < 2 or text[0] not in "/!" or not text[1].isalpha():
        return None
    word, _, args = text[1:].partition(" ")
    if "\n" in word:
        word, _, rest = word.partition("\n")
        args = f"{rest} {args}".rstrip()
    return ParsedCommand(word.partition("@")[0].replace("_", "-").lower(), args.strip())


def list_no_commands() -> Iterable[Command]:
    return ()


class CommandTable(Mapping[str, Command]):
    """Commands by name and alias; iterating gives each once. `further` are those that there are besides, just now; a
    name that is taken keeps its meaning.
    """

    def __init__(
        self, commands: Iterable[Command] = BUILT_IN, further: Callable[[], Iterable[Command]] = list_no_commands
    ) -> None:
        self._commands = {command.name: command for command in commands}
        self._aliases = {alias: command for command in self._commands.values() for alias in command.aliases}
        self._further = further

    def __getitem__(self, word: str) -> Command:
        return self._commands.get(word) or self._aliases.get(word) or self._all()[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Command]:
        added = {command.name: command for command in self._further() if command.name not in self._aliases}
        return {**self._commands, **{name: added[name] for name in added if name not in self._commands}}

    def closest(self, word: str) -> str | None:
        """The command that somebody who typed `word` may have meant."""
        found = difflib.get_close_matches(word, [*self, *self._aliases], n=1)
        return found[0] if found else None

    def help(self, *, admin: bool) -> str:
        """The table for a person of this standing."""
        rows = [
            f"/{command.name}{' ' + command.usage if command.usage else ''} - {command.summary}"
            for command in self.values()
            if not command.hidden and (admin or not command.admin)
        ]
        return "\n".join(rows)
