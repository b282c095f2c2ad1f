"""One value as it was written, read as the type that is wanted.

Every function here raises `ValueError(what, remedy)` where that cannot be; `what` goes on after the value's name.
"""

import difflib
import operator
import re
from collections.abc import Callable
from typing import Any

from msgspec import inspect

from gateway.located.tree import Scalar, as_number, as_truth, as_whole
from gateway.located.units import bytes_in, seconds_in
from gateway.located.words import found_words, listed, unit_text, wanted_words

_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("ge", "at least", operator.ge),
    ("gt", "more than", operator.gt),
    ("le", "at most", operator.le),
    ("lt", "less than", operator.lt),
)


def scalar_value(node: Scalar, wanted: inspect.Type, unit: str | None) -> Any:
    """The value; what is quoted is text, or has a unit that makes it more."""
    match wanted:
        case inspect.StrType():
            return _text(node.text, wanted)
        case inspect.LiteralType(values=values):
            return _choice(node.text, values)
        case inspect.CustomType():
            own: Any = wanted.cls
            return own.from_scalar(node)
    value = None if node.quoted and not unit else _read(node.text, wanted, unit)
    if value is None and not isinstance(wanted, inspect.NoneType):
        raise ValueError(f"is {found_words(node)}", f"{wanted_words(wanted, unit)} is wanted here")
    return _in_range(value, wanted, unit)


def check_length(wanted: Any, length: int, of: str) -> None:
    if wanted.min_length is not None and length < wanted.min_length:
        raise ValueError("is too short", f"give at least {wanted.min_length} {of}")
    if wanted.max_length is not None and length > wanted.max_length:
        raise ValueError("is too long", f"give at most {wanted.max_length} {of}")


def _text(text: str, wanted: inspect.StrType) -> str:
    check_length(wanted, len(text), "characters")
    if wanted.pattern is not None and not re.search(wanted.pattern, text):
        raise ValueError("does not have the form that is wanted here", f"it must match `{wanted.pattern}`")
    return text


def _choice(text: str, values: tuple[Any, ...]) -> Any:
    for value in values:
        if text == str(value):
            return value
    close = difflib.get_close_matches(text[:64].lower(), [str(value) for value in values], n=1)
    remedy = f"did you mean `{close[0]}`?" if close else f"write {listed(values)}"
    raise ValueError("cannot have this value", remedy)


def _in_range(value: Any, wanted: inspect.Type, unit: str | None) -> Any:
    for name, words, holds in _BOUNDS:
        bound = getattr(wanted, name, None)
        if bound is not None and not holds(value, bound):
            raise ValueError("is out of range", f"write {words} {unit_text(bound, unit)}")
    return value


def _read(text: str, wanted: inspect.Type, unit: str | None) -> Any:
    if unit == "duration":
        return seconds_in(text)
    if unit == "size":
        return bytes_in(text)
    match wanted:
        case inspect.BoolType():
            return as_truth(text)
        case inspect.IntType():
            return as_whole(text)
        case inspect.FloatType():
            return as_number(text)
    return None
