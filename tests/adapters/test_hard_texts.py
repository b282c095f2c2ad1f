"""No answer can hold up the gateway by what it is made of, on any network: 40 kB, which is what one answer may have."""

import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from gateway.adapters.discord.format import render_messages as render_discord
from gateway.adapters.slack.format import render_messages as render_slack
from gateway.adapters.telegram.format import render_messages as render_telegram

SIZE = 40_000
LONGEST = 2.0  # seconds of the processor, on a machine that is busy with other things too
NETWORKS: Mapping[str, Callable[[str], Sequence[object]]] = {
    "discord": render_discord,
    "slack": render_slack,
    "telegram": render_telegram,
}
NESTED = ("> - ", "1. > ", "1. ", "- ", ">", "> ", "- ```\n")
OPENED = ("[", "[a](", "![a](", "**a *b ", "_a ", "`", "~~~\n", "<", "<@a", "$", "\\")
WHOLE = ("`a` ", "```\nx\n", "# a\n\n", "- a\n", "|a", "|a|b|\n|-|-|\n", "||a||", "<b>", "&amp;", "[a]: b\n")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("repeated", [*NESTED, *OPENED, *WHOLE])
def test_an_answer_of_one_thing_alone_is_cut_in_time(network: str, repeated: str) -> None:
    text = (repeated * SIZE)[:SIZE]
    began = time.thread_time()
    messages = NETWORKS[network](text)
    assert time.thread_time() - began < LONGEST
    assert len(messages) < 100


def test_what_is_nested_deeper_than_anybody_reads_is_shown_as_it_was_written() -> None:
    for depth, is_shown_as_written in ((20, False), (21, True)):
        (piece,) = render_telegram("> " * depth + "deep")
        assert (piece.text == "> " * depth + "deep") is is_shown_as_written
