"""Markdown on a terminal: each block as rows in styles that take no room.

Nothing that a text says acts on the terminal: what the parser made of it, such as a sign that was written as a number,
is escaped as late as that. An address follows the words that lead to it. Code begins at the left edge, unfolded,
whatever it is in, so that the rows that people copy are the code. A text stays as it was written where it is nested
deeper, or has more parts, than anybody writes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from gateway.cli.output import escape_text
from gateway.cli.table import GAP, HOLDER, NARROWEST, count_columns, fold_text
from gateway.messages.markdown import list_events

DEEPEST = 24  # quotes, lists, items and spans in one another
LONGEST_HEADER = 40  # columns: it precedes each cell of a table that is too wide
LONGEST_HELD = 40  # columns of code within a line that stay in one row
RULE_WIDTH = 40
BOLD, DIM, ITALIC, UNDERLINED, STRUCK, CYAN = 1, 2, 3, 4, 9, 36
SPANS = {"Strong": BOLD, "Emphasis": ITALIC, "Strikethrough": STRUCK}
BLOCKS = frozenset({"Paragraph", "Heading", "BlockQuote", "CodeBlock", "HtmlBlock", "List", "Item", "Table", "Rule"})
BULLET = "\N{BULLET}"
NUMBER = re.compile(rb"\d{1,9}[.)]")


class Block(NamedTuple):
    """A part that the parser found in the source: a block, or a span or a text within one."""

    kind: str
    about: Any
    start: int
    end: int
    parts: list["Block"]


class TerminalRow(NamedTuple):
    """A line of a screen. Nothing is put before one of code, since people copy it."""

    text: str
    is_code: bool = False


def encode_markdown(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def parse_markdown(source: bytes) -> list[Block] | None:
    """Return the blocks in their order, or None if they are nested too deep or have too many parts."""
    if (events := list_events(source)) is None:
        return None
    top = Block("", None, 0, len(source), [])
    opened = [top]
    for edge, kind, about, start, end in events:
        if edge == "End":
            opened.pop()
            continue
        block = Block(kind, about, start, end, [])
        opened[-1].parts.append(block)
        if edge == "Start":
            opened.append(block)
        if len(opened) > DEEPEST:
            return None
    return [*_add_unseen(source, top.parts)]


def _add_unseen(source: bytes, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, and the text between them that the parser omits, such as the address of a named link."""
    at = 0
    for block in [*blocks, Block("", None, len(source), len(source), [])]:
        between = source[at : block.start]
        if between.strip():
            start = at + len(between) - len(between.lstrip())
            end = at + len(between.rstrip())
            yield Block("HtmlBlock", None, start, end, [Block("Html", source[start:end].decode(), start, end, [])])
        at = block.end
        if block.kind:
            yield block


def render_blocks(source: bytes, blocks: Sequence[Block] | None, width: int) -> list[str]:
    """Return the rows of these blocks; without a block, return the rows of the plain source."""
    renderer = _MarkdownRenderer(source)
    plain = escape_text(source.decode().strip("\n"))
    rows = renderer.fold(plain, width) if blocks is None else renderer.render(blocks, width)
    return [row.text for row in rows]


def render_code(line: str) -> str:
    """Return a line of code with nothing before or behind it; a tab stays a tab, to be copied."""
    harmless = "\t".join(map(escape_text, line.split("\t")))
    return _apply_codes(harmless, (CYAN,))


def render_label(about: str) -> str:
    """Return the row above a block of code: its language, if it names one."""
    words = about.split(",")[0].split()
    return _apply_codes(escape_text(words[0]), (DIM,)) if words else ""


def _apply_codes(text: str, codes: Sequence[int]) -> str:
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if text and codes else text


def _paint(text: str, codes: Sequence[int]) -> str:
    """Apply codes to each word, since a line may be folded between two words."""
    return " ".join(_apply_codes(word, codes) for word in text.split(" "))


class _MarkdownRenderer(msgspec.Struct, eq=False):
    """The rows of blocks that were found in one source."""

    _source: bytes

    def render(self, blocks: Sequence[Block], width: int) -> list[TerminalRow]:
        """Return the rows of blocks, with an empty row where the source has an empty line."""
        rows = list[TerminalRow]()
        for number, block in enumerate(blocks):
            if number and self._is_apart(blocks[number - 1], block):
                rows.append(TerminalRow(""))
            rows += self._render_block(block, max(width, NARROWEST))
        return rows

    def fold(self, text: str, width: int) -> list[TerminalRow]:
        return [TerminalRow(row.replace(HOLDER, " ")) for line in text.split("\n") for row in fold_text(line, width)]

    def _is_apart(self, before: Block, block: Block) -> bool:
        between = self._source[before.start + 1 : block.start]
        return between[len(between.rstrip(b" \t\r\n>")) :].count(b"\n") > 1

    def _render_block(self, block: Block, width: int) -> list[TerminalRow]:
        match block.kind:
            case "Heading":
                codes = (BOLD, UNDERLINED) if block.about["level"] == "H1" else (BOLD,)
                return self.fold(self._render_spans(block.parts, codes), width)
            case "BlockQuote":
                edge = _apply_codes("│", (DIM,)) + " "
                return [_put_before(edge, row) for row in self.render(block.parts, width - 2)]
            case "List":
                return self.render(block.parts, width)
            case "Item":
                return self._render_item(block, width)
            case "CodeBlock":
                return self._render_code(block)
            case "Table":
                return self._render_table(block, width)
            case "Rule":
                return [TerminalRow(_apply_codes("─" * min(width, RULE_WIDTH), (DIM,)))]
            case "HtmlBlock":
                return self.fold(escape_text("".join(part.about for part in block.parts).strip("\n")), width)
            case _:
                return self.fold(self._render_spans(block.parts), width)

    def _render_item(self, item: Block, width: int) -> list[TerminalRow]:
        """Return the rows of an item behind its number in the source, or behind a bullet."""
        number = NUMBER.match(self._source, item.start)
        mark = f"{number[0].decode()} " if number else f"{BULLET} "
        rows = self.render([*_group_spans(item)], width - len(mark))
        if not rows or rows[0].is_code:
            rows.insert(0, TerminalRow(""))
        return [_put_before(" " * len(mark) if at else mark, row) for at, row in enumerate(rows)]

    def _render_code(self, block: Block) -> list[TerminalRow]:
        label = render_label(block.about["Fenced"]) if isinstance(block.about, dict) else ""
        lines = "".join(part.about for part in block.parts).removesuffix("\n").split("\n")
        return [*([TerminalRow(label)] if label else []), *(TerminalRow(render_code(line), True) for line in lines)]

    def _render_table(self, table: Block, width: int) -> list[TerminalRow]:
        """Return columns if they fit, else each row as a list, or the source if that would be long."""
        head = [self._render_spans(cell.parts, (BOLD,)) for cell in table.parts[0].parts]
        body = [[self._render_spans(cell.parts) for cell in row.parts] for row in table.parts[1:]]
        widths = [max(map(count_columns, column)) for column in zip(head, *body, strict=True)]
        if sum(widths) + len(GAP) * (len(widths) - 1) <= width:
            rule = [_apply_codes("─" * room, (DIM,)) for room in widths]
            lines = [_align_cells(cells, widths, table.about) for cells in (head, rule, *body)]
            return [TerminalRow(GAP.join(line).rstrip().replace(HOLDER, " ")) for line in lines]
        if max(map(count_columns, head)) > LONGEST_HEADER:
            return self.fold(escape_text(self._source[table.start : table.end].decode().strip("\n")), width)
        rows = list[TerminalRow]()
        for cells in body:
            named = [f"{name}: {cell}" if name else cell for name, cell in zip(head, cells, strict=True) if cell]
            rows += [TerminalRow("")] if rows else []
            rows += [row for one in named for row in self.fold(one, width)]
        return rows or self.fold(GAP.join(head), width)

    def _render_spans(self, parts: Iterable[Block], codes: Sequence[int] = ()) -> str:
        return "".join(self._render_span(part, codes) for part in parts)

    def _render_span(self, span: Block, codes: Sequence[int]) -> str:
        match span.kind:
            case "SoftBreak" | "HardBreak":
                return "\n"
            case "Code":
                code = escape_text(span.about)
                is_held = count_columns(code) <= LONGEST_HELD
                return _paint(code.replace(" ", HOLDER) if is_held else code, (*codes, CYAN))
            case "TaskListMarker":
                return "[x] " if span.about else "[ ] "
            case "Link" | "Image":
                return self._render_link(span, codes)
            case "Strikethrough" if self._source[span.start + 1 : span.start + 2] != b"~":  # one says "about"
                return f"~{self._render_spans(span.parts, codes)}~"
            case kind if kind in SPANS:
                return self._render_spans(span.parts, (*codes, SPANS[kind]))
            case _ if span.parts:
                return self._render_spans(span.parts, codes)
            case _:
                return _paint(escape_text(str(span.about or "").replace("\n", " ")), codes)

    def _render_link(self, span: Block, codes: Sequence[int]) -> str:
        """Return the words and the address, unless the words are the address."""
        words = self._render_spans(span.parts, (*codes, UNDERLINED))
        address = escape_text(span.about["dest_url"].replace("\n", " "))
        said = escape_text("".join(str(part.about) for part in span.parts))
        if address in ("", said, f"mailto:{said}"):
            return words
        return f"{words} <{address}>" if words else f"<{address}>"


def _group_spans(item: Block) -> Iterator[Block]:
    """Yield the blocks of a list item; in a list without gaps the parser names no paragraph around the words."""
    for is_block, group in groupby(item.parts, lambda part: part.kind in BLOCKS):
        parts = [*group]
        if is_block:
            yield from parts
        else:
            yield Block("Paragraph", None, parts[0].start, parts[-1].end, parts)


def _put_before(edge: str, row: TerminalRow) -> TerminalRow:
    return row if row.is_code else TerminalRow(f"{edge}{row.text}".rstrip())


def _align_cells(cells: Sequence[str], widths: Sequence[int], sides: Sequence[str]) -> Iterator[str]:
    for cell, width, side in zip(cells, widths, sides, strict=True):
        room = width - count_columns(cell)
        before = {"Right": room, "Center": room // 2}.get(side, 0)
        yield f"{' ' * before}{cell}{' ' * (room - before)}"
