"""The tools that the guards of a plugin or a shell hook name, from the plugin's source or the hook's matcher.

A guard for a tool that does not exist stops nothing, and looks as if it did.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase

from gateway.hermes.patches import call_name_of
from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.hermes.written_for import parse_first_files
from gateway.hooks.manifests.manifest import label_of
from gateway.hooks.places.handler_inspection import FunctionNode
from gateway.yaml_source.tree import Finding, SourceLocation

TOLD_TOOLS = HERMES_TOOLS.theirs | OUR_TOOLS_ALONE.keys()
GUARD, TOOL_ARGUMENT = "pre_tool_call", "tool_name"
MCP_SAMPLES = ("mcp__server__tool",)
REGEX = ("match", "fullmatch", "search")
KINDS = {"startswith": "that begin with", "fnmatch": "like", **dict.fromkeys(REGEX, "that match")}
MOST_HANDS = 4  # functions through which the tool's name is followed
_PLAIN_WORDS = re.compile(r"\^?\(?(?:\?:)?(\w+(?:\|\w+)*)\)?\$?")  # one|another, maybe in brackets


def check_tool_guards(folder: str, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield warnings about a plugin's guard that waits for tools which never come to it."""
    if not any(GUARD.encode() in source for source in files.values()):
        return
    trees = dict(sorted(parse_first_files(files)))
    own = {name for tree in trees.values() for name in _registered_tools(tree)}
    tables = {name: value for tree in trees.values() for name, value in _tables_of(tree).items()}
    waited = GuardSource(trees.values())
    for file, tree in trees.items():
        named: dict[str, int] = {}
        for node in waited.nodes_of(tree):
            line, called = getattr(node, "lineno", 1), waited.names_at(node)
            named.update((text, line) for text in _named_tools(node, called, tables) if text not in own)
            for pattern, kind in _patterns(node, called, tables):
                if not any(_fits(kind, pattern, name) for name in (*TOLD_TOOLS, *own, *MCP_SAMPLES)):
                    what = f"its guard waits for tools {KINDS[kind]} {pattern!r}, and none here is called so"
                    remedy = "it stops nothing there, unless another plugin brings it"
                    yield Finding(SourceLocation(f"{label_of(folder)}/{file}", line, 1), what, remedy, "warning")
        yield from _describe_unknown(f"{label_of(folder)}/{file}", named)


def check_tool_pattern(place: SourceLocation, matcher: str) -> Iterator[Finding]:
    """Yield warnings about a shell hook's `matcher` that names unknown tools, or matches none."""
    if words := _PLAIN_WORDS.fullmatch(matcher):
        if unknown := [name for name in words[1].split("|") if not _is_told(name, ours_too=True)]:
            yield _make_finding(place, unknown)
    elif not _could_take_long(matcher) and not any(
        re.fullmatch(matcher, name) for name in (*TOLD_TOOLS, "mcp__server__tool")
    ):
        yield Finding(place, f"its matcher {matcher!r} matches no tool", "tools are called as in Hermes", "warning")


def _could_take_long(matcher: str) -> bool:
    """Tell if one repetition may be inside another; a few side by side do no harm, since names are short."""
    repeats = len(re.findall(r"[*+{]", matcher))
    return repeats > 4 or (repeats > 1 and re.search(r"\)[*+{]", matcher) is not None)


def _describe_unknown(file: str, named: Mapping[str, int]) -> Iterator[Finding]:
    if unknown := [name for name in named if not _is_told(name)]:
        yield _make_finding(SourceLocation(file, named[unknown[0]], 1), unknown)


def _make_finding(place: SourceLocation, unknown: Sequence[str]) -> Finding:
    one = len(unknown) == 1
    what = f"its guard names {'a tool that is' if one else 'tools that are'} not here: {', '.join(unknown)}"
    renamed = [f"{name} is told to it as {told}" for name in unknown if (told := _told_name(name)) != name]
    remedy = "; ".join(renamed) or "it stops nothing there, unless another plugin brings it"
    return Finding(place, what, remedy, "warning")


def _is_told(name: str, ours_too: bool = False) -> bool:
    """Tell if a tool may come to a guard under this name."""
    told = _told_name(name)
    return name in TOLD_TOOLS or (ours_too and told != name) or (name.startswith("mcp__") and told == name)


def _told_name(name: str) -> str:
    """Return the name under which a tool of this name, ours or Hermes's, comes to a guard."""
    if name.startswith("mcp__"):
        return name.replace("-", "_")
    # Only the configuration says where the server's name ends, and it may change.
    return "mcp__SERVER__TOOL" if name.startswith("mcp_") else HERMES_TOOLS.describe_name(name)


def _registered_tools(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="register_tool"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Call(func=ast.Attribute(attr="register_tool"), keywords=keywords):
                yield from (text for one in keywords if one.arg == "name" for text in _texts_of(one.value, {}))


def _named_tools(node: ast.AST, called: Set[str], tables: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield each text that a tool's name is compared with here, or looked up in."""
    for left, right in _compared(node):
        if _is_named(left, called):
            yield from _texts_of(right, tables)


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


def _patterns(node: ast.AST, called: Set[str], tables: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
    """Yield each text that a tool's name must begin with here, or match, and how."""
    match node:
        case ast.Call(func=ast.Attribute(value=subject, attr="startswith"), args=[prefix, *_]):
            found = ((text, "startswith") for text in _texts_of(prefix, tables))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=how), args=[pattern, subject, *_]) if (
            how in REGEX
        ):
            found = ((text, how) for text in _texts_of(pattern, tables))
        case ast.Call(func=ast.Attribute(value=pattern, attr=how), args=[subject, *_]) if how in REGEX:
            found = ((text, how) for text in _compiled_texts(pattern, tables))
        case ast.Call(args=[subject, pattern]) if call_name_of(node) in ("fnmatch", "fnmatchcase"):
            found = ((text, "fnmatch") for text in _texts_of(pattern, tables))
        case _:
            return
    if _is_named(subject, called):
        for text, how in found:
            words = _PLAIN_WORDS.fullmatch(text) if how in REGEX else None
            yield from ((word, how) for word in (words[1].split("|") if words else [text]))


def _compiled_texts(node: ast.expr, tables: Mapping[str, ast.expr]) -> Iterable[str]:
    match node:
        case ast.Call(args=[pattern, *_]) if call_name_of(node) == "compile":
            return _texts_of(pattern, tables)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in tables:
            return _compiled_texts(tables[name], {other: one for other, one in tables.items() if other != name})
    return []


def _fits(kind: str, pattern: str, name: str) -> bool:
    if kind == "startswith":
        return name.startswith(pattern) or (name == MCP_SAMPLES[0] and pattern.startswith("mcp__"))
    if kind == "fnmatch":
        return fnmatchcase(name, pattern) or (name == MCP_SAMPLES[0] and pattern.startswith("mcp__"))
    try:
        return getattr(re, kind)(pattern, name) is not None or "mcp__" in pattern
    except re.error:
        return True


class GuardSource:
    """The names that hold the tool's name in each place of a plugin's source.

    These are the argument, values made of it, and the parameters of functions that get it.
    """

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        self._owner: dict[int, ast.AST] = {}  # the function around a node
        self._outer: dict[int, ast.AST] = {}  # the function around that function
        self._names: dict[int, set[str]] = {}
        self._nodes: dict[int, list[ast.AST]] = {}
        self._functions: dict[str, list[FunctionNode]] = {}
        for tree in trees:
            self._nodes[id(tree)] = []
            self._enter(tree, tree, tree)
        everything = [node for nodes in self._nodes.values() for node in nodes]
        for _ in range(MOST_HANDS):
            for node in everything:
                self._follow(node)

    def nodes_of(self, tree: ast.Module) -> Sequence[ast.AST]:
        return sorted(self._nodes[id(tree)], key=lambda node: getattr(node, "lineno", 0))

    def names_at(self, node: ast.AST) -> Set[str]:
        owner: ast.AST | None = self._owner[id(node)]
        found: set[str] = set()
        while owner is not None:
            found |= self._names[id(owner)]
            owner = self._outer.get(id(owner))
        return found

    def _enter(self, node: ast.AST, owner: ast.AST, tree: ast.Module) -> None:
        waiting = [(node, owner)]
        while waiting:
            node, owner = waiting.pop()
            if isinstance(node, FunctionNode):
                self._functions.setdefault(node.name, []).append(node)
                self._names[id(node)] = {TOOL_ARGUMENT}
                self._outer[id(node)] = owner
                owner = node
            self._names.setdefault(id(owner), {TOOL_ARGUMENT})
            self._owner[id(node)] = owner
            self._nodes[id(tree)].append(node)
            waiting += ((inner, owner) for inner in ast.iter_child_nodes(node))

    def _follow(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Assign | ast.Call):
            return
        names = self.names_at(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if _is_named(value, names):
                self._names[id(self._owner[id(node)])].add(target)
            case ast.Call():
                for function in self._functions.get(call_name_of(node), ()):
                    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
                    parameters = parameters[1:] if parameters[:1] in (["self"], ["cls"]) else parameters
                    given = [*zip(parameters, node.args, strict=False)]
                    given += [(one.arg, one.value) for one in node.keywords if one.arg]
                    self._names[id(function)].update(name for name, value in given if _is_named(value, names))


def _is_named(node: ast.AST, names: Set[str]) -> bool:
    """Tell if this is the tool's name, perhaps stripped or in lower case."""
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
    """Return the values of plain assignments and loops, by the last word of their target."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), value=ast.expr() as value):
                found[name] = value
            case (
                ast.For(target=ast.Name(id=name), iter=value) | ast.comprehension(target=ast.Name(id=name), iter=value)
            ):
                found.setdefault(name, value)
            case (
                ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=value)
                | ast.comprehension(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=value)
            ) if isinstance(value, ast.Call):  # `RULES.items()`
                found.setdefault(name, value)
    return found


def _texts_of(node: ast.AST, tables: Mapping[str, ast.expr]) -> Iterable[str]:
    """Return the texts of a constant, a literal collection, a sum of several, or the name of one."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Set(elts=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(keys=parts):
            return [text for part in parts if part is not None for text in _texts_of(part, tables)]
        case ast.Starred(value=inner):
            return _texts_of(inner, tables)
        case ast.BinOp(op=ast.BitOr() | ast.Add(), left=left, right=right):
            return [*_texts_of(left, tables), *_texts_of(right, tables)]
        case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple" | "list" | "sorted"), args=[inner]):
            return _texts_of(inner, tables)
        case ast.Call(func=ast.Attribute(value=first, attr="union" | "keys" | "items"), args=more):
            return [text for one in (first, *more) for text in _texts_of(one, tables)]
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in tables:
            return _texts_of(tables[name], {other: one for other, one in tables.items() if other != name})
    return []
