"""Texts that are hard for a regular expression, made from its own parts.

A pattern that takes ever longer does so because it looks at the same signs again: from each place anew, or in each of
the ways in which a repetition can be divided. So what a repetition eats is repeated here, behind what leads to it, and
then comes what does not fit; so is every beginning of the pattern that does not lead to its end.
"""

import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ODD = ("", "!", "\n", "\x00", "a")
CATEGORIES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_WORD: " ",
}
CANDIDATES = "a1 -_.:/\n\"'<>()[]{}=@#*`|\\~é\u0301Z!"


class HardText(NamedTuple):
    """A beginning, a part that is repeated behind it, and an end that does not match."""

    before: str
    repeated: str
    odd: str = ""

    def make(self, size: int) -> str:
        """About so long."""
        return self.before + (self.repeated * (size // len(self.repeated) + 1))[:size] + self.odd


def find_hard_texts(pattern: "re.Pattern[Any]") -> list[HardText]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    seeds: dict[tuple[str, str], None] = {}
    for before, repeated in walk(tree, ""):
        for one in ((before, repeated), ("", before + repeated), ("", before)):
            seeds[one] = None
    letters = sorted({sign for seed in seeds for part in seed for sign in part})[:8]
    pairs = [HardText("", first + second) for first in letters for second in letters]
    return [HardText(before, repeated, odd) for before, repeated in seeds if repeated for odd in ODD] + pairs


def walk(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield the text before each repetition, and its part; and each beginning."""
    for code, value in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from ((before, one) for one in samples(value[2]))
            yield from walk(value[2], before)
            if value[0]:
                before += shortest(value[2]) * value[0]
            continue
        for inner in inner_trees(code, value):
            yield from walk(inner, before)
        before += shortest([(code, value)])
        yield before, ""


def inner_trees(code: Any, value: Any) -> list[Any]:
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code is codes.BRANCH:
        return list(value[1])
    return []


def samples(tree: Any) -> list[str]:
    """Some texts that this fits: each way at a fork, and some signs of a set."""
    found = [""]
    for code, value in tree:
        match code:
            case codes.BRANCH:
                ways = [one for branch in value[1] for one in samples(branch)]
            case codes.IN | codes.ANY | codes.NOT_LITERAL | codes.LITERAL:
                ways = signs(code, value)
            case codes.SUBPATTERN | codes.ATOMIC_GROUP:
                ways = samples(value[3] if code is codes.SUBPATTERN else value)
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                ways = [one * max(value[0], 1) for one in samples(value[2])] + ([""] if not value[0] else [])
            case _:
                ways = [""]
        found = [left + right for left in found[:6] for right in ways[:6]]
    return [one for one in dict.fromkeys(found) if one][:12]


def shortest(tree: Any) -> str:
    """A short text that this fits, as far as one can tell."""
    text = ""
    for code, value in tree:
        match code:
            case codes.BRANCH:
                text += min((shortest(branch) for branch in value[1]), key=len)
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                text += shortest(value[2]) * value[0]
            case codes.IN | codes.ANY | codes.NOT_LITERAL | codes.LITERAL:
                text += (signs(code, value) or [""])[0]
            case codes.SUBPATTERN:
                text += shortest(value[3])
            case codes.ATOMIC_GROUP:
                text += shortest(value)
    return text


def signs(code: Any, value: Any) -> list[str]:
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.ANY:
        return ["a", " ", "\n"]
    if code is codes.NOT_LITERAL:
        return [one for one in CANDIDATES if ord(one) != value][:3]
    negated = any(kind is codes.NEGATE for kind, _ in value)
    listed = [sign for kind, what in value for sign in listed_signs(kind, what)]
    if not negated:
        return list(dict.fromkeys(listed))[:6]
    return [one for one in CANDIDATES if one not in listed][:4]


def listed_signs(kind: Any, what: Any) -> list[str]:
    match kind:
        case codes.LITERAL:
            return [chr(what)]
        case codes.RANGE:
            return [chr(what[0]), chr(what[1])]
        case codes.CATEGORY:
            return [CATEGORIES.get(what, "a")]
    return []
