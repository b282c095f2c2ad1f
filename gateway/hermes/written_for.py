"""The decision for whom a folder was written: for Hermes, or for this gateway.

A hook written for Hermes gets events in Hermes's shape. `written_for` decides, in HOOK.yaml or in our own
configuration; otherwise a folder is Hermes's if nothing in it belongs to this gateway alone: no key of HOOK.yaml, no
event, no import, and no field or attribute of an event that it reads.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

from gateway.events import Event
from gateway.events.catalogue import get_event_spec, list_matching_events
from gateway.hermes.modules import NAMES
from gateway.hermes.shim.event_shapes import HERMES_KEYS, get_hermes_keys
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.manifest_keys import SHARED_KEYS
from gateway.hooks.places.dialect import ASKED_FOR, FolderClaim
from gateway.hooks.places.handler_inspection import FunctionNode
from gateway.hooks.places.inspection import MAX_CHECKED_BYTES

NOTHING_OWN = "nothing in it is of this gateway alone"
AS_HERMES = "it decides about commands as under Hermes"
OUR_MODULES = frozenset({"gateway.events", "gateway.testing"})
# Names that handlers import from `gateway.hooks`, and that Hermes does not have.
OUR_NAMES = frozenset(name for name, (module, _) in NAMES["gateway.hooks"].items() if module == "gateway.events")
# Events that people also subscribe to in Hermes, which never fires them.
NEVER_FIRED = frozenset({"message:received", "tool:before", "reaction:added", "reaction:removed"})
# Fields that a handler may try by `get`, since Hermes has them at other events.
GUESSED_KEYS = frozenset(
    {
        *("agent", "chat_name", "completed", "content", "duration", "error", "id", "message_id", "messages", "model"),
        *("reason", "result", "text", "time", "tokens", "tool", "usage", "user_name"),
    }
)
ALL_HERMES_KEYS = frozenset().union(*HERMES_KEYS.values())
OUR_ATTRIBUTES = {*dir(Event), "options"} - {*dir({})}

DECISIONS = frozenset({"allow", "deny", "handled", "rewrite"})  # Hermes's words in answers at command:*
MOST_READ = 128_000  # bytes of a folder's source
MOST_HANDS = 4  # functions through which an event is followed


def find_owner(manifest: Manifest, files: Mapping[str, bytes], has_answers: Callable[[], bool]) -> FolderClaim:
    """Decide if a folder is Hermes's, and why. `has_answers` tells if its handler returns anything."""
    if manifest.written_for is not None:
        return FolderClaim(manifest.written_for == "hermes", ASKED_FOR)
    reason = next(_find_own(manifest, files), "")
    if reason and _decides(manifest, files, has_answers) and not next(_find_own(manifest, files, decides=True), ""):
        return FolderClaim(is_owner=True, reason=f"{AS_HERMES}, although {reason}")
    return FolderClaim(not reason, reason or NOTHING_OWN)


def _find_own(manifest: Manifest, files: Mapping[str, bytes], decides: bool = False) -> Iterator[str]:
    """Yield the parts that only this gateway has, the plainest first.

    With `decides`, yield only those that could not work in Hermes.
    """
    if manifest.own_key and not decides:
        yield f"`{manifest.own_key}` in its HOOK.yaml is a key that Hermes does not have"
    if not _hears_commands(manifest):  # a possible guard is checked more closely below
        for name in manifest.events:
            if get_event_spec(name) and name not in NEVER_FIRED and get_hermes_keys(name) is None:
                yield f"it subscribes to {name}, which Hermes does not have"
    specs = filter(None, map(get_event_spec, list_matching_events(manifest.events)))
    own_fields = {field.name for spec in specs for field in spec.all_fields} - ALL_HERMES_KEYS
    words = "|".join(OUR_ATTRIBUTES | own_fields)
    speaks = re.compile(rf"\bgateway\b|[\"'](?:{words})[\"']|\.(?:{words})\b".encode())
    for file, tree in parse_first_files({name: text for name, text in files.items() if speaks.search(text)}):
        yield from (f"{file}:{line}: it {what}" for line, what in _find_in_tree(tree, own_fields, decides))


def _hears_commands(manifest: Manifest) -> bool:
    return any(name.startswith("command:") for name in manifest.events)


def _decides(manifest: Manifest, files: Mapping[str, bytes], has_answers: Callable[[], bool]) -> bool:
    """Tell if the source has a decision about commands as Hermes reads it, and returns it.

    If the only keys of ours in HOOK.yaml say how it decides, any answer counts as one, as in Hermes.
    """
    if manifest.intercepts or not _hears_commands(manifest):
        return False
    if (not manifest.own_key or manifest.own_key in SHARED_KEYS) and has_answers():
        return True
    speaking = {name: text for name, text in files.items() if b"decision" in text}
    return any(
        isinstance(node, ast.Return | ast.Lambda | ast.Assign | ast.NamedExpr)
        and any(map(_is_decision, ast.walk(node)))
        for _, tree in parse_first_files(speaking)
        for node in ast.walk(tree)
    )


def _is_decision(node: ast.AST) -> bool:
    """Tell if this is `{"decision": "deny"}` or `dict(decision="deny")`, or a choice among such words."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            words = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "decision"]
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            words = [one.value for one in keywords if one.arg == "decision"]
        case _:
            return False
    found = [one.value for word in words for one in ast.walk(word) if isinstance(one, ast.Constant)]
    return any(isinstance(one, str) and one.strip().lower() in DECISIONS for one in found)


def parse_first_files(files: Mapping[str, bytes]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the parsed Python files, those next to the entry first, and no more than the loop can afford."""
    left = MOST_READ
    for name in sorted(files, key=lambda name: (name.count("/"), name)):
        left -= len(files[name])
        if name.endswith(".py") and left >= 0 and (tree := parse_python(files[name])):
            yield name, tree


def parse_python(source: bytes) -> ast.Module | None:
    """Parse a source; return None if it is not Python, or so long that parsing would block the loop."""
    if len(source) > MAX_CHECKED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_in_tree(tree: ast.Module, own_fields: set[str], decides: bool) -> Iterator[tuple[int, str]]:
    asked = set[str]() if decides else own_fields - GUESSED_KEYS
    nodes = [*ast.walk(tree)]
    events = _names_of_event(nodes)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and (taken := _own_import(node)):
            yield node.lineno, f"imports {taken} of ours"
        elif isinstance(node, ast.expr) and (read := _own_reading(node, events, own_fields, asked)):
            yield node.lineno, f"reads {read}, which Hermes does not have"


def _own_import(node: ast.Import | ast.ImportFrom) -> str:
    names = {alias.name for alias in node.names}
    if isinstance(node, ast.Import):
        return ", ".join(sorted(names & OUR_MODULES))
    taken = ", ".join(sorted(names & OUR_NAMES)) if node.module == "gateway.hooks" else ""
    return node.module or "" if node.module in OUR_MODULES else taken


def _own_reading(node: ast.expr, events: set[str], own_fields: set[str], asked: set[str]) -> str:
    """Return the expression if it reads a part of the event that only we have.

    `asked` has the fields that count in a call of `get`.
    """
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            is_own = attribute in OUR_ATTRIBUTES | own_fields
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key), ctx=ast.Load()):
            is_own = key in own_fields
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[ast.Constant(value=key), *_]):
            is_own = key in asked
        case _:
            return ""
    return ast.unparse(node) if is_own and name in events else ""


def _names_of_event(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names of the event in this file.

    These are the second parameter of each `handle`, and the names that it is passed on as.
    """
    functions = {node.name: node for node in nodes if isinstance(node, FunctionNode)}
    hands_on = [node for node in nodes if isinstance(node, ast.Assign | ast.Call)]
    called = {"handle", "__call__", *(name for node in hands_on for name in _handlers_in(node))}
    parameters = {name: _parameters_of(function) for name, function in functions.items()}
    handlers = [of for name, of in parameters.items() if name in called or of[1:2] in (["context"], ["ctx"])]
    names = {of[1] for of in handlers if len(of) > 1}
    for _ in range(MOST_HANDS):
        names |= {name for node in hands_on for name in _handed_on(node, names, functions)}
    return names


def _handlers_in(node: ast.AST) -> Iterator[str]:
    """Yield the function's name in `handle = that_function`."""
    match node:
        case ast.Assign(targets=[ast.Name(id="handle")], value=ast.Name(id=name)):
            yield name


def _parameters_of(function: FunctionNode) -> list[str]:
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return parameters[1:] if parameters[:1] == ["self"] else parameters


def _handed_on(node: ast.AST, names: set[str], functions: Mapping[str, FunctionNode]) -> Iterator[str]:
    """Yield the names that get the event by an assignment (`data = dict(context)`), or as an argument in the file."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if _is_event(value, names):
            yield target
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=args) if called in functions:
            parameters: Sequence[str] = _parameters_of(functions[called])
            yield from (name for name, given in zip(parameters, args, strict=False) if _is_event(given, names))


def _is_event(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Call(func=ast.Name(id="dict"), args=[inner]):
            return _is_event(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]):
            return _is_event(inner, names)
        case ast.Dict(keys=keys, values=values):
            return any(key is None and _is_event(value, names) for key, value in zip(keys, values, strict=True))
    return False
