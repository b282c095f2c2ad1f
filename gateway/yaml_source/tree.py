"""The tree that a file becomes: scalars, sequences and mappings, each with its place, and the findings about them."""

import math
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from gateway.logs.text import to_one_line

Severity = Literal["error", "warning"]

# PyYAML's booleans, so that what is untyped means what it means to Hermes.
TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})
_NULL = frozenset({"", "~", "null"})
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})\Z|0x[0-9a-fA-F]{1,16}\Z|0o[0-7]{1,22}\Z")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?\Z")


class SourceLocation(Struct, frozen=True):
    """A place: `file:line:column`, counted from 1; a source without lines has line 0."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Finding(Struct, frozen=True):
    """A fault at a place, and its remedy."""

    place: SourceLocation
    what: str
    remedy: str
    severity: Severity = "error"

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}: {self.what}; {self.remedy}"

    def as_fields(self) -> dict[str, str | int | None]:
        """Return the finding for programs."""
        return {
            "severity": self.severity,
            "source": self.place.source,
            "line": self.place.line or None,
            "column": self.place.column or None,
            "what": self.what,
            "remedy": self.remedy,
        }


class YamlScalar(Struct, frozen=True):
    """One value as it was written; `quoted` when it can only be text."""

    place: SourceLocation
    text: str
    quoted: bool = False


class YamlSequence(Struct, frozen=True):
    place: SourceLocation
    items: "tuple[YamlNode, ...]" = ()


class YamlMapping(Struct, frozen=True):
    """Keys in their order; each is there once."""

    place: SourceLocation
    pairs: "tuple[tuple[YamlScalar, YamlNode], ...]" = ()

    def get(self, key: str) -> "YamlNode | None":
        return next((node for name, node in self.pairs if name.text == key), None)

    def key(self, key: str) -> YamlScalar | None:
        return next((name for name, _ in self.pairs if name.text == key), None)

    def __iter__(self) -> Iterator[str]:
        return (name.text for name, _ in self.pairs)


YamlNode: TypeAlias = YamlScalar | YamlSequence | YamlMapping


class YamlDocument(Struct, frozen=True):
    """A file that was read: its tree (an empty mapping for an empty file), and the findings."""

    root: YamlNode
    findings: tuple[Finding, ...] = ()

    def place(self, *path: str) -> SourceLocation:
        """Return the place of the value under these keys, or of its nearest parent."""
        node = self.root
        for key in path:
            below = node.get(key) if isinstance(node, YamlMapping) else None
            if below is None:
                break
            node = below
        return node.place


def as_bool(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in TRUE_WORDS else False if folded in FALSE_WORDS else None


def as_int(text: str) -> int | None:
    return int(text.replace("_", ""), 0) if _INTEGER.match(text) else None


def as_float(text: str) -> float | None:
    if _NUMBER.match(text):
        return number if math.isfinite(number := float(text)) else None
    return None if (whole := as_int(text)) is None else float(whole)


def is_null(node: YamlNode) -> bool:
    """Return True if the file has a key here but no value."""
    return isinstance(node, YamlScalar) and not node.quoted and node.text.lower() in _NULL


def to_plain(node: YamlNode) -> Any:
    """Return the tree as plain data: every value JSON can hold, keys always text."""
    match node:
        case YamlMapping(pairs=pairs):
            return {name.text: to_plain(below) for name, below in pairs}
        case YamlSequence(items=items):
            return [to_plain(item) for item in items]
        case YamlScalar(text=text, quoted=quoted):
            return text if quoted else _scalar_to_plain(text)


def _scalar_to_plain(text: str) -> Any:
    if text.lower() in _NULL:
        return None
    for read in (as_bool, as_int, as_float):
        if (value := read(text)) is not None:
            return value
    return text


def to_printable(text: str, limit: int = 60) -> str:
    """Fit a foreign text into one line of a finding; a long one is cut."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return to_one_line(text if len(text) <= limit else text[: limit - 3] + "...", limit)
