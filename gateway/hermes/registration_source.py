"""Which hooks a plugin registers, seen in its source before anything of it runs; and where it registers one unseen.

A name may be put together, read from a file, or registered by code that lies elsewhere. Who does that may register
anything, a guard too. So `ctx` is followed through the plugin's own functions and classes, and each name back to the
texts that it is made of; what cannot be followed counts as hidden.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.hermes.callback_source import REGISTER, is_hook_call_name
from gateway.hermes.handler_source import Function, HandlerSource
from gateway.hermes.name_values import NameValues, has_own_parents
from gateway.hermes.patches import call_name_of
from gateway.hooks.folders.manifest import label_of
from gateway.yaml_source import SourceLocation

MOST_ROUNDS = 6  # of following `ctx` from hand to hand; a longer way is nobody's
_RUNS_TEXT = frozenset({"exec", "eval"})
_ONLY_LOOK = frozenset({"bool", "callable", "dir", "hasattr", "id", "isinstance", "print", "repr", "str", "type"})
_LOGS = frozenset({"debug", "info", "warning", "error", "exception", "log"})
_INSIDES = frozenset({"__class__", "__dict__", "__getattribute__"})  # by which anything of an object is reached
# Of what is no Python: a name in plain sight, what speaks of registering, and ways to do so unseen.
_PLAIN_CALL = re.compile(rb"""register_hook\(\s*(?:hook_name\s*=\s*)?["'](\w+)["']""")
_REGISTERS = re.compile(rb"\bregister")
_HIDES = re.compile(rb"\b(getattr|exec|eval|__dict__)\b")


class RegistrationSource(NamedTuple):
    """`names`: of the hooks that it is seen to register. `place`: where it registers what is not seen; None: nowhere.

    `is_name`: that call is seen, and with it what it registers; only under which name is not.
    """

    names: frozenset[str] = frozenset()
    place: SourceLocation | None = None
    is_name: bool = False


def read_registrations(folder: str, entry: str, files: Mapping[str, bytes]) -> RegistrationSource:
    """`files`: what the plugin imports. Of several places the worst is told."""
    source = HandlerSource(files)
    text = b"\n".join(files[name] for name in sorted(files))
    if source.unreadable or entry not in source.trees:
        return _read_text(SourceLocation(f"{label_of(folder)}/{entry}"), text)
    if source.is_whole and not _REGISTERS.search(text):
        return RegistrationSource()
    search = _RegistrationSearch(source)
    found = sorted(search.find(entry), key=lambda one: one[2])
    if not found:
        return RegistrationSource(frozenset(search.names))
    file, node, is_name = found[0]
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    return RegistrationSource(
        frozenset(search.names), SourceLocation(f"{label_of(folder)}/{file}", line, column), is_name
    )


def _read_text(place: SourceLocation, text: bytes) -> RegistrationSource:
    names = frozenset(name.decode() for name in _PLAIN_CALL.findall(text))
    is_plain = text.count(REGISTER.encode()) == len(_PLAIN_CALL.findall(text))
    is_seen = is_plain and _REGISTERS.search(text) and not _HIDES.search(text)
    return RegistrationSource(names, None if is_seen else place)


class _RegistrationSearch:
    """Names are looked up as Python does; attributes by their last word alone, whatever they are of."""

    def __init__(self, source: HandlerSource) -> None:
        self._source = source
        self._values = NameValues(source)
        self._context: set[tuple[int, str]] = set()  # what stands for `ctx`: a scope and a name in it,
        self._context_attributes: set[str] = set()  # or an attribute
        self.names: set[str] = set()

    def find(self, entry: str) -> Iterator[tuple[str, ast.AST, bool]]:
        """The file, the place in it, and whether only a name is hidden there."""
        for file, tree in self._source.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and call_name_of(node) in _RUNS_TEXT:
                    yield file, node, False
                elif is_hook_call_name(node) and not self._only_asks(node):
                    call = self._values.parent_of(node)
                    if not (isinstance(call, ast.Call) and call.func is node):
                        yield file, node, False
                    elif (texts := self._values.texts_of(_name_in(call))) is None:
                        yield file, call, True
                    else:
                        self.names |= texts
        registers = self._source.find_functions("register") or []
        if registers and all(self._enter(function, 0, "") for function in registers):
            yield from self._follow_to_end(entry)
        else:
            yield entry, registers[0] if registers else self._source.trees[entry], False

    def _follow_to_end(self, entry: str) -> Iterator[tuple[str, ast.AST, bool]]:
        for _ in range(MOST_ROUNDS):
            known = len(self._context) + len(self._context_attributes)
            lost = [(file, node, False) for file, node in self._follow_context()]
            if lost or known == len(self._context) + len(self._context_attributes):
                yield from lost
                return
        yield entry, self._source.trees[entry], False

    def _only_asks(self, node: ast.AST) -> bool:
        call = self._values.parent_of(node)
        return isinstance(call, ast.Call) and call_name_of(call) == "hasattr"

    def _follow_context(self) -> Iterator[tuple[str, ast.AST]]:
        """One hand further; yields where it is given to code that is not seen."""
        for file, tree in self._source.trees.items():
            for node in ast.walk(tree):
                if self._is_context(node) and not self._pass_on(node):
                    yield file, node

    def _is_context(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                return (self._values.scope_of(node), name) in self._context
            case ast.Attribute(attr=name, ctx=ast.Load()):
                return name in self._context_attributes
        return False

    def _pass_on(self, node: ast.AST) -> bool:
        """Whether all that is done with `ctx` here is seen."""
        match self._values.parent_of(node):
            case ast.Attribute(attr=name):
                return name not in _INSIDES
            case ast.Assign(targets=targets):
                return all(self._add(target) for target in targets)
            case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
                return self._add(target)
            case ast.Call() as call if call.func is not node:
                return self._hand_over(call, call.args.index(node), "")  # type: ignore[arg-type]
            case ast.keyword(arg=str(name)) as keyword:
                taker = self._values.parent_of(keyword)
                return isinstance(taker, ast.Call) and self._hand_over(taker, 0, name)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.FormattedValue() | ast.Expr():
                return True
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                return test is node
        return False

    def _add(self, target: ast.AST) -> bool:
        match target:
            case ast.Name(id=name):
                self._context.add((self._values.scope_of(target), name))
            case ast.Attribute(attr=name):
                self._context_attributes.add(name)
            case _:
                return False
        return True

    def _hand_over(self, call: ast.Call, position: int, keyword: str) -> bool:
        name = call_name_of(call)
        if isinstance(call.func, ast.Name) and name in _ONLY_LOOK and name not in self._source.functions:
            return True
        if name == "getattr" and len(call.args) > 1:
            return position == 0 and isinstance(call.args[1], ast.Constant)
        if isinstance(call.func, ast.Attribute) and name in _LOGS and name not in self._source.functions:
            return True
        called: ast.expr = call.func
        if name == "partial" and position and not keyword:
            called, position = call.args[0], position - 1
        if isinstance(called, ast.Name) and called.id in self._source.classes:
            return self._hand_to_class(called.id, position, keyword)
        functions = self._functions_of(called)
        return bool(functions) and all(self._enter(one, position, keyword) for one in functions)

    def _hand_to_class(self, name: str, position: int, keyword: str) -> bool:
        nodes = [node for node in self._source.nodes if isinstance(node, ast.ClassDef) and node.name == name]
        makers = [
            one for node in nodes for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        ]
        if makers:
            return all(self._enter(one, position, keyword) for one in makers)
        if any(node.bases for node in nodes):
            inherited = self._source.functions.get("__init__", ()) if has_own_parents(self._source) else ()
            return bool(inherited) and all(self._enter(one, position, keyword) for one in inherited)
        for node in nodes:  # a dataclass: its fields are its parameters
            fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            names = [target.id for target in fields if isinstance(target, ast.Name)]
            if not keyword and position >= len(names):
                return False
            self._context_attributes.add(keyword or names[position])
        return True

    def _enter(self, function: Function, position: int, keyword: str) -> bool:
        given = function.args
        named = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        name = (keyword if keyword in named else None) if keyword else _parameter_of(function, position)
        if name is None:
            return False
        self._context.add((id(function), name))
        return True

    def _functions_of(self, called: ast.expr) -> list[Function]:
        """What may be called here, of the plugin's own; nothing where it may be another's."""
        match called:
            case ast.Name(id=name) if not self._source.is_from_elsewhere(name):
                return self._source.functions.get(name, [])
            case ast.Attribute(value=base, attr=name) if self._is_own(base):
                return self._source.functions.get(name, [])
        return []

    def _is_own(self, base: ast.expr) -> bool:
        """Whether this is the plugin's own object, class or module."""
        match base:
            case ast.Name(id="self" | "cls"):
                return True
            case ast.Call(func=ast.Name(id="super")):
                return has_own_parents(self._source)
            case ast.Call(func=ast.Name(id=name)):
                return name in self._source.classes
            case ast.Name(id=name) if name in self._source.classes or self._source.is_own_module(name):
                return True
            case ast.Name() | ast.Attribute():
                values = self._values.values_of(base)
                return bool(values) and all(self._is_own(value) for value in values or ())
        return False


def _name_in(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "hook_name"), None)


def _parameter_of(function: Function, position: int) -> str | None:
    """The name of what is given at this place; `self` is no place."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    return names[position] if position < len(names) else None
