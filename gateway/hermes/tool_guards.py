"""Which tools the guards of a plugin or a shell hook name, seen in its source or its matcher.

A guard that waits for a tool that nobody has stops nothing, and looks like one that does.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.hermes.written_for import parse_first_files
from gateway.hooks.folders.manifest import label_of
from gateway.yaml_source import Finding, SourceLocation

TOLD_TOOLS = HERMES_TOOLS.theirs | OUR_TOOLS_ALONE
GUARD, TOOL_ARGUMENT = "pre_tool_call", "tool_name"
_PLAIN_WORDS = re.compile(r"\^?\(?(?:\?:)?(\w+(?:\|\w+)*)\)?\$?")  # one|another, maybe in brackets


def check_tool_guards(folder: str, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """What there is to say of a plugin whose guard names tools that it will never be told of."""
    if not any(GUARD.encode() in source for source in files.values()):
        return
    trees = dict(parse_first_files(files))
    own = {name for tree in trees.values() for name in _registered_tools(tree)}
    tables = {name: value for tree in trees.values() for name, value in _tables_of(tree).items()}
    for file, tree in sorted(trees.items()):
        named = {name: line for line, name in _named_tools(tree, tables) if name not in own}
        yield from _describe_unknown(f"{label_of(folder)}/{file}", named)


def check_tool_pattern(place: SourceLocation, matcher: str) -> Iterator[Finding]:
    """The same of a shell hook's `matcher`: words that are tools, or a pattern that must match one."""
    if words := _PLAIN_WORDS.fullmatch(matcher):
        if unknown := [name for name in words[1].split("|") if not _is_told(name, ours_too=True)]:
            yield _make_finding(place, unknown)
    elif not any(re.fullmatch(matcher, name) for name in (*TOLD_TOOLS, "mcp__server__tool")):
        yield Finding(place, f"its matcher {matcher!r} matches no tool", "tools are called as in Hermes", "warning")


def _describe_unknown(file: str, named: Mapping[str, int]) -> Iterator[Finding]:
    if unknown := [name for name in named if not _is_told(name)]:
        yield _make_finding(SourceLocation(file, named[unknown[0]], 1), unknown)


def _make_finding(place: SourceLocation, unknown: Sequence[str]) -> Finding:
    one = len(unknown) == 1
    what = f"its guard names {'a tool that is' if one else 'tools that are'} not here: {', '.join(unknown)}"
    renamed = [_describe_rename(name, told) for name in unknown if (told := _told_name(name)) != name]
    remedy = "; ".join(renamed) or "it stops nothing there, unless another plugin brings it"
    return Finding(place, what, remedy, "warning")


def _describe_rename(name: str, told: str) -> str:
    _, _, rest = name.partition("mcp__")
    server = rest.partition("__")[0]
    unless = f", unless its server is {server.replace('_', '-')}" if "_" in server else ""
    return f"{name} is told to it as {told}{unless}"


def _is_told(name: str, ours_too: bool = False) -> bool:
    """Whether a tool may come to a guard under this name."""
    told = _told_name(name)
    return name in TOLD_TOOLS or (ours_too and told != name) or (name.startswith("mcp__") and told == name)


def _told_name(name: str) -> str:
    """What a tool of this name, ours or Hermes's, is called when it comes to a guard."""
    ours, _ = HERMES_TOOLS.resolve_call(name, {}) if name.startswith("mcp__") else (name, {})
    return HERMES_TOOLS.describe_name(ours)


def _registered_tools(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="register_tool"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Call(func=ast.Attribute(attr="register_tool"), keywords=keywords):
                yield from (text for one in keywords if one.arg == "name" for text in _texts_of(one.value, {}))


def _named_tools(tree: ast.Module, tables: Mapping[str, ast.expr]) -> Iterator[tuple[int, str]]:
    """Each text that a tool's name is compared with, or looked up in, with its line."""
    called = _names_of_tool(tree)
    for node in ast.walk(tree):
        for left, right in _compared(node):
            if _is_named(left, called):
                yield from ((getattr(node, "lineno", 1), text) for text in _texts_of(right, tables))


def _compared(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            yield from ((left, right), (right, left))
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
            yield left, right
        case ast.Match(subject=subject, cases=cases):
            patterns = (inner for one in cases for inner in ast.walk(one.pattern))
            yield from ((subject, inner.value) for inner in patterns if isinstance(inner, ast.MatchValue))
        case ast.Subscript(value=table, slice=key):
            yield key, table
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]):
            yield key, table


def _names_of_tool(tree: ast.Module) -> set[str]:
    """What holds the tool's name: the argument, and whatever is made of it (`name = kwargs.get("tool_name")`)."""
    names = {TOOL_ARGUMENT}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if _is_named(value, names):
                names.add(target)
    return names


def _is_named(node: ast.AST, names: set[str]) -> bool:
    """Whether this is the tool's name, maybe without blanks or in lower case."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Subscript(slice=ast.Constant(value=key)):
            return key == TOOL_ARGUMENT
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=key), *_]):
            return key == TOOL_ARGUMENT
        case ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lower" | "casefold")):
            return _is_named(inner, names)
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            return _is_named(first, names)
    return False


def _tables_of(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of plain assignments, by the last word of their target."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), value=ast.expr() as value):
                found[name] = value
    return found


def _texts_of(node: ast.AST, tables: Mapping[str, ast.expr]) -> Iterable[str]:
    """The texts of a constant, of a literal collection, or of the name of one."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Set(elts=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(keys=parts):
            return [text for part in parts if part is not None for text in _texts_of(part, {})]
        case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple"), args=[inner]):
            return _texts_of(inner, tables)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in tables:
            return _texts_of(tables[name], {})
    return []
