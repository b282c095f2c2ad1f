"""The width of texts for people: the width of the terminal, and a fixed one for any other output.

This module knows nothing else of the gateway, and imports little: `--help` must be fast. It folds texts of ours; texts
of others are made harmless first (`gateway.logs.text`).
"""

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

WIDTH = 100  # columns of help outside a terminal
BOX_WIDTH = 80


def get_columns(stream: TextIO) -> int | None:
    """Return the number of columns; None if the reader is not a terminal, and gets whole lines."""
    if not stream.isatty():
        return None
    return os.get_terminal_size(stream.fileno()).columns or 80


def fold_lines(text: str, stream: TextIO) -> str:
    """Fold a text of two columns; on a terminal a long line continues below the start of its second one."""
    if (width := get_columns(stream)) is None:
        return text
    folded: list[str] = []
    for line in text.split("\n"):
        first = re.match(r" *\S+ {2,}| *", line)
        indent = " " * first.end() if first and len(line) > width else ""
        folded += fold_words(line, width, indent)
    return "\n".join(folded)


def fold_words(text: str, width: int, indent: str = "") -> list[str]:
    """Fold a text at spaces only: an option that is cut in two is none."""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False) or [""]


class HelpLayout(argparse.HelpFormatter):
    """The layout of help: one width, so that the documentation can show it; on a terminal no wider than that."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(WIDTH, get_columns(sys.stdout) or WIDTH))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return fold_words(" ".join(text.split()), width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in fold_words(" ".join(text.split()), width - len(indent)))


def render_box(title: str, fields: Sequence[tuple[str, str]]) -> str:
    """Render names and values behind a line; a long value continues below itself."""
    width = min(BOX_WIDTH, get_columns(sys.stdout) or BOX_WIDTH)
    names = max(len(name) for name, _ in fields)
    lines: list[str] = []
    for name, value in fields:
        folded = fold_words(value, width - names - 4)
        lines += [
            f"│ {label:{names}}  {part}" for label, part in zip([name, *[""] * len(folded)], folded, strict=False)
        ]
    return "\n".join([f"╭─ {title} ".ljust(width, "─"), *lines, "╰".ljust(width, "─")])
