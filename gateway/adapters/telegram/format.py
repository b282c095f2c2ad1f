"""The conversion from Markdown to Telegram's plain text and entities, in messages that are short enough.

Text and entities need no escaping, so no text can be refused or show its marks. A piece ends at a paragraph, a line or
a word, never within a character or, if it can be helped, a link; a fence that is cut stays a fence on both sides.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from telegram import MessageEntity

from gateway.adapters.shared.markdown_split import (
    count_utf16_units,
    find_furthest_end,
    find_sign_end,
    find_word_end,
)
from gateway.adapters.telegram.markdown import TextSegment, read_markdown
from gateway.messages.message import LiteralText

LIMIT = 4096  # UTF-16 units, Telegram's own
MOST_ENTITIES = 100


class TelegramText(NamedTuple):
    """The content of one message."""

    text: str
    entities: tuple[MessageEntity, ...]
    is_literal: bool = False  # True if it must not be sent without its entities: parts of it would act then


def show_literals(literals: Sequence[LiteralText]) -> TelegramText | None:
    """Return the message that shows a whole question, each text in a code block; None if it needs more than one."""
    text, entities, length = "", list[MessageEntity](), 0
    for one in literals:
        text, length = f"{text}{one.words}\n", length + count_utf16_units(one.words) + 1
        if one.text:
            entities.append(MessageEntity("pre", length, count_utf16_units(one.text)))
            text, length = f"{text}{one.text}\n", length + entities[-1].length + 1
    fits = length <= LIMIT and len(entities) <= MOST_ENTITIES
    return TelegramText(text.rstrip("\n"), tuple(entities), is_literal=True) if fits else None


def render_messages(markdown: str, limit: int = LIMIT) -> list[TelegramText]:
    """Return the messages that show this text; none for a text without visible content."""
    text, spans = read_markdown(markdown)
    links = [span for span in spans if span.kind == "text_link"]
    found, waiting, at = list[TelegramText](), list[TextSegment](), 0
    for start, end in find_cuts(text, links, limit):
        waiting = [span for span in waiting if span.end > start]
        while at < len(spans) and spans[at].start < end:
            waiting.append(spans[at])
            at += 1
        if text[start:end].strip():
            found.append(TelegramText(text[start:end], format_segments(text[start:end], start, waiting)))
    return found


def find_cuts(text: str, links: Sequence[TextSegment], limit: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece, in characters, without the blanks at its ends."""
    start = 0
    while start < len(text):
        end = start + find_furthest_end(text[start : start + limit], limit)
        if end < len(text):
            end = find_word_end(text, start, end) or find_sign_end(text, start, end)
            end = find_end_before_link(links, start, end)
        yield trim_blanks(text, start, end)
        start = end


def find_end_before_link(links: Sequence[TextSegment], start: int, end: int) -> int:
    """Return the same end, or the start of the link that it would cut, unless the link is the whole piece."""
    before = bisect_left(links, end, key=lambda link: link.start)
    link = links[before - 1] if before else None
    return link.start if link and link.end > end and link.start > start else end


def trim_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds without line breaks at the start, and without blanks at the end.

    Telegram removes such blanks itself, and then entities would be misplaced.
    """
    while start < end and text[start] == "\n":
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def format_segments(text: str, start: int, spans: Iterable[TextSegment]) -> tuple[MessageEntity, ...]:
    """Return the spans of a piece that begins there as entities; Telegram reads no more than the first hundred."""
    is_even = count_utf16_units(text) == len(text)
    found = list[MessageEntity]()
    for span in spans:
        begin, end = max(span.start - start, 0), min(span.end - start, len(text))
        if begin < end and len(found) < MOST_ENTITIES:
            offset = begin if is_even else count_utf16_units(text[:begin])
            length = end - begin if is_even else count_utf16_units(text[begin:end])
            url = span.about if span.kind == "text_link" else None
            language = span.about if span.kind == "pre" and span.about else None
            found.append(MessageEntity(span.kind, offset, length, url=url, language=language))
    return tuple(found)
