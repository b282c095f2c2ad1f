"""The callbacks of a plugin that may decide, as its source shows them before it runs.

A broken plugin cannot answer. If it may be a guard, the gateway denies what it would guard. A callback is a mere
observer only if the source shows that it neither answers, nor raises, nor changes its arguments. If the source does not
show it, the worst is assumed.
"""

import ast
from collections.abc import Iterator, Mapping

import msgspec

from gateway.hermes.handler_source import Function, HandlerSource, find_nodes, is_word
from gateway.hermes.patches import call_name_of

REGISTER = "register_hook"
# Methods that answer nothing, as long as no function of the folder has their name.
_SILENT = frozenset({"append", "debug", "error", "exception", "info", "print", "warning"})
_CHANGING = frozenset({"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"})
_ENDING = frozenset({"exit", "quit", "_exit", "abort", "kill"})  # a guard that ends its process has failed
_READING = frozenset({"get", "items", "values"})
_SELF = frozenset({"self", "cls"})


def can_guard(files: Mapping[str, bytes], hook: str) -> bool:
    """Tell if a callback of this hook may decide; False only if the source shows all of its callbacks.

    `files` is the code that the plugin imports, which names this hook.
    """
    source = HandlerSource(files)
    if source.unreadable:
        return True
    calls = [node for node in source.nodes if isinstance(node, ast.Call) and call_name_of(node) == REGISTER]
    if len(calls) != sum(is_word(node, REGISTER) for node in source.nodes):  # it is passed on under another name
        return True
    meant = [call for call in calls if _hook_of(call) in (hook, None)]
    if not meant:
        return not calls
    for call in meant:
        functions = _find_functions(_callback_of(call), source)
        if functions is None or any(_DecisionSearch(source).decides(function) for function in functions):
            return True
    return False


def _hook_of(call: ast.Call) -> str | None:
    """Return the name under which the call registers; None if it is computed."""
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "hook_name"), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def _callback_of(call: ast.Call) -> ast.expr | None:
    if len(call.args) > 1:
        return call.args[1]
    return next((one.value for one in call.keywords if one.arg == "callback"), None)


def _find_functions(callback: ast.expr | None, source: HandlerSource) -> list[Function] | None:
    """Find the functions that are called in the end; None if the source does not show them."""
    match callback:
        case ast.Lambda():
            return [callback]
        case ast.Name(id=name):
            return source.find_functions(name)
        case ast.Attribute(attr=name) if not _is_set(name, source):
            return _plain_functions(source, name)
        case ast.Call(func=ast.Name(id=name)) if name in source.classes:
            return _plain_functions(source, "__call__")
        case ast.Call(func=ast.Name(id=name)):
            return _find_made_functions(name, source)
    return None


def _find_made_functions(name: str, source: HandlerSource) -> list[Function] | None:
    """Find the functions that the makers of this name return."""
    found: list[Function] = []
    for maker in _plain_functions(source, name) or ():
        answers = [node.value for node in find_nodes(maker) if isinstance(node, ast.Return)]
        for answer in answers or [None]:
            made = _find_functions(answer, source) if isinstance(answer, ast.Lambda | ast.Name) else None
            if not made:
                return None
            found += made
    return found or None


def _plain_functions(source: HandlerSource, name: str) -> list[Function] | None:
    found = source.functions.get(name)
    if not found or any(not isinstance(one, ast.Lambda) and one.decorator_list for one in found):
        return None
    return found


def _is_set(attribute: str, source: HandlerSource) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
        for node in source.nodes
    )


class _DecisionSearch(msgspec.Struct, eq=False):
    """A search of a callback, and of the folder's functions that get its arguments, for a decision."""

    _source: HandlerSource
    _seen: set[int] = set()

    def decides(self, function: Function) -> bool:
        """Tell if the function may answer, raise an error, or change its arguments."""
        answers = any(
            (isinstance(node, ast.Return) and not self._is_silent(node.value))
            or isinstance(node, ast.Yield | ast.YieldFrom)
            for node in find_nodes(function)
        )
        is_answer = isinstance(function, ast.Lambda) and not self._is_silent(function.body)
        return answers or is_answer or self._interferes(function)

    def _is_silent(self, value: ast.expr | None) -> bool:
        match value:
            case None | ast.Constant(value=None):
                return True
            case ast.Call():
                name = call_name_of(value)
                return name in _SILENT and name not in self._source.functions
        return False

    def _interferes(self, function: Function) -> bool:
        """Tell if the function raises an error, ends its process, or changes its arguments."""
        if id(function) in self._seen:
            return False
        self._seen.add(id(function))
        given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)} - _SELF
        nodes = list(find_nodes(function))
        if any(isinstance(node, ast.Assert) or (isinstance(node, ast.Raise) and node.exc) for node in nodes):
            return True
        if any(isinstance(node, ast.Call) and call_name_of(node) in _ENDING for node in nodes):
            return True
        for _ in range(2):  # an alias of an alias
            given |= {name for node in nodes for name in _aliases(node, given)}
        own = function.args.kwarg.arg if function.args.kwarg else ""  # made for this call: to change it changes nothing
        return any(self._changes_here(node, given, own) for node in nodes)

    def _changes_here(self, node: ast.AST, given: set[str], own: str) -> bool:
        match node:
            case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if (
                own and name == own
            ):
                return False
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                return _is_given(node, given)
            case ast.AugAssign(target=ast.Name(id=name)):
                return name in given
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CHANGING and _is_given(value, given):
                return True
            case ast.Call() if any(_is_given(one, given) for one in (*node.args, *(k.value for k in node.keywords))):
                return any(map(self._interferes, self._source.functions.get(call_name_of(node), ())))
        return False


def _aliases(node: ast.AST, given: set[str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_given(value, given):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _is_given(value, given):
            yield name
        case ast.NamedExpr(target=ast.Name(id=name), value=value) if _is_given(value, given):
            yield name
        case ast.For(target=target, iter=value) if _is_given(value, given):
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _is_given(node: ast.AST, given: set[str]) -> bool:
    """Tell if this is an argument of the function, or a part of one: no copy of it."""
    match node:
        case ast.Name(id=name):
            return name in given
        case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Starred(value=inner):
            return _is_given(inner, given)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)):
            return name in _READING and _is_given(inner, given)
        case ast.BoolOp(values=values):
            return any(_is_given(one, given) for one in values)
        case ast.IfExp(body=body, orelse=other):
            return _is_given(body, given) or _is_given(other, given)
    return False
