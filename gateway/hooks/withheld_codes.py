"""The codes of pairing requests, invitations and links, hidden from hooks: events carry `…` in their place.

Only the code itself is cut, so that the sign hides nothing else from a guard. After the last hook, a field that no hook
has changed gets its codes back. A field that hooks changed keeps the sign: hooks do not choose where a code goes. A
reply, in which a person must read their code, gets its codes back in the lines that no hook has changed.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.events import Event

WITHHELD = "…"
SIGN = "[A-Za-z0-9]"
# A code starts a word, or follows a character that an address or a JSON text escapes.
BEFORE_CODE = rf"(?:(?<!{SIGN})|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\[nrt]))"


class CodeKind(NamedTuple):
    """One kind of code: a pattern of words, the mark (a hash) of such a word, and the marks of the open codes."""

    words: re.Pattern[str]
    mark_of: Callable[[str], str]
    list_marks: Callable[[], Collection[str]]


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of codes, so that it finds whole words in a text."""
    return re.compile(f"{BEFORE_CODE}(?:{pattern})(?!{SIGN})")


class WithheldCodes:
    """The open codes of these `kinds`, which no hook of a registry can read."""

    def __init__(self) -> None:
        self.kinds: tuple[CodeKind, ...] = ()

    def find(self, value: Any) -> tuple[str, ...]:
        """Return the open codes in a text, or in plain data with texts in it."""
        codes: tuple[str, ...] = ()
        for kind in self.kinds:
            if marks := kind.list_marks():
                words = {word for text in _list_texts(value) for word in kind.words.findall(text)}
                codes += tuple(word for word in words if kind.mark_of(word) in marks)
        return codes

    def cut(self, value: Any) -> Any:
        """Return a text, or plain data with texts in it, as hooks may read it."""
        return cut_codes(value, self.find(value))

    def hide(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of an event without codes."""
        for kind in self.kinds:  # nearly always none has any, and every event asks
            if kind.list_marks():
                codes = self.find(fields)
                return {name: cut_codes(value, codes) for name, value in fields.items()} if codes else fields
        return fields

    def hold(self, fields: dict[str, Any]) -> "WithheldFields":
        """Keep the codes in the fields of an event until its hooks are done."""
        return WithheldFields(fields, self.find(fields))


class WithheldFields:
    """The fields of one event: `shown` are the fields without codes, for the hooks; `restore` puts the codes back."""

    __slots__ = ("_before", "_codes", "shown")

    def __init__(self, fields: dict[str, Any], codes: Sequence[str]) -> None:
        self._codes = codes
        self._before: dict[str, Any] = {}
        self.shown = fields
        if codes:
            cut = {name: cut_codes(value, codes) for name, value in fields.items()}
            self._before = {name: value for name, value in fields.items() if cut[name] != value}
            self.shown = {**fields, **{name: cut[name] for name in self._before}}

    def restore(self, event: Event) -> Event:
        """Put the codes back into the fields that the hooks left unchanged."""
        for name, value in self._list_unchanged(event):
            dict.__setitem__(event, name, value)  # hooks may not write all of them
        return event

    def look_behind(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the current fields; the fields that no hook has changed contain their codes again."""
        return {**event, **dict(self._list_unchanged(event))} if self._before else event

    def _list_unchanged(self, event: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        # A hook may have changed the value in place: so its codes are cut once more.
        for name, value in self._before.items():
            if event.get(name) == cut_codes(value, self._codes):
                yield name, value


def cut_codes(value: Any, codes: Sequence[str]) -> Any:
    """Return a text, or plain data with texts in it, without these codes."""
    if not codes:
        return value
    match value:
        case str():
            return re.sub("|".join(map(re.escape, codes)), WITHHELD, value)
        case Mapping():
            return {name: cut_codes(one, codes) for name, one in value.items()}
        case list():
            return [cut_codes(one, codes) for one in value]
        case tuple():
            return tuple(cut_codes(one, codes) for one in value)
    return value


def restore_codes(left: str, text: str, codes: Sequence[str]) -> str:
    """Return a reply after the hooks, with its codes in the lines that the hooks left unchanged.

    If hooks put the sign into another line, return the reply from before the hooks.
    """
    if not codes or WITHHELD not in left:
        return left
    lines = {cut_codes(line, codes): line for line in text.split("\n")}
    found = left.split("\n")
    if left == cut_codes(text, codes) or any(WITHHELD in line and line not in lines for line in found):
        return text
    return "\n".join(lines.get(line, line) for line in found)


def _list_texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from _list_texts(one)
        case list() | tuple():
            for one in value:
                yield from _list_texts(one)
