"""Markdown for Telegram: a plain text, and the spans in it that are bold, code, a link and so on.

The text is made in one pass over the parser's events. The time grows only with the text's length, whatever it contains:
an element that would become many times as long is shown as it was written.
"""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from gateway.adapters.shared.markdown_table import fit_columns
from gateway.messages.markdown import TABLES, WITH_FORMULAS, MarkdownEvent, list_events

LITERAL = frozenset({"Html", "InlineHtml", "InlineMath", "DisplayMath"})
NESTING = frozenset({"BlockQuote", "List", "Item"})
DEEPEST = 20  # levels of quotes and lists: each level indents its content
DEEPEST_SPAN = 100  # levels of spans; Telegram takes no more in a whole message
LONG_QUOTE = 200  # characters; a longer one is collapsed
KINDS = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough", "BlockQuote": "blockquote"}
HEADINGS = {"H5": "italic", "H6": "italic"}  # the others are bold
APART = frozenset({"TableCell", "CodeBlock"})  # no spoilers inside these
BLOCKS = frozenset({"Paragraph", "Heading", "BlockQuote", "CodeBlock", "HtmlBlock", "List", "Table"})
SPANS = frozenset({*KINDS, "Heading", "CodeBlock", "Link", "Image"})
RULE = "\N{EM DASH}" * 8
BULLET = "\N{BULLET} "
DONE, UNDONE = "\N{WHITE HEAVY CHECK MARK} ", "\N{BALLOT BOX WITH CHECK} "
SPOILER = re.compile(r"(?<!\|)\|\|(?!\|)")


class TextSegment(NamedTuple):
    """A span of a text, with the way it is shown."""

    kind: str
    start: int
    end: int
    about: str = ""  # the target of a link, or the language of code


def read_markdown(markdown: str) -> tuple[str, list[TextSegment]]:
    """Return the text to show, and its spans in the order of their beginnings."""
    parsed = _parse(markdown.replace("\r\n", "\n").replace("\r", "\n"))
    if parsed is None:
        return markdown, []
    source, events = parsed
    reader = _MarkdownReader(source, _find_spoilers(events))
    for number, event in enumerate(events):
        reader.read(number, event)
    return "".join(reader.out.parts), sorted(reader.out.spans, key=lambda span: (span.start, -span.end))


def _parse(markdown: str) -> tuple[bytes, list[MarkdownEvent]] | None:
    """Parse the source; HTML and apparent formulas (or prices) count as plain text.

    Returns None if all of it must count as plain text: a text of 10 kB can be nested so deeply that it would become 12
    MB.
    """
    source = markdown.encode("utf-8", "replace")
    events = list_events(source, WITH_FORMULAS)
    if literals := [event for event in events or () if event.kind in LITERAL]:
        parts, at = list[bytes](), 0
        for event in literals:
            escaped = re.sub(rb"([<$\\])", rb"\\\1", source[event.start : event.end])
            parts += [source[at : event.start], escaped]
            at = event.end
        source = b"".join([*parts, source[at:]])
        events = list_events(source, TABLES)
    return None if events is None or _is_too_deep(events) else (source, events)


def _is_too_deep(events: Iterable[MarkdownEvent]) -> bool:
    """Return True if quotes and lists are nested deeper than a person writes."""
    steps = ((event.edge == "Start") - (event.edge == "End") for event in events if event.kind in NESTING)
    return max(accumulate(steps), default=0) > DEEPEST


def _find_spoilers(events: Iterable[MarkdownEvent]) -> frozenset[tuple[int, int]]:
    """Find the marks of spoilers, as the number of a text and of the mark in it: in pairs, each in one paragraph."""
    found, opened, is_apart = list[tuple[int, int]](), None, False
    for number, (edge, kind, about, *_) in enumerate(events):
        if edge and kind not in KINDS:
            opened = opened if kind == "Link" else None
            is_apart = edge == "Start" if kind in APART else is_apart
        if is_apart or kind != "Text" or "||" not in about:
            continue
        for mark in range(len(SPOILER.findall(about))):
            found += [opened, (number, mark)] if opened else []
            opened = None if opened else (number, mark)
    return frozenset(found)


class _SpannedText(msgspec.Struct, eq=False):
    """A growing text, and its spans."""

    parts: list[str] = []
    spans: list[TextSegment] = []
    length: int = 0
    breaks: int = 0  # at the end of the text
    _opened: list[tuple[str, int, str]] = []

    def write(self, text: str) -> None:
        kept = len(text.rstrip("\n"))
        self.breaks = len(text) - kept + (0 if kept else self.breaks)
        self.length += len(text)
        self.parts.append(text)

    def open(self, kind: str, about: str = "") -> None:
        self._opened.append((kind if len(self._opened) < DEEPEST_SPAN else "", self.length, about))

    def close(self) -> None:
        kind, start, about = self._opened.pop()
        if kind == "blockquote" and self.length - start > LONG_QUOTE:
            kind = "expandable_blockquote"
        self.add(kind, start, about)

    def add(self, kind: str, start: int, about: str = "") -> None:
        if kind and start < self.length:
            self.spans.append(TextSegment(kind, start, self.length, about))


class _MarkdownReader(msgspec.Struct, eq=False):
    """The writer of the text, by the parser's events."""

    _source: bytes
    _spoilers: frozenset[tuple[int, int]]
    out: _SpannedText = msgspec.field(default_factory=_SpannedText)
    _spoiler: int | None = None  # the start of the open spoiler
    _lists: list[int | None] = []  # the next number of each open list; None: it has bullets
    _has_block: bool = False
    _block_start: int = -1
    _code: list[str] | None = None  # of the open block
    _rows: list[list[str]] | None = None  # of the open table
    _cell: list[str] = []

    def read(self, number: int, event: MarkdownEvent) -> None:
        edge, kind, value, start, _ = event
        match edge or kind:
            case "Start":
                self._begin(kind, value, start)
            case "End":
                self._finish(kind, start)
            case "Text" if (number, 0) in self._spoilers:
                self._put_spoilers(number, value)
            case "Code":
                begin = self.out.length
                self._put(value)
                self.out.add("code", begin)
            case "SoftBreak" | "HardBreak":
                self._put("\n" if self._rows is None else " ")
            case "Rule":
                self._begin_block(start)
                self.out.write(RULE)
                self._has_block = True
            case "TaskListMarker":
                self.out.length -= len(self.out.parts.pop())  # the bullet
                self.out.write(f"{self._indent}{DONE if value else UNDONE}")
            case _:
                self._put(value)

    def _begin(self, name: str, about: Any, start: int) -> None:
        if self._is_block(name):
            self._begin_block(start)
        is_single = name == "Strikethrough" and self._is_single(start)
        if is_single:
            self._put("~")
        if name in SPANS:
            self.out.open(*(("", "") if is_single else _span_of(name, about)))
        match name:
            case "CodeBlock":
                self._code = []
            case "List":
                self._lists.append(about)
            case "Item":
                self._begin_item()
            case "Table":
                self._rows = []
            case "TableHead" | "TableRow" if self._rows is not None:
                self._rows.append([])

    def _finish(self, name: str, start: int) -> None:
        match name:
            case "CodeBlock":
                code, self._code = "".join(self._code or ()), None
                self.out.write(code.removesuffix("\n"))  # the parser adds one
            case "TableCell" if self._rows:
                self._rows[-1].append("".join(self._cell))
                self._cell.clear()
            case "Table":
                rows, self._rows = self._rows or [], None
                self._write_table(rows)
            case "List":
                self._lists.pop()
            case "Paragraph" | "Item" if self._lists and not self.out.breaks:
                self.out.write("\n")
        if name in SPANS:
            self.out.close()
        if name == "Strikethrough" and self._is_single(start):
            self._put("~")
        self._has_block |= self._is_block(name)

    def _put(self, text: str) -> None:
        """Write text to the open code block, table cell or message."""
        if self._code is not None:
            self._code.append(text)
        elif self._rows is not None:
            self._cell.append(text)
        else:
            self.out.write(text)

    def _put_spoilers(self, number: int, text: str) -> None:
        for mark, part in enumerate(SPOILER.split(text), start=-1):
            if mark >= 0 and (number, mark) not in self._spoilers:
                self.out.write("||")
            elif mark >= 0 and self._spoiler is None:
                self._spoiler = self.out.length
            elif mark >= 0:
                self.out.add("spoiler", self._spoiler or 0)
                self._spoiler = None
            self.out.write(part)

    def _is_block(self, name: str) -> bool:
        """Return True for an element on lines of its own; the content of a list follows its bullet."""
        return name in BLOCKS and not (self._lists and name in ("Paragraph", "List"))

    def _is_single(self, start: int) -> bool:
        """Return True for a single tilde, which means "about"; only two strike text out."""
        return self._source[start + 1 : start + 2] != b"~"

    def _begin_block(self, start: int) -> None:
        """Begin a block on a new line, behind an empty one if the source has one there."""
        if self._has_block:
            between = self._source[self._block_start + 1 : start]
            wanted = min(between[len(between.rstrip(b" \t>\n")) :].count(b"\n"), 2) or 1
            self.out.write("\n" * max(wanted - self.out.breaks, 0))
        self._block_start = start

    @property
    def _indent(self) -> str:
        return "  " * (len(self._lists) - 1)

    def _begin_item(self) -> None:
        if self.out.length and not self.out.breaks:
            self.out.write("\n")
        number = self._lists[-1]
        self.out.write(f"{self._indent}{BULLET if number is None else f'{number}. '}")
        if number is not None:
            self._lists[-1] = number + 1

    def _write_table(self, rows: list[list[str]]) -> None:
        head, rule, *others = fit_columns(rows)
        lines = [" | ".join(head), *(["-+-".join(rule)] if others else []), *(" | ".join(row) for row in others)]
        start = self.out.length
        self.out.write("\n".join(lines))
        self.out.add("pre", start)


def _span_of(name: str, about: Any) -> tuple[str, str]:
    """Return the kind of a span, and its link or language."""
    match name:
        case "Heading":
            return HEADINGS.get(about["level"], "bold"), ""
        case "CodeBlock":
            return "pre", about["Fenced"].split(",")[0].strip() if isinstance(about, dict) else ""
        case "Link" | "Image":
            return "text_link" if about["dest_url"] else "", about["dest_url"]
        case _:
            return KINDS[name], ""
