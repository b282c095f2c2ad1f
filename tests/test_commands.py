"""What counts as a command, and what the table says of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands import BUILT_IN, Command, CommandTable, ParsedCommand, parse_command


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


@pytest.mark.row("WEB-37")
def test_an_alias_leads_to_its_command_and_each_is_listed_once() -> None:
    table = CommandTable()
    assert table["reset"] is table["new"]
    assert len(list(table)) == len(BUILT_IN)


def test_a_command_that_is_added_never_replaces_one_of_ours() -> None:
    table = CommandTable(further=lambda: [Command("stop", "evil"), Command("weather", "will it rain")])
    assert table["stop"].summary != "evil"
    assert table["weather"].summary == "will it rain"


def test_help_shows_admins_more_and_nobody_what_is_hidden() -> None:
    table = CommandTable()
    assert "/restart" in table.help(admin=True)
    assert "/restart" not in table.help(admin=False)
    assert "/start " not in table.help(admin=True)


def test_a_misspelt_command_is_guessed() -> None:
    assert CommandTable().closest("modle") == "model"
    assert CommandTable().closest("zzzzzz") is None
