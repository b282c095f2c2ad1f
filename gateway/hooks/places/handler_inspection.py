"""Checks of a handler's source for code without effect, in the same words as the log when that code runs.

The checks report only faults that are plain in the source. A decision that goes through a variable, or a field whose
name is put together, is left to `hooks test` and to the log.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import get_args

from gateway.events import OUTCOMES
from gateway.events.catalogue import get_event_spec, suggest_event
from gateway.events.fields import EventSpec
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.manifest_keys import HookRight
from gateway.hooks.outcome_collector import describe_refused_field
from gateway.hooks.patterns import EventSelector
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

_OUTCOMES = {outcome.__name__ for outcome in OUTCOMES}
_HOME = "gateway.hooks"  # the module that handlers import outcomes from
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def check_effects(place: str, tree: ast.Module, manifest: Manifest) -> Iterator[Finding]:
    """Yield a warning for each decision, change, request or mark of this hook that has no effect."""
    nodes = [*ast.walk(tree)]  # one walk for all: every start in a new home checks each built-in hook
    found = [
        *_check_marks(nodes, manifest),
        *_check_decisions(nodes, manifest),
        *_check_changes(tree, manifest),
        *_check_requests(nodes, manifest),
    ]
    for node, what, remedy in sorted(found, key=lambda one: (one[0].lineno, one[0].col_offset)):
        where = SourceLocation(place, node.lineno, node.col_offset + 1)
        yield Finding(where, to_printable(what, 300), to_printable(remedy, 300), "warning")


_Told = tuple[ast.expr | ast.stmt, str, str]


def _check_marks(nodes: Sequence[ast.AST], manifest: Manifest) -> Iterator[_Told]:
    """Yield the event names in `@on(...)` that the manifest does not have."""
    marks = [one for node in nodes if isinstance(node, FunctionNode) for one in node.decorator_list]
    named = EventSelector(manifest.subscriptions if marks else ())
    for call in marks:
        if not isinstance(call, ast.Call) or _name_of(call.func) != "on":
            continue
        for name in call.args:
            text = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
            if text is None or text in named or text in manifest.subscriptions:
                continue
            near = suggest_event(text)
            remedy = f"did you mean `{near}`?" if near else "add it to `intercepts` or `events`"
            yield name, f"@on({text!r}) is called for nothing: HOOK.yaml does not name it", remedy


def _check_decisions(nodes: Sequence[ast.AST], manifest: Manifest) -> Iterator[_Told]:
    """Yield the outcomes that no event of this hook honours."""
    points = [get_event_spec(name) for name in manifest.intercepts]
    if None in points:
        return
    honoured = {word for point in points if point for word in point.outcomes}
    at = ", ".join(manifest.intercepts)
    own = {
        alias.asname or alias.name: alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == _HOME
        for alias in node.names
        if alias.name in _OUTCOMES
    }
    for node in nodes if own else ():
        given = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
        called = given.func if isinstance(given, ast.Call) else given
        outcome = own.get(called.id, "") if isinstance(called, ast.Name) else ""
        if not outcome or outcome.lower() in honoured:
            continue
        assert isinstance(node, ast.stmt)
        if at:
            listed = ", ".join(sorted(honoured)) or "no decision"
            yield node, f"{outcome} has no effect at {at}", f"what counts there: {listed}"
        else:
            remedy = f"to decide, write `intercepts: [{', '.join(manifest.events)}]`"
            yield node, f"{outcome} has no effect: the hook only observes", remedy


def _check_changes(tree: ast.Module, manifest: Manifest) -> Iterator[_Told]:
    """Yield the changes of fields that no intercepted event lets a hook change."""
    points = [get_event_spec(name) for name in manifest.intercepts]
    known = [point for point in points if point is not None]
    handle = next((node for node in tree.body if isinstance(node, FunctionNode) and node.name == "handle"), None)
    if handle is None or not known or len(known) < len(points) or len(handle.args.args) < 2:
        return
    context = handle.args.args[1].arg
    fixed = {field.name for point in known for field in point.all_fields} - _writable_of(known)
    at = ", ".join(manifest.intercepts)
    changing = (node for node in ast.walk(handle) if isinstance(node, ast.Assign | ast.Return))
    for node in changing:
        for field in _changes_of(node, context):
            if field in fixed:
                writable = ", ".join(sorted(_writable_of(known))) or "nothing"
                yield node, describe_refused_field(at, field), f"what can be changed there: {writable}"


def _writable_of(points: Sequence[EventSpec]) -> frozenset[str]:
    return frozenset[str]().union(*(point.writable for point in points))


def _changes_of(node: ast.Assign | ast.Return, context: str) -> Iterator[str]:
    """Yield the fields that a statement changes: `context["x"] = ...`, or `return {"x": ...}` without a decision."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _name_of(target.value) == context:
                yield from _texts_of([target.slice])
    elif isinstance(node.value, ast.Dict):
        fields = list(_texts_of(node.value.keys))
        if not {"decision", "action"} & {*fields}:
            yield from fields


def _texts_of(nodes: Sequence[ast.expr | None]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _check_requests(nodes: Sequence[ast.AST], manifest: Manifest) -> Iterator[_Told]:
    """Yield the requests, such as `context.gateway.send(...)`, for which the hook has no right."""
    rights = get_args(HookRight)
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in rights:
            continue
        if isinstance(node.value, ast.Attribute) and node.value.attr == "gateway" and node.attr not in manifest.uses:
            yield node, f"the hook may not {node.attr}", f"add `uses: [{node.attr}]` to its HOOK.yaml"


def _name_of(node: ast.expr) -> str:
    """Return the last word of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
