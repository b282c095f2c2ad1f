"""The faults that a source can get, one at a time: a comparison turned, a statement left out, a constant changed.

A fault changes the text of one statement and no number of a line. What no test could be asked to find gets none:
docstrings, annotations, imports, assertions, `__all__`, and what is written to the log.

Which faults are drawn hangs on the seed and on what stands there, not on where it stands: two commits get the same
ones, save where they differ.
"""

import ast
import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
OPPOSITES |= {"is": "is not", "is not": "is", "in": "not in", "not in": "in"}
OPERATOR = re.compile(r"not\s+in\b|is\s+not\b|is\b|in\b|[<>=!]=|[<>]")
LOGS = frozenset({"log", "logger", "logging"})
LISTS = frozenset({"__all__", "__slots__"})
TYPING = frozenset({"Literal", "NewType", "ParamSpec", "TypeVar", "cast"})  # what is in it is for the type checker
UNCHANGED = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Assert)
SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Return,
    ast.Raise,
    ast.Delete,
    ast.Break,
    ast.Continue,
)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Statement:
    """One of a file, the names of the classes and functions that it stands in, and whether it waits for a call."""

    node: ast.stmt
    place: str
    is_in_function: bool


@dataclass(frozen=True)
class Fault:
    """`new` in place of `old`, which begins at this byte, in the statement that begins in this line, so."""

    path: str
    line: int
    statement: str
    kind: str
    start: int
    old: str
    new: str

    def put_into(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.start + len(self.old.encode()) :]

    def __str__(self) -> str:
        old = " ".join(self.old.split())
        return f"left out: {old}" if self.kind == "statement" else f"{old} -> {self.new}"


def list_statements(tree: ast.AST, place: str = "", is_in_function: bool = False) -> Iterator[Statement]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield Statement(node, place, is_in_function)
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            inner = f"{place}.{node.name}" if isinstance(node, (*FUNCTION, ast.ClassDef)) else place
            yield from list_statements(node, inner, is_in_function or isinstance(node, FUNCTION))


class SourceText:
    """A file, and where in it an expression or a statement stands, in bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self.lines))]

    def place(self, node: ast.expr | ast.stmt) -> slice:
        assert node.end_lineno
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return slice(start, self._starts[node.end_lineno - 1] + node.end_col_offset)


def find_faults(path: str, data: bytes) -> Iterator[Fault]:
    source = SourceText(data)
    for statement in list_statements(ast.parse(data)):
        line = statement.node.lineno
        begins = f"{statement.place} {source.lines[line - 1].decode().strip()}"
        for kind, where, new in list_changes(statement, source):
            yield Fault(path, line, begins, kind, where.start, data[where].decode(), new)


Change = tuple[str, slice, str]


def list_changes(statement: Statement, source: SourceText) -> Iterator[Change]:
    """What may be changed of it, where that stands, and what comes there."""
    node = statement.node
    if is_left_alone(node):
        return
    if statement.is_in_function and isinstance(node, SIMPLE):
        where = source.place(node)
        yield "statement", where, "pass" + "\n" * source.data[where].count(b"\n")
    for part in list_parts(node):
        if isinstance(part, ast.Compare):
            yield from turn_operators(part, source)
        if isinstance(part, ast.Constant) and part.lineno == part.end_lineno and (new := change(part.value)):
            yield "constant", source.place(part), new


def is_left_alone(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(ast.Constant()):  # a docstring
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            return name.lstrip("_") in LOGS
        case ast.Assign([ast.Name(name)]):
            return name in LISTS
        case ast.If(test):
            return "TYPE_CHECKING" in ast.dump(test) or "__name__" in ast.dump(test)
    return isinstance(node, UNCHANGED)


def list_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions of one statement: not those of the statements in it, nor what is for the type checker."""
    typed = {getattr(node, name, None) for name in ("annotation", "returns")}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.JoinedStr) or child in typed or is_typing(child):
            continue
        yield child
        yield from list_parts(child)


def is_typing(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Name(name)) | ast.Subscript(ast.Name(name)):
            return name in TYPING
    return False


def turn_operators(compare: ast.Compare, source: SourceText) -> Iterator[Change]:
    for left, right in pairwise([compare.left, *compare.comparators]):
        begin = source.place(left).stop
        gap = source.data[begin : source.place(right).start].decode()
        found = OPERATOR.search(gap)
        if found and "#" not in gap:
            where = slice(begin + found.start(), begin + found.end())
            yield "comparison", where, OPPOSITES[" ".join(found[0].split())]


def change(value: object) -> str:
    """Another one of its kind, as it is written; nothing where there is none."""
    match value:
        case bool():
            return repr(not value)
        case int() | float():
            return repr(value + 1)
        case str():
            return repr(value + "x")
        case bytes():
            return repr(value + b"x")
    return ""


def draw(faults: Iterable[Fault], seed: int, count: int) -> list[Fault]:
    """Each in a line of its own, by chance, and as many of one kind as of another."""

    def chance(fault: Fault, *words: str) -> str:
        return hashlib.sha256("\n".join([str(seed), fault.path, fault.statement, *words]).encode()).hexdigest()

    by_kind = defaultdict[str, list[Fault]](list)
    for fault in sorted(faults, key=lambda one: (chance(one), chance(one, one.old, one.new))):
        by_kind[fault.kind].append(fault)
    drawn = dict[tuple[str, int], Fault]()
    queues = deque(iter(by_kind[kind]) for kind in sorted(by_kind))
    while queues and len(drawn) < count:
        queue = queues.popleft()
        for fault in (one for one in queue if (one.path, one.line) not in drawn):
            drawn[fault.path, fault.line] = fault
            queues.append(queue)
            break
    return list(drawn.values())
