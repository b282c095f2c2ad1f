"""Texts mention no one, however their backticks are written; text that is certainly code stays as it is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gateway.adapters.slack.format import WORD_JOINER, disarm_mentions, split_code

IN_DOUBT = (
    "\\`@here`",
    "\\``@here`",
    "\\``a` @here `b`",
    "`` ` `` @here `x",
    "`` ` ``@here",
    "``` a`b\n@here",
    "```\nx\n``\n```\n@here",
    "~~~ a`b\n~~~\n@here",
    "`a\nb` @here `c",
    "`a @here",
    "`a``@here``b` @here",
    "`a\\` @here `",
    "    ```\n@here",
    "- x\n\n  ```\n  code\n\n@here",
    "- ```\n  code\n  ```\n\n  @here",
    "1. a\n\n   ```\n   x\n\nb `@here`",
    "> ~~~\n> a\n\n@here",
)
CODE = (
    "`@here`",
    "``a ` @here``",
    "\\\\`@here`",
    "a `b` c `@here` d",
    "```\n@here\n```",
    "~~~ a`b\n@here\n~~~",
    "````python\n```\n@here\n````",
    "`a\n\n`@here`",
    "  ```\n  @here\n  ```\n`@here`",
    "- a\n\n  ```\n  @here\n  ```",
)


@pytest.mark.row("T30")
@pytest.mark.parametrize("text", IN_DOUBT)
def test_what_is_no_code_calls_nobody(text: str) -> None:
    before, _, behind = text.rpartition("@here")
    assert disarm_mentions(text).endswith(f"@{WORD_JOINER}here{behind}")
    assert disarm_mentions(text).replace(WORD_JOINER, "") == f"{before}@here{behind}"


@pytest.mark.parametrize("text", CODE)
def test_what_is_code_stays_as_it_is(text: str) -> None:
    assert disarm_mentions(text) == text


@pytest.mark.row("T30")
@pytest.mark.parametrize("text", [*IN_DOUBT, *CODE])
@pytest.mark.parametrize("call", ["<!channel>", "<!HERE|here>", "<!everyone>", "<!subteam^S1>"])
def test_what_slack_itself_would_write_is_disarmed_wherever_it_stands(text: str, call: str) -> None:
    assert "<!" not in disarm_mentions(text.replace("@here", call))


@given(some.text("`\\a @", max_size=30))
def test_no_character_is_lost(line: str) -> None:
    assert "".join(split_code(line)[0]) == line


def test_many_backticks_take_no_longer_than_they_are_many() -> None:
    for text in ("`" * 200_000, "` `` " * 40_000, "\\`" * 100_000, " ".join("`" * (1 + at % 600) for at in range(700))):
        began = time.process_time()
        disarm_mentions(text)
        assert time.process_time() - began < 2
