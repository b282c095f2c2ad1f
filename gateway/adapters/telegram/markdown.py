"""Markdown for Telegram: a plain text, and the spans in it that are bold, code, a link and so on.

The text is made in one pass over the parser's events. The time grows only with the text's length, whatever it contains:
an element that would become many times as long is shown as it was written.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import pyromark
from pyromark.event import Range as Where  # in the text's UTF-8

from gateway.adapters.shared.markdown_table import fit_columns

OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
LITERAL = frozenset({"Html", "InlineHtml", "InlineMath", "DisplayMath"})
NESTING = frozenset({"BlockQuote", "List", "Item"})
DEEPEST = 20  # levels of quotes and lists: each level indents its content
DEEPEST_SPAN = 100  # levels of spans; Telegram takes no more in a whole message
MOST_EVENTS = 4  # events for each character: a wide table has cells that were never written
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

Event = tuple[Any, Where]  # an event of the parser, and its place


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
    for number, (event, where) in enumerate(events):
        reader.read(number, event, where)
    return "".join(reader.out.parts), sorted(reader.out.spans, key=lambda span: (span.start, -span.end))


def _parse(markdown: str) -> tuple[bytes, list[Event]] | None:
    """Parse the source; HTML and apparent formulas (or prices) count as plain text.

    Returns None if all of it must count as plain text: a text of 10 kB can be nested so deeply that it would become 12
    MB.
    """
    source = markdown.encode("utf-8", "replace")
    events = _list_events(source, OPTIONS | pyromark.Options.ENABLE_MATH)
    literals = [where for event, where in events or () if isinstance(event, dict) and not LITERAL.isdisjoint(event)]
    if literals:
        parts, at = list[bytes](), 0
        for where in literals:
            escaped = re.sub(rb"([<$\\])", rb"\\\1", source[where["start"] : where["end"]])
            parts += [source[at : where["start"]], escaped]
            at = where["end"]
        source = b"".join([*parts, source[at:]])
        events = _list_events(source, OPTIONS)
    return (source, events) if events is not None else None


def _list_events(source: bytes, options: pyromark.Options) -> list[Event] | None:
    """List the parser's events; None for far more events than a person writes, or for too deep nesting."""
    events, most, depth = list[Event](), MOST_EVENTS * len(source) + 100, 0
    for event, where in pyromark.events_with_range(source.decode(), options=options):
        events.append((event, where))
        if isinstance(event, dict):
            depth += "Start" in event and _name_of(event["Start"])[0] in NESTING
            depth -= "End" in event and _name_of(event["End"])[0] in NESTING
        if depth > DEEPEST or len(events) > most:
            return None
    return events


def _find_spoilers(events: Iterable[Event]) -> frozenset[tuple[int, int]]:
    """Find the marks of spoilers, as the number of a text and of the mark in it: in pairs, each in one paragraph."""
    found, opened, is_apart = list[tuple[int, int]](), None, False
    for number, (event, _) in enumerate(events):
        for edge in ("Start", "End"):
            if isinstance(event, dict) and edge in event and (name := _name_of(event[edge])[0]) not in KINDS:
                opened = opened if name == "Link" else None
                is_apart = edge == "Start" and name in APART if name in APART else is_apart
        if is_apart or not isinstance(event, dict) or "||" not in event.get("Text", ""):
            continue
        for mark in range(len(SPOILER.findall(event["Text"]))):
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

    def read(self, number: int, event: Any, where: Where) -> None:
        ((kind, value),) = event.items() if isinstance(event, dict) else ((event, ""),)
        match kind:
            case "Start":
                self._begin(*_name_of(value), where)
            case "End":
                self._finish(_name_of(value)[0], where)
            case "Text" if (number, 0) in self._spoilers:
                self._put_spoilers(number, value)
            case "Code":
                start = self.out.length
                self._put(value)
                self.out.add("code", start)
            case "SoftBreak" | "HardBreak":
                self._put("\n" if self._rows is None else " ")
            case "Rule":
                self._begin_block(where)
                self.out.write(RULE)
                self._has_block = True
            case "TaskListMarker":
                self.out.length -= len(self.out.parts.pop())  # the bullet
                self.out.write(f"{self._indent}{DONE if value else UNDONE}")
            case _:
                self._put(value)

    def _begin(self, name: str, about: Any, where: Where) -> None:
        if self._is_block(name):
            self._begin_block(where)
        is_single = name == "Strikethrough" and self._is_single(where)
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

    def _finish(self, name: str, where: Where) -> None:
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
        if name == "Strikethrough" and self._is_single(where):
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

    def _is_single(self, where: Where) -> bool:
        """Return True for a single tilde, which means "about"; only two strike text out."""
        return self._source[where["start"] + 1 : where["start"] + 2] != b"~"

    def _begin_block(self, where: Where) -> None:
        """Begin a block on a new line, behind an empty one if the source has one there."""
        if self._has_block:
            between = self._source[self._block_start + 1 : where["start"]]
            wanted = min(between[len(between.rstrip(b" \t>\n")) :].count(b"\n"), 2) or 1
            self.out.write("\n" * max(wanted - self.out.breaks, 0))
        self._block_start = where["start"]

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


def _name_of(tag: Any) -> tuple[str, Any]:
    """Return the name of an element that begins or ends, and its attributes."""
    return next(iter(tag.items())) if isinstance(tag, dict) else (tag, None)
