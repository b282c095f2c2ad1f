"""From Markdown to what Telegram shows: plain text and entities, in pieces that Telegram takes.

Text and entities need no escaping, so no text can be refused or show its marks. A piece ends at a paragraph, a line or
a word, never within a character or, if it can be helped, a link; a fence that is cut stays a fence on both sides.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyromark
from telegram import MessageEntity
from telegramify_markdown import RenderConfig, convert, utf16_len
from telegramify_markdown.converter import STANDARD_OPTIONS
from telegramify_markdown.entity import MessageEntity as Span

from gateway.adapters.shared.markdown_split import find_furthest_end, find_sign_end, find_word_end
from gateway.messages import LiteralText

LIMIT = 4096  # UTF-16 units, Telegram's own
MOST_ENTITIES = 100
LITERAL = frozenset({"Html", "InlineHtml", "InlineMath", "DisplayMath"})
NESTING = frozenset({"BlockQuote", "List", "Item"})
DEEPEST = 20  # quotes and lists in one another: each level indents all that is in it


class TelegramText(NamedTuple):
    """What one message holds."""

    text: str
    entities: tuple[MessageEntity, ...]
    is_literal: bool = False  # without its entities it must not be sent: then parts of it would act


def show_literals(literals: Sequence[LiteralText]) -> TelegramText | None:
    """The message that shows all of a question, each text in a code block; None where it takes more than one."""
    text, entities, length = "", list[MessageEntity](), 0
    for one in literals:
        text, length = f"{text}{one.words}\n", length + utf16_len(one.words) + 1
        if one.text:
            entities.append(MessageEntity("pre", length, utf16_len(one.text)))
            text, length = f"{text}{one.text}\n", length + entities[-1].length + 1
    fits = length <= LIMIT and len(entities) <= MOST_ENTITIES
    return TelegramText(text.rstrip("\n"), tuple(entities), is_literal=True) if fits else None


def render_messages(markdown: str, limit: int = LIMIT) -> list[TelegramText]:
    """The messages that show this text; none for a text of which nothing can be seen."""
    escaped = escape_literals(markdown)
    if escaped is None:
        text, spans = markdown, list[Span]()
    else:
        text, spans = convert(escaped, config=make_render_config(), latex_escape=False)
    spans = [span for span in spans if span.type != "underline"]  # headings are bold, and that is enough
    links = [span for span in spans if span.type == "text_link"]
    return [
        cut_message(text, spans, start, end) for start, end in find_cuts(text, links, limit) if text[start:end].strip()
    ]


def make_render_config() -> RenderConfig:
    """No pictures that the writer did not choose."""
    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.image = symbols.link = ""
    symbols.unordered_list_item = "\N{BULLET}"
    return config


def escape_literals(markdown: str) -> str | None:
    """HTML and what looks like a formula (or a price) would lose its marks: it is shown as it was written.

    None where all of it must be: a text of 10 kB can be nested so deeply that it would become one of 12 MB.
    """
    events = list(pyromark.events_with_range(markdown, options=STANDARD_OPTIONS))
    if _find_depth(event for event, _ in events) > DEEPEST:
        return None
    source = markdown.encode()
    for event, where in reversed(events):
        if isinstance(event, dict) and not LITERAL.isdisjoint(event):
            start, end = where["start"], where["end"]
            source = source[:start] + re.sub(rb"([<$\\])", rb"\\\1", source[start:end]) + source[end:]
    return source.decode()


def _find_depth(events: Iterable[object]) -> int:
    """How many quotes and lists lie in one another at the most."""
    deepest = depth = 0
    for event in events:
        if isinstance(event, dict):
            for change, edge in ((1, "Start"), (-1, "End")):
                tag = event.get(edge)
                depth += change * (not NESTING.isdisjoint(tag if isinstance(tag, dict) else (tag,)))
        deepest = max(deepest, depth)
    return deepest


def find_cuts(text: str, links: list[Span], limit: int) -> Iterator[tuple[int, int]]:
    """Where each piece begins and ends, in characters, without the blanks at its ends."""
    start = 0
    while start < len(text):
        end = start + find_furthest_end(text[start : start + limit], limit)
        if end < len(text):
            end = find_word_end(text, start, end) or find_sign_end(text, start, end)
            end = find_end_before_link(text, links, start, end)
        yield trim_blanks(text, start, end)
        start = end


def find_end_before_link(text: str, links: list[Span], start: int, end: int) -> int:
    """The same end, or the beginning of the link that it would cut, unless the link is all there is."""
    at = utf16_len(text[:end])
    for link in links:
        if link.offset < at < link.offset + link.length:
            begin = len(text.encode("utf-16-le")[: link.offset * 2].decode("utf-16-le"))
            return begin if begin > start else end
    return end


def trim_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Telegram cuts blanks at the ends of a message away, and entities would no longer fit; line breaks go, too."""
    while start < end and text[start] == "\n":
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def cut_message(text: str, spans: list[Span], start: int, end: int) -> TelegramText:
    """The part of a text, with what of its entities lies in it."""
    first, last = utf16_len(text[:start]), utf16_len(text[:end])
    found = []
    for span in spans:
        begin, finish = max(span.offset, first), min(span.offset + span.length, last)
        if begin < finish:
            found.append(
                MessageEntity(span.type, begin - first, finish - begin, url=span.url, language=span.language or None)
            )
    return TelegramText(text[start:end], tuple(found))
