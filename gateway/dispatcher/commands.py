"""The commands that people type in a chat: one row each, from which every platform's menu and the help are made.

A row holds everything about a command, including its function. `gateway.dispatcher.chat_commands` has the rows of the
gateway's own commands; a plugin adds its own, at any time.
"""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.message import Button
from gateway.messages.roles import Role, rank_of
from gateway.messages.transcript import Entry
from gateway.records import records

CommandRights: TypeAlias = Literal["everyone", "user", "operator", "admin"]
LOWEST_ROLES: Mapping[CommandRights, Role] = MappingProxyType(
    {"everyone": "guest", "user": "guest", "operator": "operator", "admin": "admin"}
)


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command: a text for the person, records for the session, and a message for the agent.

    `activity` is set if the command steered more than the session, or was denied.
    """

    text: str = ""
    changes: tuple[records.TurnRecord, ...] = ()
    then: Entry | None = None
    activity: records.ActivityRecord | None = None
    buttons: tuple[Button, ...] = ()  # of an urgent command
    codes: tuple[str, ...] = ()  # pairing codes in the text; hooks get it without them


def say_error(error: Exception) -> str:
    """Return the text of an error as a sentence."""
    return f"{str(error)[:1].upper()}{str(error)[1:]}."


RunCommand: TypeAlias = Callable[[Any], Awaitable[CommandResult]]
"""Run a command; it gets the dispatcher's `CommandCall`, which this module is too low to import."""


class CommandChoice(msgspec.Struct, frozen=True):
    """A choice with its description."""

    value: str
    about: str = ""


ListNames: TypeAlias = Callable[[Any, Any, Mapping[str, object]], Awaitable[Sequence[CommandChoice]]]
"""Return the present choices, by the dispatcher's context, the session, and the other given options."""


class CommandOption(msgspec.Struct, frozen=True):
    """One option of a command, for networks that ask for each separately.

    A `switch` is on or off. `choices` are all possible values, `list_names` returns the present ones. In a text the
    options follow in the order of their command, each after its word `before`.
    """

    name: str
    summary: str
    kind: Literal["text", "number", "switch"] = "text"
    choices: tuple[str, ...] = ()
    list_names: ListNames | None = None
    before: str = ""
    is_needed: bool = False

    def write(self, value: object) -> str:
        """Return the option as a person would type it."""
        typed = ("on" if value else "off") if self.kind == "switch" else str(value)
        return f"{self.before} {typed}".lstrip()


class Command(msgspec.Struct, frozen=True):
    """One command.

    The configuration may list the commands of users (`access.user_commands`); commands for `everyone` need not be in
    the list, and those for an `operator` or `admin` are in it only if the operator added them.

    `urgent` commands act at once, even while a turn runs; the others wait for their place in the lane. Commands
    with `answers` answer an open question, so they are for its person, and for admins.

    A hook may put those `by_hooks` in place of a person's words: none that approves, pairs, opens the page, or steers
    the gateway.

    `usage` is the text that may follow the command; `options` are the same for networks that ask for each separately.
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
        """Return the given options as a person would type them; missing ones are left out."""
        return " ".join(one.write(given[one.name]) for one in self.options if one.name in given)

    def is_for(self, role: Role) -> bool:
        """Return True if it is meant for this role. The configured commands of users are not consulted."""
        return rank_of(role) >= rank_of(LOWEST_ROLES[self.rights])


class ParsedCommand(msgspec.Struct, frozen=True):
    """A text that is a command: the word as typed, and the rest."""

    word: str
    args: str


def parse_command(text: str) -> ParsedCommand | None:
    """Return the command in a text: `/word ...`, or `!word ...` for networks without slashes.

    None: it is no command.
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
    """Commands by name and alias; iterating yields each once.

    `further` returns the commands of plugins; a name in use keeps its meaning. `wait_for` waits until an unknown one
    may have been added.
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
        """Return the command of this name or alias, even if that takes waiting."""
        return self.get(word) or await self._wait_for(word) or self.get(word)

    def _all(self) -> dict[str, Command]:
        added = {command.name: command for command in self._further() if command.name not in self._aliases}
        return {**self._commands, **{name: added[name] for name in added if name not in self._commands}}

    def closest(self, word: str) -> str | None:
        """Return the command that a person who typed `word` may have meant."""
        found = difflib.get_close_matches(word, [*self, *self._aliases], n=1)
        return found[0] if found else None

    def help(self, role: Role) -> str:
        """Return the table as text, for this role."""
        rows = [
            f"/{command.name}{' ' + command.usage if command.usage else ''} - {command.summary}"
            for command in self.values()
            if not command.hidden and command.is_for(role)
        ]
        return "\n".join(rows)
