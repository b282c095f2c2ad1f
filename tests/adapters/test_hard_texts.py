"""No answer can hold up the gateway by what it is made of, on any network.

An answer may have 40 kB; and sixteen times as much of a text takes about sixteen times as long.
"""

import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from gateway.adapters.discord.format import render_messages as render_discord
from gateway.adapters.slack.format import render_messages as render_slack
from gateway.adapters.telegram.format import render_messages as render_telegram

pytestmark = pytest.mark.thorough

SIZE = 40_000
LONGEST = 2.0  # seconds of the processor, on a machine that is busy with other things too
COMPARED = 16  # each text is compared with one that has so many times as much of it
MOST = 6.0  # times as long as a linear reader would take: the machine may be busy
SHORTEST = 0.004  # seconds; what takes less is not measured well
NETWORKS: Mapping[str, Callable[[str], Sequence[object]]] = {
    "discord": render_discord,
    "slack": render_slack,
    "telegram": render_telegram,
}
NESTED = ("> - ", "1. > ", "1. ", "- ", ">", "> ", "- ```\n")
OPENED = (
    "[",
    "[a](",
    "![a](",
    "**a *b ",
    "_a ",
    "`",
    "~~~\n",
    "<",
    "<@a",
    "$",
    "\\",
    "||",
    "a||b ",
    "\u0301",
    "\u200d",
)
WHOLE = ("`a` ", "```\nx\n", "# a\n\n", "- a\n", "|a", "|a|b|\n|-|-|\n", "||a||", "<b>", "&amp;", "[a]: b\n")
EMPTY = ("```\n```\n", "~~~\n~~~\n", "```\n\n```\n\n", "\n", " ", "**", "$a$1", "~a", "[a](b)", "**a** ", "\U0001f600")
Text = Callable[[int], str]
MIXED: Mapping[str, Text] = {
    "a spoiler around marks of quotes": lambda size: "||a\n" + "> " * (size // 2) + "b||",
    "a spoiler around empty lines": lambda size: "||a" + "\n" * size + "b||",
    "a wide cell above narrow ones": lambda size: "|" + "a" * (size // 2) + "|b|\n|-|-|\n" + "|a|b|\n" * (size // 12),
    "a wide table of narrow rows": lambda size: (
        "|a" * (size // 6) + "|\n" + "|-" * (size // 6) + "|\n" + "|a|\n" * (size // 12)
    ),
    "bold in bold": lambda size: "*a **b " * (size // 14) + "b** a*" * (size // 14),
    "a list in a list": lambda size: "".join(" " * (2 * (n % 15)) + "- a\n" for n in range(size // 20)),
}


def repeat(repeated: str) -> Text:
    return lambda size: (repeated * size)[:size]


HARD: Mapping[str, Text] = {one: repeat(one) for one in (*NESTED, *OPENED, *WHOLE, *EMPTY)} | dict(MIXED)


def time_of(network: str, text: str) -> float:
    """The shortest of three: what else goes on in this process and on this machine only ever adds to it."""
    return min(time_once(network, text) for _ in range(3))


def time_once(network: str, text: str) -> float:
    began = time.thread_time()
    NETWORKS[network](text)
    return time.thread_time() - began


def is_in_time(network: str, text: str, most: float) -> bool:
    return any(time_once(network, text) < most for _ in range(3))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("hard", HARD)
def test_an_answer_of_one_thing_alone_is_cut_in_time(network: str, hard: str) -> None:
    text = HARD[hard](SIZE)
    assert is_in_time(network, text, LONGEST)
    assert len(NETWORKS[network](text)) < 100


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("hard", HARD)
def test_more_of_it_takes_no_longer_for_each_sign(network: str, hard: str) -> None:
    small, large = HARD[hard](SIZE // 10), HARD[hard](SIZE // 10 * COMPARED)
    short = max(time_of(network, small), SHORTEST)
    assert is_in_time(network, large, MOST * COMPARED * short)


def test_what_is_nested_deeper_than_anybody_reads_is_shown_as_it_was_written() -> None:
    for depth, is_shown_as_written in ((20, False), (21, True)):
        (piece,) = render_telegram("> " * depth + "deep")
        assert (piece.text == "> " * depth + "deep") is is_shown_as_written
