"""What the names in a plugin's source stand for, as far as the source alone shows it.

Names are looked up as Python does, save that all modules of a folder share theirs; attributes by their last word alone,
whatever they are of. Where one value of several is not seen, nothing is.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from gateway.hermes.handler_source import Function, HandlerSource
from gateway.hermes.patches import call_name_of

MOST_TEXTS = 256  # that one expression may stand for
MOST_STEPS = 8  # from a name to its texts; who goes round in a circle gets nowhere
MODULE, ATTRIBUTE = 0, -1  # scopes that are no function
_COPIES = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "dict"})
_LOOKS = _COPIES | {"len", "enumerate", "any", "all", "min", "max", "str", "repr", "print"}
_VIEWS = frozenset({"items", "keys", "values", "get", "copy", "index", "count"})
_PLAIN_BASES = frozenset({"object", "ABC", "Protocol", "Generic", "NamedTuple", "TypedDict", "Enum", "StrEnum"})


class _Binding(NamedTuple):
    """A name becomes a value; or (`is_item`) each item of one, or what stands at this place in each."""

    value: ast.expr | None  # None: it is not seen
    is_item: bool = False
    place: int | None = None


class NameValues:
    """`follows_calls`: a parameter stands for what the calls that are seen give it, as if nobody else called."""

    def __init__(self, source: HandlerSource, follows_calls: bool = False) -> None:
        self._source = source
        self._parents: dict[int, ast.AST] = {}
        self._owners: dict[int, ast.AST | None] = {}  # the function or class in which a node stands
        self._bindings: dict[tuple[int, str], list[_Binding]] = {}
        self._loads: dict[str, list[ast.expr]] = {}
        self._globals = {
            (id(self._owners.get(id(node))), name)
            for tree in source.trees.values()
            for node in self._enter(tree)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        for node in source.nodes:
            self._read(node)
        for node in source.nodes if follows_calls else ():
            if isinstance(node, ast.Call):
                self._read_call(node)

    def parent_of(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(id(node))

    def scope_of(self, node: ast.AST) -> int:
        """The function in which this name is bound, seen from where it stands; or the modules."""
        assert isinstance(node, ast.Name)
        own = owner = self._owners.get(id(node))
        while owner is not None:
            is_asked = owner is own or not isinstance(owner, ast.ClassDef)  # methods do not see names of their class
            if is_asked and (id(owner), node.id) in self._globals:
                return MODULE
            if is_asked and (id(owner), node.id) in self._bindings:
                return id(owner)
            owner = self._owners.get(id(owner))
        return MODULE

    def values_of(self, node: ast.expr) -> Sequence[ast.expr] | None:
        """What this name or attribute stands for; None where that is not seen."""
        return self._values_of(node, MOST_STEPS)

    def texts_of(self, node: ast.expr | None, steps: int = MOST_STEPS) -> frozenset[str] | None:
        """All texts that this may be; None where that is not seen."""
        match node:
            case _ if not steps:
                return None
            case ast.Constant(value=str(text)):
                return frozenset({text})
            case ast.JoinedStr(values=parts):
                return _join(self.texts_of(part, steps - 1) for part in parts)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.texts_of(inner, steps - 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _join(self.texts_of(part, steps - 1) for part in (left, right))
            case ast.Call(func=ast.Attribute(value=inner, attr="upper" | "lower" | "strip" as name), args=[]):
                texts = self.texts_of(inner, steps - 1)
                return None if texts is None else frozenset(getattr(text, name)() for text in texts)
            case ast.IfExp(body=body, orelse=other):
                return _unite(self.texts_of(part, steps - 1) for part in (body, other))
            case ast.Name() | ast.Attribute():
                values = self._values_of(node, steps - 1)
                return _unite(self.texts_of(value, steps - 1) for value in values) if values else None
            case ast.Subscript(value=inner, slice=ast.Constant(value=place)):  # whichever of them: any may be meant
                is_number = isinstance(place, int)
                items = self._items_of(inner, None, steps - 1) if is_number else self._sides_of(inner, 1, steps - 1)
                return _unite(self.texts_of(item, steps - 1) for item in items) if items else None
        return None

    def _values_of(self, node: ast.expr, steps: int) -> Sequence[ast.expr] | None:
        match node:
            case ast.Name(id=name):
                bindings = self._bindings.get((self.scope_of(node), name), [])
            case ast.Attribute(attr=name):
                bindings = self._bindings.get((ATTRIBUTE, name), [])
            case _:
                return None
        found: list[ast.expr] = []
        for value, is_item, place in bindings:
            items = self._items_of(value, place, steps - 1) if is_item else [value]
            if items is None or value is None:
                return None
            found += [item for item in items if item is not None]
        return found or None

    def _items_of(self, node: ast.expr | None, place: int | None, steps: int) -> list[ast.expr] | None:
        """The items of a collection, or what stands at this place in each."""
        items: list[ast.expr] | None = None
        match node:
            case _ if steps <= 0:
                return None
            case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]) if place in (0, 1):
                return self._sides_of(inner, place, steps - 1)
            case ast.Call(func=ast.Attribute(value=inner, attr="keys" | "copy"), args=[]):
                items = self._items_of(inner, None, steps - 1)
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _COPIES:
                return self._items_of(inner, place, steps - 1)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                items = self._expand(parts, steps)
            case ast.Dict(keys=keys):
                items = [key for key in keys if key is not None] if None not in keys else None
            case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
                items = _chain([self._items_of(left, None, steps - 1), self._items_of(right, None, steps - 1)])
            case ast.Name() | ast.Attribute() if self._is_only_read(node):
                values = self._values_of(node, steps - 1)
                return _chain([self._items_of(value, place, steps - 1) for value in values]) if values else None
        return items if place is None or items is None else _pick(items, place)

    def _sides_of(self, node: ast.expr, place: int, steps: int) -> list[ast.expr] | None:
        """The keys (0) or the values (1) of a mapping."""
        match node:
            case _ if steps <= 0:
                return None
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return [one for one in (values if place else keys) if one is not None]
            case ast.Name() | ast.Attribute() if self._is_only_read(node):
                found = self._values_of(node, steps - 1)
                return _chain([self._sides_of(value, place, steps - 1) for value in found]) if found else None
        return None

    def _expand(self, parts: Iterable[ast.expr], steps: int) -> list[ast.expr] | None:
        return _chain(
            [self._items_of(one.value, None, steps - 1) if isinstance(one, ast.Starred) else [one] for one in parts]
        )

    def _is_only_read(self, node: ast.expr) -> bool:
        """Whether nobody who speaks of this collection could change it."""
        return all(_looks_on(one, self._parents) for one in self._loads.get(_word_of(node), ()))

    def _enter(self, tree: ast.Module) -> list[ast.AST]:
        """All nodes, once it is known of each in what it stands."""
        waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
        found: list[ast.AST] = []
        while waiting:
            node, owner = waiting.pop()
            found.append(node)
            self._owners[id(node)] = owner
            inner = node if isinstance(node, Function | ast.ClassDef) else owner
            for child in ast.iter_child_nodes(node):
                self._parents[id(child)] = node
                waiting.append((child, inner))
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                self._loads.setdefault(_word_of(node), []).append(node)
        return found

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, _Binding(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, _Binding(value))
            case ast.AugAssign(target=target) | ast.withitem(optional_vars=ast.expr() as target):
                self._bind(target, _Binding(None))
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self._bind(node.target, _Binding(node.iter, is_item=True))
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                self._note(node, name, _Binding(None))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._note(node, node.name, _Binding(None))
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    self._import(node, alias)

    def _read_call(self, call: ast.Call) -> None:
        for function in self._source.functions.get(call_name_of(call), ()):
            names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
            names = names[1:] if names[:1] in (["self"], ["cls"]) else names
            given = [*zip(names, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
            for name, value in given:
                if name and (id(function), name) in self._bindings:
                    bindings = self._bindings[id(function), name]
                    bindings[:] = [*(one for one in bindings if one.value is not None), _Binding(value)]

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        name = (alias.asname or alias.name).partition(".")[0]
        if isinstance(node, ast.Import) or self._source.is_from_elsewhere(name):
            self._note(node, name, _Binding(None))
        elif alias.asname:  # without another name it is the same: all modules share theirs
            self._note(node, name, _Binding(ast.Name(alias.name, ast.Load())))

    def _bind(self, target: ast.AST, binding: _Binding) -> None:
        value, is_item, _ = binding
        match target:
            case ast.Name(id=name):
                self._note(target, name, binding)
            case ast.Attribute(attr=name):
                self._bindings.setdefault((ATTRIBUTE, name), []).append(binding)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for place, part in enumerate(parts):
                    if is_item:
                        self._bind(part, _Binding(value, is_item=True, place=place))
                    elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts):
                        self._bind(part, _Binding(value.elts[place]))
                    else:
                        self._bind(part, _Binding(None))
            case ast.Starred(value=inner):
                self._bind(inner, _Binding(None))

    def _note(self, node: ast.AST, name: str, binding: _Binding) -> None:
        """What a class has for itself is an attribute too."""
        owner = self._owners.get(id(node))
        is_global = owner is not None and (id(owner), name) in self._globals
        if isinstance(owner, ast.ClassDef):
            self._bindings.setdefault((ATTRIBUTE, name), []).append(binding)
        scope = MODULE if owner is None or is_global else id(owner)
        self._bindings.setdefault((scope, name), []).append(binding)


def _looks_on(node: ast.expr, parents: Mapping[int, ast.AST]) -> bool:
    match parents.get(id(node)):
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value):
            return value is node
        case ast.Attribute(attr=name) as view:
            call = parents.get(id(view))
            return name in _VIEWS and isinstance(call, ast.Call) and call.func is view
        case ast.Subscript(ctx=ast.Load()) | ast.Compare() | ast.BinOp() | ast.Starred():
            return True
        case ast.Call() as call:
            return isinstance(call.func, ast.Name) and call_name_of(call) in _LOOKS
    return False


def has_own_parents(source: HandlerSource) -> bool:
    """Whether no class of the folder has methods from elsewhere."""
    bases = [base for node in source.nodes if isinstance(node, ast.ClassDef) for base in node.bases]
    names = (ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in bases)
    return all(name in source.classes or name in _PLAIN_BASES for name in names)


def _word_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _chain(parts: Sequence[list[ast.expr] | None]) -> list[ast.expr] | None:
    known = [part for part in parts if part is not None]
    return [one for part in known for one in part] if len(known) == len(parts) else None


def _pick(items: Iterable[ast.expr], place: int) -> list[ast.expr] | None:
    """What stands at this place in each of them."""
    rows = list(items)
    found = [row.elts[place] for row in rows if isinstance(row, ast.Tuple | ast.List) and place < len(row.elts)]
    return found if len(found) == len(rows) else None


def _join(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    known = frozenset({""})
    for part in parts:
        if part is None or len(known) * len(part) > MOST_TEXTS:
            return None
        known = frozenset(map("".join, product(known, part)))
    return known


def _unite(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found = frozenset[str]()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found
