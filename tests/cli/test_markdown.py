"""Markdown in the terminal's chat: what it looks like, that it comes block by block, and that nothing in it acts."""

import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from gateway.cli.markdown import encode_markdown, parse_markdown, render_blocks
from gateway.cli.markdown_text import MarkdownText
from gateway.testing import GatewayProcess
from tests.cli.test_terminal_safety import ACTS, show_on_terminal
from tests.cli.typist import Typist

STYLE = re.compile(r"\x1b\[[0-9;]*m")
OWN_STYLE = re.compile(r"\x1b\[(?:[012349]|36)(?:;(?:[1349]|36))*m")
BLOCKS = (
    "# First *of* all\n",
    "Words that are **bold and go on** for so long that they find no room in one row of `a terminal` here.\nNext.\n",
    "Under\n=====\n",
    "- one\n- two\n  - inner `code`\n\n    more of two\n- three\n",
    "1. one\n2. two\n\n   ```sh\n   make all\n   ```\n3. three\n",
    "> quoted\n> > twice\n",
    "```python\ndef f():\n\n\treturn {'a': 1}  # **no bold**\n```\n",
    "~~~\n```\n~~~\n",
    "| a | b |\n|---|--:|\n| 1 | [two](http://127.0.0.1/) |\n",
    "---\n",
    "<b>as it is</b>\n",
    "[name]: http://127.0.0.1/named\n",
)


def render(text: str, width: int = 80) -> list[str]:
    source = encode_markdown(text)
    return render_blocks(source, parse_markdown(source), width)


def show(text: str, width: int = 80) -> list[str]:
    return [STYLE.sub("", row) for row in render(text, width)]


def test_each_kind_of_block_has_a_look() -> None:
    assert render("# A *b*") == ["\x1b[1;4mA\x1b[0m \x1b[1;4;3mb\x1b[0m"]
    assert render("**a b** ~~c~~ ~5 `d e`") == ["\x1b[1ma\x1b[0m \x1b[1mb\x1b[0m \x1b[9mc\x1b[0m ~5 \x1b[36md e\x1b[0m"]
    assert show("- [x] a\n- b\n\n  c\n7. d") == ["• [x] a", "• b", "", "  c", "7. d"]
    assert show("> a\n>\n> - b") == ["│ a", "│", "│ • b"]
    assert show("[a](http://b) <http://c> ![](http://d)") == ["a <http://b> http://c <http://d>"]
    assert show("|a|b|\n|-|-:|\n|1|**2**|\n|one|222|") == ["a      b", "───  ───", "1      2", "one  222"]
    assert show("a b c " * 3 + "\n- d e f g h", 9) == ["a b c a b", "c a b c", "• d e f g", "  h"]


def test_a_table_that_is_too_wide_is_a_list_of_its_rows() -> None:
    assert show(f"|name|why|\n|-|-|\n|a|{'long ' * 5}|\n|b|c|", 20) == [
        *["name: a", "why: long long long", "long long", ""],
        *["name: b", "why: c"],
    ]
    written = [f"|{'wide' * 20}|", "|-|", f"|{'x' * 90}|"]
    assert show("\n".join(written)) == written


def test_what_is_copied_of_a_block_of_code_is_the_code() -> None:
    code = ["def f(): # " + "very " * 30, "\tif **a**:", "", "        return `b`"]
    for before in ("", "> ", "  "):
        start = "- list\n\n" if before == "  " else ""
        text = start + "\n".join(f"{before}{line}" for line in ["```", *code, "```"])
        assert [row.rstrip() for row in show(text)[-4:]] == [line.rstrip() for line in code], before


def test_it_comes_block_by_block_and_is_the_same_as_at_once() -> None:
    chance = Random(44)
    for _ in range(150):
        text = "\n".join(chance.choices(BLOCKS, k=6))
        grown, rows = MarkdownText(), list[str]()
        for line in text.removesuffix("\n").split("\n"):
            rows += grown.write(line)
            assert len(grown.open.split("\n")) < 8
        assert rows + grown.end() == render(text), text


def test_the_open_block_is_as_it_was_written() -> None:
    grown = MarkdownText()
    assert (grown.write("Is it **bold**"), grown.open) == ([], "Is it **bold**")
    assert (grown.write("or a title?"), grown.open) == ([], "Is it **bold**\nor a title?")
    assert [STYLE.sub("", row) for row in grown.write("---")] == ["Is it bold", "or a title?"]
    assert [STYLE.sub("", row) for row in [*grown.write("```"), *grown.write("at once")]] == ["at once"]


BAD = ("\x1b[2J", "&#27;[2J", "&#x9b;2J", "&#13;", "\u202e", "&#x202e;", "\u200b", "&#x200b;", "\x07", "\x00", "&#0;")
PLACES = (
    *("{}", "# {}", "**{}**", "`{}`", "- {}", "1. {}", "> {}", "```{}\n{}\n```", "    {}", "|{}|\n|-|\n|{}|"),
    *("[a]({})", "[{}](<a{}b>)", "![{}](a)", "<b {}>", "<div>{}</div>", "<http://a{}>", "[{}]: b", "~~{}~~", "~~~ {}"),
)


@pytest.mark.row("T29")
@pytest.mark.parametrize("bad", BAD, ids=ascii)
def test_nothing_that_a_model_writes_acts_on_the_terminal(bad: str) -> None:
    for place in PLACES:
        text = place.replace("{}", bad)
        grown = MarkdownText()
        for rows in (render(text), [*(row for line in text.split("\n") for row in grown.write(line)), *grown.end()]):
            assert not ACTS.search(OWN_STYLE.sub("", "".join(rows))), (place, rows)


def test_no_line_is_forged_by_a_sign_that_was_written_as_a_number() -> None:
    assert show("a&#10;> yes") == ["a > yes"]
    assert show("[a](<b&#10;c>)") == ["a <b c>"]


@pytest.mark.parametrize(
    "text", ["> " * 500 + "a", "*a " * 500 + "a*" * 500, "|" * 400 + "\n" + "|-" * 400 + "|\n" + "|\n" * 400]
)
def test_what_nobody_writes_is_shown_as_it_is(text: str) -> None:
    assert sum(map(len, show(text))) <= len(text) * 20


ANSWER = (
    "# Title {0}\n\nThat is **bold{0}** and\nso on.\n\n- one{0}\n- two{0}\n\n```python\ncode{0} = '**'\n```\n\nlast{0}"
)


def script_answers(gateway: GatewayProcess, runs: int) -> None:
    turns = []
    for number in range(runs):
        text = ANSWER.format(number)
        chunks = [text[at : at + 5] for at in range(0, len(text), 5)]
        turns.append({"user": f"say {number}!", "answers": [{"chunks": chunks, "delay": "10ms"}]})
    gateway.script(*turns)


@pytest.mark.process
def test_it_is_rendered_while_somebody_types_at_any_moment(tmp_path: Path) -> None:
    chance, runs = Random(44), 6
    with GatewayProcess(tmp_path / "home") as gateway:
        script_answers(gateway, runs)
        gateway.start()
        with Typist(gateway, "chat") as person:
            person.finds("Ctrl-D leaves")
            for number in range(runs):
                person.type(f"say {number}!\r")
                for word in sorted(
                    chance.sample([f"Title {number}", f"bold{number}", f"one{number}", f"code{number}"], 2)
                ):
                    person.finds(word)
                    person.type(chance.choice(["x", "\x1b[D", "y z"]))
                person.finds(f"last{number}\n")
                person.type("\x05\x15")
            person.type("\x04")
            assert person.leaves() == 0
        shown = person.screen.text
        piped = gateway.cli("chat", "-m", "say 0!").stdout
        gateway.environ["NO_COLOR"] = "1"
        plain = show_on_terminal(gateway, "chat", "-m", "say 1!")
    rows = Counter(shown.split("\n"))
    for number in range(runs):
        wanted = [
            f"Title {number}",
            f"That is bold{number} and",
            f"• one{number}",
            f"code{number} = '**'",
            f"last{number}",
        ]
        assert [rows[row] for row in wanted] == [1] * len(wanted), shown
    assert "# Title" not in shown
    assert "```" not in shown
    assert piped == f"{ANSWER.format(0)}\n"
    assert plain.replace("\r", "") == f"{ANSWER.format(1)}\n"
