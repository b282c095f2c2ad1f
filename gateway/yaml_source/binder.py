"""The conversion of a tree into a msgspec Struct, with a finding for each fault, at its place.

The Struct is the one description: its types are the wanted ones, `msgspec.Meta` has the bounds and patterns, a default
makes a key optional, and `__post_init__` checks the fields against each other (it raises `ValueError(what, remedy)`). A
class of one's own can be a field's type if it has `from_scalar(scalar)`, which raises the same; there `what` continues
the field's name: `("has two words", "write one")`.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from msgspec import Meta, Struct, inspect

from gateway.yaml_source.parser import MAX_FINDINGS
from gateway.yaml_source.scalars import (
    LIST_TYPES,
    MAPPING_TYPES,
    check_length,
    describe_missing,
    describe_node,
    describe_type,
    parse_scalar,
)
from gateway.yaml_source.tree import (
    Finding,
    Severity,
    SourceLocation,
    YamlDocument,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    is_null,
    to_plain,
    to_printable,
)

T = TypeVar("T", bound=Struct)

ONE_OR_MORE = Meta(extra={"one_or_more": True})
"""Marks a list that may be written as its only entry."""

_INVALID: Any = object()


def bind(
    tree: YamlDocument | YamlNode, wanted: type[T], *, unknown: Severity = "error"
) -> tuple[T | None, list[Finding]]:
    """Return the value of type `wanted` in this tree, or None if a finding is an error; and all findings in order.

    `unknown` is the severity of a key that the type does not know.
    """
    findings = list(tree.findings) if isinstance(tree, YamlDocument) else []
    root = tree.root if isinstance(tree, YamlDocument) else tree
    is_unread = _has_errors(findings) and isinstance(root, YamlMapping) and not root.pairs
    value = _INVALID if is_unread else _Binder(findings, unknown).value(root, inspect_type(wanted), None)
    findings.sort(key=lambda found: (found.place.source, found.place.line, found.place.column))
    return (None if value is _INVALID or _has_errors(findings) else value), findings


def _has_errors(findings: list[Finding]) -> bool:
    return any(found.severity == "error" for found in findings)


def _find_close(key: str, fields: Mapping[str, inspect.Field]) -> str:
    """Return the probable meaning of an unknown key: a value of another key, or a similar key."""
    for name, field in fields.items():
        bare = _unwrap(field.type)
        if isinstance(bare, inspect.LiteralType) and key in bare.values:
            return f"{name}: {key}"
    return next(iter(difflib.get_close_matches(key[:64].lower(), sorted(fields), n=1)), "")


inspect_type = cache(inspect.type_info)  # slow for all settings, and needed several times


def describe_shape(struct: type[Struct]) -> inspect.StructType:
    """Describe a struct by its fields."""
    found = inspect_type(struct)
    assert isinstance(found, inspect.StructType)
    return found


class _Binder:
    """One walk over a tree and a type side by side; findings are added to the list."""

    def __init__(self, findings: list[Finding], unknown: Severity, trail: Iterable[str] = ()) -> None:
        self.findings = findings
        self.unknown = unknown
        self._trail = list(trail)

    def wrong(self, place: SourceLocation, what: str, remedy: str, severity: Severity = "error") -> Any:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(place, what, remedy, severity))
        return _INVALID

    def value(self, node: YamlNode, wanted: inspect.Type, unit: str | None) -> Any:
        """Convert the node into a value of the wanted type, or `_INVALID` with at least one finding."""
        match wanted:
            case inspect.Metadata(type=inner, extra=extra):
                hints = extra or {}
                if hints.get("one_or_more") and not isinstance(node, YamlSequence):
                    if isinstance(node, YamlMapping) or is_null(node):
                        return self._expected(node, "text or a list")
                    node = YamlSequence(node.place, (node,))
                return self.value(node, inner, hints.get("unit", unit))
            case inspect.AnyType():
                return to_plain(node)
            case inspect.UnionType():
                return self._one_of(node, wanted, unit)
            case inspect.StructType():
                return self._struct(node, wanted)
            case inspect.DictType():
                return self._dict(node, wanted)
            case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
                return self._list(node, wanted)
            case _:
                return self._scalar(node, wanted, unit)

    def _refused(self, node: YamlNode, error: ValueError) -> Any:
        what, remedy = _split_error(error)
        return self.wrong(node.place, f"{self._name()} {what}", remedy)

    def _below(self, key: str, node: YamlNode, wanted: inspect.Type) -> Any:
        self._trail.append(key)
        value = self.value(node, wanted, None)
        self._trail.pop()
        return value

    def _name(self, *below: str) -> str:
        return f"`{'.'.join(map(to_printable, [*self._trail, *below]))}`" if self._trail or below else "the file"

    def _expected(self, node: YamlNode, words: str) -> Any:
        if is_null(node):
            return self.wrong(node.place, f"{self._name()} has no value", f"write {words}, or remove the line")
        remedy = f"{words} is wanted here"
        if isinstance(node, YamlScalar) and words == "a list":
            remedy += ": [one, two]"
        return self.wrong(node.place, f"{self._name()} is {describe_node(node)}", remedy)

    def _struct(self, node: YamlNode, wanted: inspect.StructType) -> Any:
        if is_null(node):
            node = YamlMapping(node.place)
        if not isinstance(node, YamlMapping):
            return self._expected(node, "a mapping")
        fields = {field.encode_name: field for field in wanted.fields}
        values: dict[str, Any] = {}
        for key, below in node.pairs:
            if key.text in fields:
                values[fields[key.text].name] = self._below(key.text, below, fields[key.text].type)
        self._unknown([key for key, _ in node.pairs if key.text not in fields], fields)
        missing = [name for name, field in fields.items() if field.required and node.get(name) is None]
        for name in missing:
            self.wrong(node.place, f"{self._name(name)} is missing", describe_missing(name, fields[name]))
        if missing or any(value is _INVALID for value in values.values()):
            return _INVALID
        try:
            return wanted.cls(**values)
        except ValueError as error:
            return self.wrong(node.place, *_split_error(error))

    def _unknown(self, keys: list[YamlScalar], fields: Mapping[str, inspect.Field]) -> None:
        """Report unknown keys, each at its place; odd ones without a similar known key share one finding."""
        odd: list[YamlScalar] = []
        for key in keys:
            close = _find_close(key.text, fields)
            if close or self.unknown == "error":
                self._unknown_group([key], f"did you mean `{close}`?" if close else _list_known(sorted(fields)))
            else:
                odd.append(key)
        if odd:
            self._unknown_group(odd, f"nothing reads {'it' if len(odd) == 1 else 'them'} here")

    def _unknown_group(self, keys: list[YamlScalar], remedy: str) -> None:
        named = ", ".join(self._name(key.text) for key in keys)
        self.wrong(keys[0].place, f"{named} {'is' if len(keys) == 1 else 'are'} not known", remedy, self.unknown)

    def _dict(self, node: YamlNode, wanted: inspect.DictType) -> Any:
        if is_null(node):
            return {}
        if not isinstance(node, YamlMapping):
            return self._expected(node, "a mapping")
        pairs = [
            (self._key(key, wanted.key_type), self._below(key.text, v, wanted.value_type)) for key, v in node.pairs
        ]
        return _INVALID if any(key is _INVALID or value is _INVALID for key, value in pairs) else dict(pairs)

    def _key(self, key: YamlScalar, wanted: inspect.Type) -> Any:
        return key.text if isinstance(wanted, inspect.AnyType) else self.value(key, wanted, None)

    def _list(self, node: YamlNode, wanted: Any) -> Any:
        items: tuple[YamlNode, ...] = ()
        if isinstance(node, YamlSequence):
            items = node.items
        elif not is_null(node):
            return self._expected(node, "a list")
        values = [self._below(str(at), item, wanted.item_type) for at, item in enumerate(items, 1)]
        if any(value is _INVALID for value in values):
            return _INVALID
        try:
            check_length(wanted, len(values), "entry", "entries")
        except ValueError as error:
            return self._refused(node, error)
        made: Callable[[list[Any]], Any] = {
            inspect.ListType: list,
            inspect.VarTupleType: tuple,
            inspect.SetType: set,
            inspect.FrozenSetType: frozenset,
        }[type(wanted)]
        return made(values)

    def _one_of(self, node: YamlNode, union: inspect.UnionType, unit: str | None) -> Any:
        if is_null(node) and union.includes_none:
            return None
        choices = [choice for choice in union.types if _can_take(choice, node)]
        if len(choices) == 1:
            return self.value(node, choices[0], unit)
        for choice in sorted(choices, key=_rank_choice):
            attempt = _Binder([], self.unknown, self._trail)
            value = attempt.value(node, choice, unit)
            if value is not _INVALID:
                self.findings += attempt.findings
                return value
        real = [choice for choice in union.types if not isinstance(choice, inspect.NoneType)]
        return self._expected(node, " or ".join(describe_type(choice, unit) for choice in real))

    def _scalar(self, node: YamlNode, wanted: inspect.Type, unit: str | None) -> Any:
        if not isinstance(node, YamlScalar) or (is_null(node) and not isinstance(wanted, inspect.NoneType)):
            return self._expected(node, describe_type(wanted, unit))
        try:
            return parse_scalar(node, wanted, unit)
        except ValueError as error:
            return self._refused(node, error)


def _list_known(names: list[str]) -> str:
    return f"known here: {to_printable(', '.join(names), 300)}"


def _split_error(error: ValueError) -> tuple[str, str]:
    """Return the fault and the remedy, in the words of the code that raised the error."""
    return error.args if len(error.args) == 2 else (str(error), "see the documentation of this setting")


def _unwrap(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _can_take(choice: inspect.Type, node: YamlNode) -> bool:
    choice = _unwrap(choice)
    if isinstance(choice, inspect.AnyType):
        return True
    if isinstance(node, YamlMapping):
        return isinstance(choice, MAPPING_TYPES)
    if isinstance(node, YamlSequence):
        return isinstance(choice, LIST_TYPES)
    return not isinstance(choice, (*MAPPING_TYPES, *LIST_TYPES, inspect.NoneType))


def _rank_choice(choice: inspect.Type) -> int:
    """Return the rank of a choice. Text accepts everything, so it is tried last."""
    choice = _unwrap(choice)
    order = (inspect.LiteralType, inspect.BoolType, inspect.IntType, inspect.FloatType, inspect.CustomType)
    return order.index(type(choice)) if type(choice) in order else len(order)
