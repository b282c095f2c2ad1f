"""The search for the subscriptions that match an event's name.

A pattern consists of whole segments, as names do: a last segment `*` matches all the rest (at least one segment; alone
it matches everything), any other `*` matches exactly one segment. A tree of segments keeps such patterns, so that a
search costs the same with ten patterns as with ten thousand. Any other glob (`command:foo*`, `agent:st?rt`) is matched
as `fnmatch` does, over the whole name; the text before its first special character selects the globs to try.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST_KNOWN = 500  # names of events; hooks invent names of their own
_SPECIAL = re.compile(r"[*?\[]")


def is_exact(pattern: str) -> bool:
    """Return True if this is the name of one event."""
    return "*" not in pattern and "?" not in pattern and "[" not in pattern


def has_whole_segments(pattern: str) -> bool:
    """Return True if `*` only replaces whole segments, so that all programs match the pattern in the same way."""
    return all(segment == "*" or is_exact(segment) for segment in pattern.split(":"))


@dataclass(slots=True)
class _PatternNode(Generic[Item]):
    """The subscriptions below one prefix.

    `here` has the items whose patterns end here, `rest` the items that match anything below; the child `*` matches any
    segment.
    """

    here: list[Item] = field(default_factory=list)
    rest: list[Item] = field(default_factory=list)
    children: "dict[str, _PatternNode[Item]]" = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.here or self.rest or self.children)

    def add(self, segments: list[str], item: Item) -> None:
        if segments == ["*"]:
            self.rest.append(item)
        elif not segments:
            self.here.append(item)
        else:
            self.children.setdefault(segments[0], _PatternNode()).add(segments[1:], item)

    def discard(self, segments: list[str], item: Item) -> None:
        """Undo `add`, and remove branches that become empty."""
        if segments == ["*"]:
            self.rest.remove(item)
        elif not segments:
            self.here.remove(item)
        else:
            self.children[segments[0]].discard(segments[1:], item)
            if self.children[segments[0]].is_empty:
                del self.children[segments[0]]


class Patterns(Generic[Item]):
    """Items, each stored under a pattern."""

    def __init__(self) -> None:
        self._exact: dict[str, list[Item]] = {}
        self._tree: _PatternNode[Item] = _PatternNode()
        self._globs: dict[str, list[tuple[re.Pattern[str], Item]]] = {}
        self._lengths: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return True if no item is stored."""
        return not (self._exact or self._globs) and self._tree.is_empty

    def add(self, pattern: str, item: Item) -> None:
        """Store the item under the pattern."""
        if is_exact(pattern):
            self._exact.setdefault(pattern, []).append(item)
        elif has_whole_segments(pattern):
            self._tree.add(pattern.split(":"), item)
        else:
            self._globs.setdefault(_prefix(pattern), []).append((re.compile(translate(pattern)), item))
            self._lengths = tuple({len(prefix) for prefix in self._globs})

    def discard(self, pattern: str, item: Item) -> None:
        """Undo `add`."""
        if is_exact(pattern):
            _remove_from(self._exact, pattern, item)
        elif has_whole_segments(pattern):
            self._tree.discard(pattern.split(":"), item)
        else:
            _remove_from(self._globs, _prefix(pattern), (re.compile(translate(pattern)), item))
            self._lengths = tuple({len(prefix) for prefix in self._globs})

    def match(self, name: str) -> tuple[list[Item], list[Item]]:
        """Return the items with this exact name, and the items with a matching glob, once for each match."""
        globs: list[Item] = []
        nodes = [self._tree]
        for segment in name.split(":"):
            below: list[_PatternNode[Item]] = []
            for node in nodes:
                globs += node.rest
                if child := node.children.get(segment):
                    below.append(child)
                if child := node.children.get("*"):
                    below.append(child)
            nodes = below
        for node in nodes:
            globs += node.here
        for length in self._lengths:
            for glob, item in self._globs.get(name[:length], ()) if length <= len(name) else ():
                if glob.match(name):
                    globs.append(item)
        return self._exact.get(name, []), globs


class EventSelector:
    """Names and patterns of events; `name in selector` is True if a name or pattern matches."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known: dict[str, bool] = {}  # earlier results by name
        self._patterns: Patterns[str] = Patterns()
        for name in names:
            self._patterns.add(name, name)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if (known := self._known.get(name)) is not None:
            return known
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[name] = found = any(self._patterns.match(name))
        return found


def _prefix(pattern: str) -> str:
    special = _SPECIAL.search(pattern)
    return pattern[: special.start()] if special else pattern


def _remove_from(lists: dict[str, list[Item]], key: str, item: Item) -> None:
    lists[key].remove(item)
    if not lists[key]:
        del lists[key]
