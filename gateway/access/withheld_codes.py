"""The codes of pairing requests, invitations and links, kept from hooks: events carry `…` in their place.

They return to the text after the last hook, wherever the hooks left that sign. A hook that removes the sign keeps the
code from the person too, and learns nothing.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gateway.access.invitations import CODE_LENGTH as INVITATION_LENGTH
from gateway.access.pairing_journal import mark_of

WITHHELD = "…"
PAIRING_LENGTH = 8
SIGN = "[A-Za-z0-9]"
WORDS = re.compile(f"(?<!{SIGN})(?:{SIGN}{{{PAIRING_LENGTH}}}|{SIGN}{{{INVITATION_LENGTH}}})(?!{SIGN})")


def find_codes(text: str, marks: Collection[str]) -> tuple[str, ...]:
    """Return the words of a text that are codes with one of these marks."""
    words = WORDS.findall(text) if marks else ()
    return tuple(dict.fromkeys(word for word in words if mark_of(word.upper()) in marks))


def cut_codes(value: Any, codes: Sequence[str]) -> Any:
    """Return a text, or plain data with texts in it, as hooks see it."""
    if not codes:
        return value
    if isinstance(value, str):
        return _match(codes).sub(WITHHELD, value)
    if isinstance(value, Mapping):
        return {name: cut_codes(one, codes) for name, one in value.items()}
    return [cut_codes(one, codes) for one in value] if isinstance(value, list | tuple) else value


def restore_codes(left: str, text: str, codes: Sequence[str]) -> str:
    """Return a text as hooks left it, with the codes that it had before them."""
    if not codes:
        return left
    if left == cut_codes(text, codes):
        return text
    found = iter(_match(codes).findall(text))
    return re.sub(WITHHELD, lambda sign: next(found, sign.group()), left)


def _match(codes: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, codes)))
