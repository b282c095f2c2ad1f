"""A person types on while an answer comes: the screen shows each word of each answer once."""

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.cli.typist import Typist

WORDS = 16  # of an answer
LINE = 5

pytestmark = pytest.mark.process


def name_words(name: str) -> list[str]:
    return [f"{name}-{number}" for number in range(WORDS)]


def script_answer(name: str) -> dict[str, Any]:
    chunks = [word + (" " if number % LINE else "\n") for number, word in enumerate(name_words(name))]
    return {"user": f"say {name}!", "answers": [{"chunks": chunks, "delay": "15ms"}]}


@pytest.mark.parametrize("runs", [10, pytest.param(90, marks=pytest.mark.thorough)])
def test_what_is_typed_ahead_doubles_no_word(tmp_path: Path, runs: int) -> None:
    chance = Random(runs)
    names = [f"{who}{number}" for number in range(runs) for who in ("first", "second")]
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*map(script_answer, names))
        gateway.start()
        with Typist(gateway, "chat") as person:
            person.finds("Ctrl-D leaves")
            for number in range(runs):
                person.type(f"say first{number}!\r")
                begins, ends, asks = sorted(chance.choices(range(WORDS), k=3))
                person.finds(f"first{number}-{begins}")
                person.type("say sec")
                person.finds(f"first{number}-{ends}")
                person.type(f"ond{number}!\r")
                person.finds(f"first{number}-{asks}")
                person.type("/whoami\r")
                person.finds(f"second{number}-{WORDS - 1}")
            person.type("\x04")
            assert person.leaves() == 0
    shown = Counter(re.findall(r"(?:first|second)\d+-\d+|terminal user owner", person.screen.text))
    assert shown == {word: 1 for name in names for word in name_words(name)} | {"terminal user owner": runs}


@pytest.mark.parametrize("runs", [5, pytest.param(40, marks=pytest.mark.thorough)])
def test_words_before_a_tool_and_the_answer_stand_there_once(tmp_path: Path, runs: int) -> None:
    call = {"name": "calculate", "args": {"expression": "6 * 7"}}
    names = [f"{who}{number}" for number in range(runs) for who in ("first", "second")]
    with GatewayProcess(tmp_path / "home") as gateway:
        turns = list[dict[str, Any]]()
        for number in range(runs):
            words = {"chunks": [f"{word} " for word in name_words(f"first{number}")], "tool_calls": [call]}
            turns.append({"user": f"say {number}!", "answers": [words, *script_answer(f"second{number}")["answers"]]})
        gateway.script(*turns)
        gateway.start()
        with Typist(gateway, "chat") as person:
            person.finds("Ctrl-D leaves")
            for number in range(runs):
                person.type(f"say {number}!\r")
                person.finds(f"second{number}-{WORDS - 1}")
            person.type("\x04")
            assert person.leaves() == 0
    shown = Counter(re.findall(r"(?:first|second)\d+-\d+", person.screen.text))
    assert shown == {word: 1 for name in names for word in name_words(name)}


@pytest.mark.parametrize("rows", [40, pytest.param(400, marks=pytest.mark.thorough)])
def test_no_line_is_lost_while_one_prompt_ends_and_the_next_begins(tmp_path: Path, rows: int) -> None:
    words = [f"row-{number}." for number in range(rows)]
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "say it!", "answers": [{"chunks": [f"{word}\n\n" for word in words], "delay": "5ms"}]})
        gateway.start()
        with Typist(gateway, "chat") as person:
            person.finds("Ctrl-D leaves")
            person.type("say it!\r")
            for word in words:
                person.type("\r" * 5)
                person.finds(word)
            person.type("\x04")
            assert person.leaves() == 0
    assert Counter(re.findall(r"row-\d+\.", person.screen.text)) == dict.fromkeys(words, 1)
