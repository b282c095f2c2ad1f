"""A verb of the running gateway, as one row: its columns for the control socket, the page and the record of activity.

Each room has its rows in `verbs.py`; they are plain values. The function that answers bears the verb's name, with `_`
for the dot, in the room's `answers.py` or in `gateway/daemon/answers`. A column that is left out has its strictest
value: for people alone, nothing of the answer is shown to operators, and the page does not have it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.roles import Role

LONGEST_SHOWN = 200  # of what is a name, a number or a state, nothing is longer

Notify: TypeAlias = Callable[[str, Any], Awaitable[None]]
"""Tells the caller of something while the verb is being answered: of which kind it is, and what."""
Shown: TypeAlias = "bool | Literal['heading'] | frozenset[str] | Mapping[str, Shown] | Callable[[Any], Any]"
"""The part of a value, and of each in a list of them, that an operator sees.

True: a number, a short text in one line. Texts: these alone. `heading`: the part of a text before its first colon.
Names: the fields of an object with these names, `*` being any. A function: what it makes of it. False: nothing.
"""
Authors: TypeAlias = Literal["all", "send", "placed", "people"]
"""The callers whom the control socket answers beside people, who always get an answer.

`all`: everything that the gateway has started. `placed`: a hook that was placed by hand and is not restricted. `send`:
such a hook, and one whose `uses` has this word.
"""
Kind: TypeAlias = Literal["deed", "look", "often"]
"""How activity records a verb: each time, once a minute, or once a minute and of people alone."""
Page: TypeAlias = Literal["", "look", "shared", "personal"] | tuple[str, ...]
"""The use that the page has for a verb, if any.

`look`: it asks, with parameters from the address. `shared`: every page does so whenever something has happened, and
those with the same role share an answer; `personal`: those who are the same person do. Names: it acts, and of the
parameters these alone are the page's.
"""


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a verb that takes none."""


class NameParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook, the network or the key of this name."""

    name: str


class Verb(msgspec.Struct, frozen=True):
    """One row. `role` is the lowest that may ask; `shown` is what an operator sees of the answer."""

    name: str
    does: str
    params: type[Any]
    role: Role
    authors: Authors = "people"
    shown: Shown = False
    on: str | None = None  # what it was done on: fields of the parameters, and of the answer (`said`); None: no record
    kind: Kind = "deed"
    lasts: bool = False  # it is answered for long, and recorded when it begins
    page: Page = ""
    raw: bool = False  # people's own texts, or a key for the person who made it: the answer is not redacted


def show(*names: str) -> dict[str, Shown]:
    """Return what shows these fields as they are."""
    return dict.fromkeys(names, True)


def cut_answer(said: Any, shown: Shown) -> Any:
    """Return what is shown of an answer; None: nothing."""
    return shown(said) if callable(shown) else _cut(msgspec.to_builtins(said, enc_hook=str), shown)


def _cut(said: Any, shown: Shown) -> Any:
    if isinstance(said, list | tuple):
        return [cut for one in said if (cut := _cut(one, shown)) is not None]
    if isinstance(shown, Mapping):
        return _cut_object(said, shown) if isinstance(said, dict) else None
    if isinstance(said, bool | int | float):
        return said if shown is True else None
    if not isinstance(said, str) or not shown:
        return None
    if shown == "heading":
        return _cut(said.partition(": ")[0], True)
    if isinstance(shown, frozenset):
        return said if said in shown else None
    return said if len(said) <= LONGEST_SHOWN and said.isprintable() else None


def _cut_object(said: dict[Any, Any], shown: Mapping[str, Shown]) -> dict[str, Any]:
    """Show keys by the same rules as values: a key that is not a name is not ours."""
    named = {key: shown.get(key, shown.get("*", False)) for key in said if _cut(key, True) is not None}
    return {key: cut for key, part in named.items() if part and (cut := _cut(said[key], part)) is not None}
