"""Markup that Discord does not know becomes markup that it knows; code is left alone."""

from hypothesis import given
from hypothesis import strategies as some

from gateway.adapters.discord.format import render_messages, to_discord_markdown

TABLE = """| name | what |
|---|:-:|
| **a** | long cell |
| b |"""


def test_a_table_becomes_columns() -> None:
    assert to_discord_markdown(TABLE).splitlines() == [
        "```",
        "name  what",
        "----  ---------",
        "a     long cell",
        "b",
        "```",
    ]


def test_code_is_left_alone() -> None:
    code = f"```\n{TABLE}\n##### no heading\n![no](http://picture)\n```"
    assert to_discord_markdown(code) == code


def test_deep_headings_are_bold_and_pictures_are_links() -> None:
    assert to_discord_markdown("##### a **b**\n## c") == "**a b**\n## c"
    assert to_discord_markdown("see ![a dog](http://dog.example)") == "see [a dog](http://dog.example)"


@given(some.text(alphabet="a |-`\n#!*[]()😀", max_size=300))
def test_no_text_is_too_long_for_discord(text: str) -> None:
    assert all(len(one.encode("utf-16-le")) // 2 <= 60 for one in render_messages(text, 60))
