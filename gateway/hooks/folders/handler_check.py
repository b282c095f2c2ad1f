"""Whether a handler has something to call, as far as its source shows it. What only a run could show is not judged."""

import ast
import warnings
from collections.abc import Iterator

from gateway.yaml_source import Finding, SourceLocation

HANDLE_ARGUMENTS = 2  # handle(event_type, context)
# Who uses one of these may make a `handle` that no reader sees.
_DYNAMIC_NAMES = frozenset({"exec", "globals", "setattr", "vars", "__getattr__", "__dict__"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_handler(place: str, source: bytes) -> Iterator[Finding]:
    """`source` compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except RecursionError:  # it is nested deeper than can be looked at
        return
    handles = [node for node in tree.body if isinstance(node, _Function) and node.name == "handle"]
    if handles and (wrong := _check_arguments(handles[-1])):
        where = SourceLocation(place, handles[-1].lineno, handles[-1].col_offset + 1)
        yield Finding(where, wrong, "write: def handle(event_type, context)")
    if not handles and not _names_used(tree) & {"handle", "on", "*", *_DYNAMIC_NAMES}:
        what = "there is nothing to call"
        yield Finding(
            SourceLocation(place), what, "write def handle(event_type, context), or mark functions with @on(...)"
        )


def _check_arguments(function: _Function) -> str:
    """What is wrong with them; a decorator may change them, and is not judged."""
    given = function.args
    if function.decorator_list:
        return ""
    places = len(given.posonlyargs) + len(given.args)
    wanted = places - len(given.defaults)
    missing = [name.arg for name, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    if missing or wanted > HANDLE_ARGUMENTS or (places < HANDLE_ARGUMENTS and not given.vararg):
        taken = _count_arguments(places + len(missing))
        return f"`handle` takes {taken}, and is called with an event's name and its context"
    return ""


def _count_arguments(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"


def _names_used(tree: ast.Module) -> set[str]:
    """All names that the module speaks of."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                found.add(node.id)
            case ast.Attribute():
                found.add(node.attr)
            case ast.alias():
                found.add(node.asname or node.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
    return found
