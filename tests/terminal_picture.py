"""A terminal as a picture: what a program wrote, with its colours, as SVG that fetches nothing, not even a font."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, LINE, CELL, MARGIN, BAR = 96, 19, 8.43, 18, 34  # in columns, and in pixels
BACKGROUND, TEXT, PROMPT = "#15191f", "#d6dbe3", "#7fb4ff"
NO_BREAK = "\u00a0"  # a blank that no reader of SVG drops
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
# What a number of an escape sequence does to what follows it.
COLOURS = {30: "#5c6370", 31: "#f07178", 32: "#9bd17f", 33: "#e6c07b", 34: "#7fb4ff", 35: "#c99bf0", 36: "#6fd0d8"}
SEQUENCE = re.compile(r"\x1b\[([\d;]*)m")
OTHER_SEQUENCE = re.compile(r"\x1b(?:\[[\d;?]*[A-Za-ln-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


class Piece(NamedTuple):
    """Some text of one look."""

    text: str
    style: str = ""


def as_pieces(line: str) -> Iterator[Piece]:
    """A line of output, cut where its look changes."""
    look: dict[str, str] = {}
    at = 0
    for found in [*SEQUENCE.finditer(line), None]:
        text = line[at : found.start() if found else len(line)]
        if text:
            yield Piece(text, "".join(f' {name}="{value}"' for name, value in look.items()))
        if found:
            at = found.end()
            look = turned(look, [int(number or 0) for number in found[1].split(";")])


def turned(look: dict[str, str], numbers: Sequence[int]) -> dict[str, str]:
    for number in numbers:
        if number == 0:
            look = {}
        elif number == 1:
            look = {**look, "font-weight": "bold"}
        elif number == 2:
            look = {**look, "opacity": "0.65"}
        elif colour := COLOURS.get(number - 60 if number >= 90 else number):
            look = {**look, "fill": colour}
    return look


def wrapped(text: str) -> Iterator[list[Piece]]:
    """The rows of a terminal of that width."""
    for line in OTHER_SEQUENCE.sub("", text).replace("\r", "").splitlines():
        row, left = list[Piece](), WIDTH
        for piece in as_pieces(line):
            rest = piece.text
            while rest:
                row.append(Piece(rest[:left], piece.style))
                left, rest = left - len(rest[:left]), rest[left:]
                if not left and rest:
                    yield row
                    row, left = [], WIDTH
        yield row


def as_svg(said: Sequence[tuple[str, str]]) -> str:
    """Commands, each with what it said."""
    rows = list[list[Piece]]()
    for command, answer in said:
        rows += [[Piece("$ ", f' fill="{PROMPT}"'), *row] for row in wrapped(command.splitlines()[0])]
        rows += [*wrapped(answer.strip("\n")), []]
    width, height = round(WIDTH * CELL + 2 * MARGIN), BAR + LINE * len(rows) + MARGIN - LINE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" rx="9" fill="{BACKGROUND}"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5" fill="#3a414c"/>' for at in range(3)),
        f'<g font-family="{FONT}" font-size="14" fill="{TEXT}">',
    ]
    for number, row in enumerate(rows):
        cells = "".join(f"<tspan{style}>{escape(text).replace(' ', NO_BREAK)}</tspan>" for text, style in row)
        if cells:
            long = f'textLength="{sum(len(piece.text) for piece in row) * CELL:.1f}"'
            lines.append(f'<text x="{MARGIN}" y="{BAR + LINE * number + 14}" {long}>{cells}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])
