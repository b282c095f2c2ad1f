"""The events of a Markdown text, from pyromark: the terminal and the networks read the same elements.

A text is at most so many events that a person could have written it. The time to read it grows only with its length.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import pyromark

TABLES = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
WITH_FORMULAS = TABLES | pyromark.Options.ENABLE_MATH
MOST_EVENTS = 4  # for each byte: a wide table has cells that were never written


class MarkdownEvent(NamedTuple):
    """An edge of an element (`Start`, `End`), or a part without an inside (""), at its place in the source's bytes."""

    edge: str
    kind: str
    about: Any
    start: int
    end: int


def list_events(source: bytes, options: pyromark.Options = TABLES) -> list[MarkdownEvent] | None:
    """List the events; None if they are far more than a person writes."""
    most = MOST_EVENTS * len(source) + 100
    events = [*islice(_read_events(source, options), most + 1)]
    return events if len(events) <= most else None


def _read_events(source: bytes, options: pyromark.Options) -> Iterator[MarkdownEvent]:
    for event, where in pyromark.events_with_range(source.decode(), options=options):
        kind, about = _split_tag(event)
        edge = kind if kind in ("Start", "End") else ""
        yield MarkdownEvent(edge, *(_split_tag(about) if edge else (kind, about)), where["start"], where["end"])


def _split_tag(tag: Any) -> tuple[str, Any]:
    """Return the name of a tag, and the parser's facts about it."""
    return next(iter(tag.items())) if isinstance(tag, dict) else (tag, "")
