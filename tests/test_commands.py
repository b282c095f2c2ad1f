"""The recognition of commands, and their rows in the table."""

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.commands import Command, CommandResult, CommandTable, ParsedCommand, parse_command


@pytest.mark.parametrize(
    ("text", "word", "args"),
    [
        ("/new", "new", ""),
        ("/Model gpt-9  ", "model", "gpt-9"),
        ("!stop", "stop", ""),
        ("/new@our_bot please", "new", "please"),
        ("/long_task now", "long-task", "now"),
        ("/title\nline two", "title", "line two"),
    ],
)
def test_a_command_is_a_slash_or_bang_and_a_word(text: str, word: str, args: str) -> None:
    assert parse_command(text) == ParsedCommand(word, args)


@pytest.mark.parametrize("text", ["", "/", "hello", " /new", "/ new", "/1", "!!", "//etc", "/\n"])
def test_other_texts_are_for_the_agent(text: str) -> None:
    assert parse_command(text) is None


@given(st.text())
def test_any_text_can_be_asked(text: str) -> None:
    found = parse_command(text)
    assert found is None or (found.word == found.word.lower() and " " not in found.word)


async def rain(_call: Any) -> CommandResult:
    return CommandResult("it will rain")


@pytest.mark.parametrize("command", BUILT_IN, ids=lambda command: command.name)
def test_every_command_has_a_function_of_its_own(command: Command) -> None:
    assert inspect.iscoroutinefunction(command.run)
    assert [other.name for other in BUILT_IN if other.run is command.run] == [command.name]


def test_a_row_without_a_function_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="run"):
        Command("weather", "will it rain")  # type: ignore[call-arg]  # which is the point


@pytest.mark.row("WEB-37")
def test_an_alias_leads_to_its_command_and_each_is_listed_once() -> None:
    table = CommandTable(BUILT_IN)
    assert table["reset"] is table["new"]
    assert len(list(table)) == len(BUILT_IN)


def test_a_command_that_is_added_never_replaces_one_of_ours() -> None:
    table = CommandTable(BUILT_IN, lambda: [Command("stop", "evil", rain), Command("weather", "will it rain", rain)])
    assert table["stop"].summary != "evil"
    assert table["weather"].summary == "will it rain"


def test_help_shows_admins_more_and_nobody_what_is_hidden() -> None:
    table = CommandTable(BUILT_IN)
    assert "/restart" in table.help("admin")
    assert "/restart" not in table.help("user")
    assert "/start " not in table.help("admin")


def test_a_misspelt_command_is_guessed() -> None:
    assert CommandTable(BUILT_IN).closest("modle") == "model"
    assert CommandTable(BUILT_IN).closest("zzzzzz") is None
