"""Filters: `when`, the fields that an event must have to call a hook.

    when={"platform": "telegram", "chat_type": ["dm", "group"]}     # all of the fields; a list means any of its values

The field `scope` tests rights by its own rule, because a higher role includes the lower ones: all < user < operator <
admin. A filter for users matches guests too, so that a guard against users also guards against guests. Filters for
admins and for owners each match both roles. `group:x` matches the members of the group, owners and admins; any other
word matches only a person with exactly this scope. A scope that no one has matches no one.

The field `role` is compared like any other, so that `guest` matches only guests; `user` matches guests too.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

Filter: TypeAlias = Callable[[Mapping[str, Any]], bool]

_RANKS = {"all": 0, "guest": 1, "user": 1, "operator": 2, "admin": 3, "owner": 3}
_ABSENT = object()


def compile_filter(when: Mapping[str, Any] | None) -> Filter | None:
    """Compile `when` into a test for events; None if `when` is empty."""
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
    """Return True if a person with this scope (one, a list, or none) has one of the wanted scopes."""
    holds = {held} if isinstance(held, str) else set(held or ())
    rank = max((_RANKS.get(scope, 0) for scope in holds), default=0)
    return not wanted or any(_has_one_scope(holds, rank, scope) for scope in wanted)


def _has_one_scope(holds: set[str], rank: int, scope: str) -> bool:
    if scope in _RANKS:
        return rank >= _RANKS[scope]
    return scope in holds or (scope.startswith("group:") and rank >= _RANKS["admin"])


def _values(value: Any) -> list[Any]:
    """List the accepted values.

    A number matches its text too: ids are texts in events, but numbers in YAML without quotes.
    """
    values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    return values + [str(number) for number in values if isinstance(number, int) and not isinstance(number, bool)]
