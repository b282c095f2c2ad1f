"""The commands that people type in a chat: each one row, from which every platform's menu and the help are made.

A row holds all that there is of a command, its function too. The rows of the gateway's own commands are written where
the parts that they need are known (`gateway.dispatcher.chat_commands`); a plugin brings its own, at any time.
"""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.message import Button
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.roles import Role, rank_of

CommandRights: TypeAlias = Literal["everyone", "user", "operator", "admin"]
LOWEST_ROLES: Mapping[CommandRights, Role] = MappingProxyType(
    {"everyone": "guest", "user": "guest", "operator": "operator", "admin": "admin"}
)


class CommandResult(msgspec.Struct, frozen=True):
    """What a command did: a text for the person, records for the session, and what the agent is to answer then.

    `activity` is there where it steered more than the session, or was refused that.
    """

    text: str = ""
    changes: tuple[records.TurnRecord, ...] = ()
    then: Entry | None = None
    activity: records.ActivityRecord | None = None
    buttons: tuple[Button, ...] = ()  # of an urgent one
    codes: tuple[str, ...] = ()  # those in the text that authorize somebody; hooks get it without them


RunCommand: TypeAlias = Callable[[Any], Awaitable[CommandResult]]
"""Runs a command; it is given the dispatcher's `CommandCall`, which this module is too far below to know."""


class CommandChoice(msgspec.Struct, frozen=True):
    """Something that can be given, and what is said about it."""

    value: str
    about: str = ""


ListNames: TypeAlias = Callable[[Any, Any, Mapping[str, object]], Awaitable[Sequence[CommandChoice]]]
"""Gives what can be chosen just now: by the dispatcher's context, the session, and what else was given."""


class CommandOption(msgspec.Struct, frozen=True):
    """One thing that a command takes, for networks that ask for each by itself.

    A `switch` is on or off. `choices` are all that there is, `list_names` knows what there is just now. In a text the
    options stand in the order of their command, each behind its word `before`.
    """

    name: str
    summary: str
    kind: Literal["text", "number", "switch"] = "text"
    choices: tuple[str, ...] = ()
    list_names: ListNames | None = None
    before: str = ""
    is_needed: bool = False

    def write(self, value: object) -> str:
        """The option as it would have been typed."""
        typed = ("on" if value else "off") if self.kind == "switch" else str(value)
        return f"{self.before} {typed}".lstrip()


class Command(msgspec.Struct, frozen=True):
    """One command.

    The configuration may list the commands of users (`access.user_commands`); those of `everyone` need not be in the
    list, and those of an `operator` or `admin` are in it only if somebody wrote them there.

    `urgent` ones act at once, also while a turn runs; the others wait for their place in the lane. Those with
    `answers` answer an open question, so they are for whoever is asked, and for admins.

    A hook may put those `by_hooks` in place of a person's words: none that approves, pairs, opens the page, or steers
    the gateway.

    `usage` says what may follow the command in a text; `options` are the same for networks that ask for each by itself.
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
        """What was given by the names of options, as it would have been typed; what is none is left out."""
        return " ".join(one.write(given[one.name]) for one in self.options if one.name in given)

    def is_for(self, role: Role) -> bool:
        """Is it meant for somebody of this role? What the configuration says of users is not looked at."""
        return rank_of(role) >= rank_of(LOWEST_ROLES[self.rights])


class ParsedCommand(msgspec.Struct, frozen=True):
    """A text that is a command: the word as typed, and what came after it."""

    word: str
    args: str


def parse_command(text: str) -> ParsedCommand | None:
    """Returns the command in a text: `/word ...`, or `!word ...` where slashes do not reach. None: it is no command."""
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
    """Commands by name and alias; iterating gives each once.

    `further` gives those that there are besides, just now; a name that is taken keeps its meaning. `wait_for` waits
    until an unknown one may have come.
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
        """The command of this name or alias, also where one must wait for it."""
        return self.get(word) or await self._wait_for(word) or self.get(word)

    def _all(self) -> dict[str, Command]:
        added = {command.name: command for command in self._further() if command.name not in self._aliases}
        return {**self._commands, **{name: added[name] for name in added if name not in self._commands}}

    def closest(self, word: str) -> str | None:
        """Returns the command that somebody who typed `word` may have meant."""
        found = difflib.get_close_matches(word, [*self, *self._aliases], n=1)
        return found[0] if found else None

    def help(self, role: Role) -> str:
        """Returns the table as text, for somebody of this role."""
        rows = [
            f"/{command.name}{' ' + command.usage if command.usage else ''} - {command.summary}"
            for command in self.values()
            if not command.hidden and command.is_for(role)
        ]
        return "\n".join(rows)
