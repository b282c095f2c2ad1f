"""The table of the commands that people type in a chat. All menus and the help come from the rows of the table.

A row holds everything about a command, including its function. `gateway.dispatcher.chat_commands` has the rows of the
gateway's own commands; a plugin may add rows at any time.
"""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.message import Button
from gateway.messages.roles import Role, rank_of
from gateway.messages.transcript import Entry
from gateway.records import records

CommandRights: TypeAlias = Literal["everyone", "user", "operator", "admin"]
LOWEST_ROLES: Mapping[CommandRights, Role] = {
    "everyone": "guest",
    "user": "guest",
    "operator": "operator",
    "admin": "admin",
}


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command: a text for the person, records for the session, and a message for the agent.

    `activity` is set if the command changed more than the session, or was denied.
    """

    text: str = ""
    changes: tuple[records.TurnRecord, ...] = ()
    then: Entry | None = None
    activity: records.ActivityRecord | None = None
    buttons: tuple[Button, ...] = ()  # only an urgent command has buttons
    codes: tuple[str, ...] = ()  # pairing codes in the text; hooks get the text without codes


def say_error(error: Exception) -> str:
    """Return the text of an error as a sentence."""
    return f"{str(error)[:1].upper()}{str(error)[1:]}."


RunCommand: TypeAlias = Callable[[Any], Awaitable[CommandResult]]
"""Run a command for the dispatcher's `CommandCall`, a class that this lower module cannot import."""


class CommandChoice(msgspec.Struct, frozen=True):
    """A possible value of an option, with a description."""

    value: str
    about: str = ""


ListNames: TypeAlias = Callable[[Any, Any, Mapping[str, object]], Awaitable[Sequence[CommandChoice]]]
"""Return the current choices, for the dispatcher's context, the session, and the values of the other options."""


class CommandOption(msgspec.Struct, frozen=True):
    """An option of a command, for networks that ask for each option separately.

    A `switch` is on or off. `choices` are all possible values; if these vary, `list_names` returns the current values.
    In the text of a command, the options come in the order in which the command declares them. `before` is the word in
    front of the option, such as `--as`.
    """

    name: str
    summary: str
    kind: Literal["text", "number", "switch"] = "text"
    choices: tuple[str, ...] = ()
    list_names: ListNames | None = None
    before: str = ""
    is_needed: bool = False

    def write(self, value: object) -> str:
        """Return the option with this value, as a person would type it."""
        typed = ("on" if value else "off") if self.kind == "switch" else str(value)
        return f"{self.before} {typed}".lstrip()


class Command(msgspec.Struct, frozen=True):
    """A command that people type in a chat.

    The configuration may list the commands of users (`access.user_commands`). Users always have the commands for
    `everyone`; they have commands for an `operator` or `admin` only if the list names them.

    `urgent` commands act at once, even while a turn runs; all others wait for their place in the lane. Commands
    with `answers` answer an open question, so they are for the person whom the question asks, and for admins.

    A hook may replace a person's words by a command with `by_hooks`. Commands that approve, pair, open the page or
    steer the gateway are not `by_hooks`.

    `usage` shows the text that may follow the command. `options` describe the same text, for networks that ask for each
    option separately.
    """

    name: str
    summary: str
    run: RunCommand
    usage: str = ""
    aliases: tuple[str, ...] = ()
    rights: CommandRights = "user"
    urgent: bool = False
    hidden: bool = False
    answers: bool = False
    by_hooks: bool = False
    options: tuple[CommandOption, ...] = ()

    def write_args(self, given: Mapping[str, object]) -> str:
        """Return the given options as a person would type them; leave out missing options."""
        return " ".join(one.write(given[one.name]) for one in self.options if one.name in given)

    def is_for(self, role: Role) -> bool:
        """Return True if the command is meant for this role, whatever `access.user_commands` lists."""
        return rank_of(role) >= rank_of(LOWEST_ROLES[self.rights])


class ParsedCommand(msgspec.Struct, frozen=True):
    """A command in a text: the word that names it, and the rest of the text."""

    word: str
    args: str


def parse_command(text: str) -> ParsedCommand | None:
    """Return the command in a text: `/word ...`, or `!word ...` for networks without slashes.

    None if the text is not a command.
    """
    if len(text) < 2 or text[0] not in "/!" or not text[1].isalpha():
        return None
    word, _, args = text[1:].partition(" ")
    if "\n" in word:
        word, _, rest = word.partition("\n")
        args = f"{rest} {args}".rstrip()
    return ParsedCommand(word.partition("@")[0].replace("_", "-").lower(), args.strip())


async def wait_for_no_command(_word: str) -> Command | None:
    return None


class CommandTable(Mapping[str, Command]):
    """Commands by name and alias; iterating yields each command's name once.

    `further` returns the commands of plugins, which cannot replace a built-in command. `wait_for` waits for an unknown
    command while a plugin may still add it.
    """

    def __init__(
        self,
        commands: Iterable[Command],
        further: Callable[[], Iterable[Command]] = tuple,
        wait_for: Callable[[str], Awaitable[Command | None]] = wait_for_no_command,
    ) -> None:
        self._commands = {command.name: command for command in commands}
        self._aliases = {alias: command for command in self._commands.values() for alias in command.aliases}
        self._further = further
        self._wait_for = wait_for

    def __getitem__(self, word: str) -> Command:
        return self._commands.get(word) or self._aliases.get(word) or self._all()[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    async def find(self, word: str) -> Command | None:
        """Return the command of this name or alias; wait for an unknown command while plugins start."""
        return self.get(word) or await self._wait_for(word) or self.get(word)

    def _all(self) -> dict[str, Command]:
        added = {command.name: command for command in self._further() if command.name not in self._aliases}
        return {**self._commands, **{name: added[name] for name in added if name not in self._commands}}

    def closest(self, word: str) -> str | None:
        """Return the command that a person who typed `word` may have meant."""
        found = difflib.get_close_matches(word, [*self, *self._aliases], n=1)
        return found[0] if found else None

    def help(self, role: Role) -> str:
        """Return the help: the commands for this role, with their summaries."""
        rows = [
            f"/{command.name}{' ' + command.usage if command.usage else ''} - {command.summary}"
            for command in self.values()
            if not command.hidden and command.is_for(role)
        ]
        return "\n".join(rows)
