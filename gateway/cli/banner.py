"""The box that `run` prints once the gateway serves: where it is, what it has, how it is stopped."""

import textwrap
from collections.abc import Sequence

from gateway.cli.output import count_columns

WIDTH = 100


def render_box(title: str, fields: Sequence[tuple[str, str]]) -> str:
    """A frame around names and values; long values go on in the next line."""
    names = max(count_columns(name) for name, _ in fields)
    inner = WIDTH - 4
    lines: list[str] = []
    for name, value in fields:
        folded = textwrap.wrap(value, inner - names - 2, break_on_hyphens=False, break_long_words=False) or [""]
        lines += [f"{label:{names}}  {part}" for label, part in zip([name, *[""] * len(folded)], folded, strict=False)]
    widest = max(count_columns(line) for line in [*lines, title])
    top = f"╭─ {title} " + "─" * (widest - count_columns(title) - 1) + "╮"
    rows = [f"│ {line}{' ' * (widest - count_columns(line))} │" for line in lines]
    return "\n".join([top, *rows, "╰" + "─" * (widest + 2) + "╯"])
