"""Filters: `when`, the fields that an event must have for a hook to be called.

    when={"platform": "telegram", "chat_type": ["dm", "group"]}     # all of the fields; a list means any of its values

The field `scope` asks what the person may do, and follows its own rule, since who may do more may also do less:
all < user < operator < admin. Guests are met wherever users are, and owners and admins wherever the other is: what
guards against users guards against guests too, and what waits for an owner misses no admin. `group:x` is met by those
who hold it, by owners and admins; any other word by its holder alone. A scope that nobody holds is met by nobody.

The field `role` is asked for as any other, so that `guest` means guests alone; only `user` means guests too.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

Filter: TypeAlias = Callable[[Mapping[str, Any]], bool]

_RANKS = {"all": 0, "guest": 1, "user": 1, "operator": 2, "admin": 3, "owner": 3}
_ABSENT = object()


def compile_filter(when: Mapping[str, Any] | None) -> Filter | None:
    """The question that `when` asks of an event; None when it asks nothing."""
    if when is not None and not isinstance(when, Mapping):
        raise TypeError(f"when= is a mapping of fields to values, not {type(when).__name__}")
    if not when:
        return None
    tests = [(field, _values(value)) for field, value in when.items() if field != "scope"]
    tests = [(field, [*values, "guest"] if field == "role" and "user" in values else values) for field, values in tests]
    scopes = _values(when["scope"]) if "scope" in when else None

    def applies(fields: Mapping[str, Any]) -> bool:
        if scopes is not None and not has_scope(fields.get("role") or fields.get("scope"), scopes):
            return False
        return all(fields.get(field, _ABSENT) in values for field, values in tests)

    return applies


def has_scope(held: Any, wanted: Collection[str]) -> bool:
    """May who holds this scope (one, a list of them, or none) do what is open to any of the wanted ones?"""
    holds = {held} if isinstance(held, str) else set(held or ())
    rank = max((_RANKS.get(scope, 0) for scope in holds), default=0)
    return not wanted or any(_has_one_scope(holds, rank, scope) for scope in wanted)


def _has_one_scope(holds: set[str], rank: int, scope: str) -> bool:
    if scope in _RANKS:
        return rank >= _RANKS[scope]
    return scope in holds or (scope.startswith("group:") and rank >= _RANKS["admin"])


def _values(value: Any) -> list[Any]:
    """A number stands for its text too: ids are texts in events, but numbers in YAML that has no quotes."""
    values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    return values + [str(number) for number in values if isinstance(number, int) and not isinstance(number, bool)]
