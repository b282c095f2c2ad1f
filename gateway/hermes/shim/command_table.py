"""The module `hermes_cli.commands`: the commands that people can type here, in Hermes's own table, for reading.

An import sees the present commands at each look: plugins add commands at any time.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gateway.hermes.shim.gateway_calls import get_facts

CATEGORY = "Gateway"


@dataclass(frozen=True)
class CommandDef:
    name: str
    description: str
    category: str = CATEGORY
    aliases: tuple[str, ...] = ()
    args_hint: str = ""
    subcommands: tuple[str, ...] = ()
    cli_only: bool = False
    gateway_only: bool = False
    gateway_config_gate: str | None = None


def list_commands() -> tuple[CommandDef, ...]:
    """List every command of this gateway, with those of plugins."""
    return tuple(
        CommandDef(one["name"], one["summary"], aliases=tuple(one["aliases"]), args_hint=one["usage"])
        for one in get_facts()["commands"]
    )


def resolve_command(name: str) -> CommandDef | None:
    """Find a command by name or alias, with a slash or without."""
    return _by_word().get(name.lower().lstrip("/"))


def is_gateway_known_command(name: str | None) -> bool:
    return bool(name) and resolve_command(str(name)) is not None


def should_bypass_active_session(command_name: str | None) -> bool:
    """Tell if the command acts at once, even while a turn runs."""
    return any(one["name"] == command_name and one["urgent"] for one in get_facts()["commands"])


def gateway_help_lines() -> list[str]:
    return [
        f"`/{one.name}{' ' + one.args_hint if one.args_hint else ''}` -- {one.description}" for one in list_commands()
    ]


def slack_subcommand_map() -> dict[str, str]:
    """Map each name and alias to its command, as Hermes's one command for all of them does."""
    return {word: f"/{word}" for word in _by_word()}


def _by_word() -> dict[str, CommandDef]:
    return {word: command for command in list_commands() for word in (command.name, *command.aliases)}


class CommandSequence(Sequence[CommandDef]):
    def __getitem__(self, at: Any) -> Any:
        return list_commands()[at]

    def __len__(self) -> int:
        return len(list_commands())


class CommandDescriptions(Mapping[str, str]):
    """The descriptions of the commands by `/name` and `/alias`."""

    def __getitem__(self, word: str) -> str:
        return _by_word()[word.removeprefix("/")].description

    def __iter__(self) -> Iterator[str]:
        return (f"/{word}" for word in _by_word())

    def __len__(self) -> int:
        return len(_by_word())


class CommandWords(Set[str]):
    def __contains__(self, word: object) -> bool:
        return word in _by_word()

    def __iter__(self) -> Iterator[str]:
        return iter(_by_word())

    def __len__(self) -> int:
        return len(_by_word())


COMMAND_REGISTRY = CommandSequence()
COMMANDS = CommandDescriptions()
COMMANDS_BY_CATEGORY: Mapping[str, Mapping[str, str]] = MappingProxyType({CATEGORY: COMMANDS})
SUBCOMMANDS: Mapping[str, list[str]] = MappingProxyType({})
GATEWAY_KNOWN_COMMANDS = CommandWords()
