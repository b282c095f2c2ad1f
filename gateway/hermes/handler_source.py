"""The functions of a hook written for Hermes, as its source shows them before it runs.

A folder has no key to declare if its handler decides: the values that the handler returns show it. If the source hides
the handler (by a decorator, an object that is called, `globals()`), the worst is assumed: any function of the folder
may be it, and if its code may come from elsewhere, it decides.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

from gateway.hermes.written_for import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_READS = frozenset({"get", "items", "keys", "values", "copy"})
_MODULE_FINDERS = frozenset({"get", "import_module", "__import__"})
_CODE_MAKERS = frozenset(
    {"exec", "eval", "__import__", "import_module", "exec_module", "spec_from_file_location", "run_path", "run_module"}
)
_RETURNS = re.compile(rb"^\s*return[ (](?!None\b)", re.MULTILINE)  # for text that is not Python


class HandlerSource:
    """The Python code of one folder, as trees, and its functions and methods by name."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.unreadable: list[bytes] = []
        for name, source in sorted(files.items()):
            if name.endswith(".py"):
                if (tree := parse_python(source)) is not None:
                    self.trees[name] = tree
                else:
                    self.unreadable.append(source)
        self.functions: dict[str, list[Function]] = {}
        self.nodes = [node for tree in self.trees.values() for node in ast.walk(tree)]
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    self.functions.setdefault(ast.unparse(target), []).append(node.value)
        self.classes = {node.name for node in self.nodes if isinstance(node, ast.ClassDef)}
        self._own_modules = {part for name in files for part in name.removesuffix(".py").split("/")}
        self._outer = [node for tree in self.trees.values() for node in _walk_outside_functions(tree)]
        self._targets = {
            id(target)
            for node in self._outer
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        self._from_elsewhere = {
            (alias.asname or alias.name).partition(".")[0]
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if not (isinstance(node, ast.ImportFrom) and node.level)
            and not self._is_own(node.module if isinstance(node, ast.ImportFrom) else alias.name)
        }

    @property
    def is_whole(self) -> bool:
        """Tell if all code that can be called is here, or comes with Python."""
        for node in self.nodes:
            match node:
                case ast.Import(names=aliases):
                    modules = [alias.name for alias in aliases]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case ast.Call(func=called) if _last_name_of(called) in _CODE_MAKERS:
                    return False
                case _:
                    continue
            if not all(self._is_own(one) or one.partition(".")[0] in sys.stdlib_module_names for one in modules):
                return False
        return True

    def find_functions(self, name: str) -> list[Function] | None:
        """Find the functions that this name means, through imports and assignments; None if the source hides them."""
        if _rebinds_unseen(self.nodes):
            return None
        names, before = {name}, set[str]()
        while names != before:
            before = set(names)
            for node in self._outer:
                for other in self._other_names(node, names):
                    if not other:
                        return None
                    names.add(other)
        found = [function for one in sorted(names) for function in self.functions.get(one, ())]
        is_plain = not any(
            isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.decorator_list for one in found
        )
        return found if found and is_plain else None

    def _other_names(self, node: ast.AST, names: set[str]) -> Iterator[str]:
        """Yield the names elsewhere of what this statement binds to one of `names`; "" if they are unknown."""
        match node:
            case ast.ImportFrom():
                is_own = bool(node.level) or self._is_own(node.module)
                yield from (one.name if is_own else "" for one in node.names if (one.asname or one.name) in names)
                if not is_own and node.names[0].name == "*" and node.module not in sys.stdlib_module_names:
                    yield ""
            case ast.Import(names=aliases) if any(alias.asname in names for alias in aliases):
                yield ""
            case ast.Assign(value=value):
                if any(isinstance(one, ast.Name) and one.id in names for one in node.targets):
                    yield from self._names_of_value(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name in names:
                yield from self._names_of_value(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if name in names:
                yield from self._names_of_value(value)
            case ast.Name(id=name, ctx=ast.Store()) if name in names and id(node) not in self._targets:
                yield ""

    def _names_of_value(self, value: ast.expr) -> Iterator[str]:
        match value:
            case ast.Lambda():
                return
            case ast.Attribute() if any(
                isinstance(one, ast.Name) and one.id in self._from_elsewhere for one in ast.walk(value)
            ):
                yield ""
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Call(func=ast.Name(id=name)) if name in self.classes:
                yield "__call__"
            case _:
                yield ""

    def _is_own(self, module: str | None) -> bool:
        return (module or "").partition(".")[0] in self._own_modules


def is_word(node: ast.AST, word: str) -> bool:
    """Tell if this is a name, an attribute or a text of that word."""
    match node:
        case ast.Attribute(attr=said) | ast.Constant(value=said) | ast.Name(id=said):
            return said == word
    return False


def _walk_outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may bind names of the module, without those inside a function."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        is_inside = isinstance(node, Function) and not any(isinstance(one, ast.Global) for one in ast.walk(node))
        waiting += () if is_inside else ast.iter_child_nodes(node)


def _rebinds_unseen(nodes: Iterable[ast.AST]) -> bool:
    """Tell if a name of the module may be bound by other means than a statement."""
    read: set[int] = set()
    handled: list[ast.AST] = []
    for node in nodes:
        match node:
            case ast.Subscript(value=value, ctx=ast.Load()):
                read.add(id(value))
            case ast.Attribute(value=value, attr=attr) if attr in _READS:
                read.add(id(value))
            case ast.Compare(comparators=comparators):
                read.update(map(id, comparators))
        match node:
            case ast.Call(func=ast.Name(id="exec")):
                return True
            case ast.Subscript(value=value, slice=ast.Name(id="__name__")) if _last_name_of(value) == "modules":
                return True
            case ast.Call(func=func, args=[ast.Name(id="__name__"), *_]) if _last_name_of(func) in _MODULE_FINDERS:
                return True
            case ast.Call(func=ast.Name(id="globals")):
                handled.append(node)
    return any(id(node) not in read for node in handled)


def _last_name_of(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""


def has_answers(files: Mapping[str, bytes]) -> bool:
    """Tell if `handle` may return something other than None."""
    source = HandlerSource(files)
    functions = source.find_functions("handle")
    if functions is None:
        if source.trees and not source.is_whole:
            return True
        functions = [node for node in source.nodes if isinstance(node, Function)]
    return any(map(has_answer, functions)) or any(map(_RETURNS.search, source.unreadable))


def find_answer(files: Mapping[str, bytes]) -> tuple[str, int] | None:
    """Find the file and the line of a `handle` that visibly returns something."""
    source = HandlerSource(files)
    functions = [function for function in source.find_functions("handle") or () if has_answer(function)]
    for name, tree in source.trees.items():
        for node in ast.walk(tree):
            if node in functions:
                return name, node.lineno
    return None


def has_answer(function: Function) -> bool:
    """Tell if the function may return something other than None."""
    if isinstance(function, ast.Lambda):
        return not _is_none(function.body)
    return any(isinstance(node, ast.Return) and not _is_none(node.value) for node in find_nodes(function))


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def find_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes that run when the function is called, without those of functions that it defines."""
    waiting: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _INNER):
            yield node
            waiting += ast.iter_child_nodes(node)
