"""The hooks that read the history or the tools on offer: other hooks get events without these fields.

These fields are nearly all of an event `agent:start` or `llm:before`. A hook gets such a field if its source has the
field's name, if the hook passes an event on as a whole, or if the source does not show which fields the hook reads.
"""

import ast
from collections.abc import Mapping
from functools import lru_cache

from gateway.hooks.manifests.manifest import HANDLER_FILE, Manifest
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.inspection import MAX_CHECKED_BYTES
from gateway.hooks.wires.field_encoding import LARGE_FIELDS

_READS_ONE_FIELD = frozenset({"get", "pop", "setdefault"})
_READS_NO_FIELD = frozenset({"ask", "name", "outcome", "own", "session", "turn"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_unused_fields(manifest: Manifest, files: Mapping[str, bytes], *, is_own: bool) -> frozenset[str]:
    """Return the fields that a hook with these files does not read; `is_own`: the hook was written for this gateway."""
    selector = EventSelector(manifest.subscriptions)
    large = frozenset[str]().union(*(fields for name, fields in LARGE_FIELDS.items() if name in selector))
    if not large or _reads_all(manifest, files, is_own=is_own):
        return frozenset()
    named = {field for field in large if any(field.encode() in data for data in files.values())}
    return large - named - frozenset(manifest.when or ())


def _reads_all(manifest: Manifest, files: Mapping[str, bytes], *, is_own: bool) -> bool:
    if manifest.wire != "worker" or manifest.entry != HANDLER_FILE:
        return True
    if not is_own:  # no other program has such fields
        return False
    return any(_passes_event_on(name, data) for name, data in files.items() if name.endswith(".py"))


@lru_cache(64)  # each home that a process opens has the built-in hooks
def _passes_event_on(name: str, source: bytes) -> bool:
    """Tell whether a handler in this file uses an event other than by the names of its fields."""
    if len(source) > MAX_CHECKED_BYTES:
        return True
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    around = _map_parents(tree)
    handlers = [one for one in around if isinstance(one, _Function) and (one.decorator_list or one.name == "handle")]
    is_registered_by_call = any(isinstance(one, ast.Call) and isinstance(one.func, ast.Call) for one in around)
    if is_registered_by_call or (name == HANDLER_FILE and not handlers):
        return True
    return any(_uses_as_whole(handler, around) for handler in handlers)


def _map_parents(tree: ast.Module) -> Mapping[ast.AST, ast.AST]:
    """Map each part of a module to the part around it."""
    around, nodes = dict[ast.AST, ast.AST](), list[ast.AST]([tree])
    for one in nodes:
        below = [*ast.iter_child_nodes(one)]
        around |= dict.fromkeys(below, one)
        nodes += below
    return around


def _uses_as_whole(handler: _Function, around: Mapping[ast.AST, ast.AST]) -> bool:
    given = handler.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    events = {*names[handler.name == "handle" :]} - {"self"}  # the first argument of `handle` is the event's name
    uses = [one for one in ast.walk(handler) if isinstance(one, ast.Name) and one.id in events]
    return bool(given.vararg or given.kwarg) or not all(_is_of_one_field(one, around) for one in uses)


def _is_of_one_field(event: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
    match around[event]:
        case ast.Subscript(slice=ast.Constant()) | ast.Compare(left=ast.Constant(), ops=[ast.In() | ast.NotIn()]):
            return True
        case ast.Attribute(attr=name) as used:
            call = around[used]
            is_of_one = isinstance(call, ast.Call) and isinstance(call.args[0] if call.args else None, ast.Constant)
            return name in _READS_NO_FIELD or (name in _READS_ONE_FIELD and is_of_one)
    return False
