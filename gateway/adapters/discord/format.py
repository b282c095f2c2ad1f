"""The conversion from Markdown to Discord's own dialect, in messages that are short enough.

Discord shows Markdown itself, but no tables, no pictures and no deep headings: a table becomes a code block with
straight columns, a picture a link, a deep heading bold. Code is left as it is.
"""

import re
from collections.abc import Sequence

from discord.utils import escape_markdown

from gateway.adapters.shared.markdown_split import FENCE, count_utf16_units, split_markdown
from gateway.adapters.shared.markdown_table import fit_columns
from gateway.messages.message import LiteralText

LIMIT = 2000  # characters; counted by the longest of the possible ways
ROW = re.compile(r"\s*\|.*\|\s*")
RULE = re.compile(r"\s*\|(\s*:?-+:?\s*\|)+\s*")
DEEP_HEADING = re.compile(r"#{4,6}\s+(\S.*)")
PICTURE = re.compile(r"!(\[[^\[\]\n]{0,300}\]\([^)\s]{0,500}\))")
BACKTICKS = re.compile("`{3,}")
MARKS = re.compile(r"\*\*|__|`")


def render_messages(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the messages that show this text; none for a text without visible content."""
    return split_markdown(to_discord_markdown(markdown), limit)


def show_literals(literals: Sequence[LiteralText]) -> str | None:
    """Return the message that shows a whole question, each text in a code block.

    Returns None if the question needs more than one message. A code block of Discord's ends at three backticks, however
    it began: so those are shown as numbers.
    """
    blocks = []
    for one in literals:
        words = escape_markdown(one.words)
        text = BACKTICKS.sub(lambda found: "\u27e8U+0060\u27e9" * len(found[0]), one.text)
        blocks.append(f"{words}\n```\n{text}\n```" if text else words)
    whole = "\n".join(blocks)
    return whole if count_utf16_units(whole) <= LIMIT else None


def to_discord_markdown(markdown: str) -> str:
    """Replace the Markdown that Discord does not know by Markdown that it knows."""
    lines, found, fence = markdown.split("\n"), list[str](), ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if mark := FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and ROW.fullmatch(line) and RULE.fullmatch("".join(lines[at + 1 : at + 2])):
            end = at
            while end < len(lines) and ROW.fullmatch(lines[end]):
                end += 1
            found += render_table([line, *lines[at + 2 : end]])
            at = end
            continue
        elif not fence:
            line = PICTURE.sub(r"\1", line)
            line = f"**{title_of(deep[1]).replace('**', '')}**" if (deep := DEEP_HEADING.fullmatch(line)) else line
        found.append(line)
        at += 1
    return "\n".join(found)


def title_of(heading: str) -> str:
    """Remove the marks that may close a heading."""
    return heading.rstrip().rstrip("#").rstrip() or "#"


def render_table(rows: list[str]) -> list[str]:
    """Render a table as a code block, with aligned columns and a line under their heads."""
    cells = [[MARKS.sub("", cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    return ["```", *("  ".join(row).rstrip() for row in fit_columns(cells)), "```"]
