"""What the source of a hook written for Hermes shows of its functions, before anything of it runs.

A folder has no key to declare whether its handler decides: that is seen in what the handler returns. Who hides it (a
decorator, an object that is called, `globals()`) is taken at the worst: then any function of the folder counts.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from gateway.hermes.written_for import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_RETURNS = re.compile(rb"^\s*return[ (](?!None\b)", re.MULTILINE)  # for what is no Python


class HandlerSource:
    """All Python of one folder, as trees, and its functions by name, methods too."""

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

    def find_functions(self, name: str) -> list[Function] | None:
        """What is called by this name in the end, through imports and assignments; None where that cannot be seen."""
        names, before = {name}, set[str]()
        while names != before:
            before = set(names)
            for node in self.nodes:
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
        """Under which names that which this statement calls by one of `names` is known elsewhere; "": nobody knows."""
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names if (one.asname or one.name) in names)
        elif isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id in names for one in node.targets
        ):
            match node.value:
                case ast.Lambda():
                    return
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name
                case ast.Call(func=ast.Name(id=name)) if name in self.classes:
                    yield "__call__"
                case _:
                    yield ""


def has_answers(files: Mapping[str, bytes]) -> bool:
    """Whether `handle` may return something else than None."""
    source = HandlerSource(files)
    functions = source.find_functions("handle")
    if functions is None:
        functions = [node for node in source.nodes if isinstance(node, Function)]
    return any(map(has_answer, functions)) or any(map(_RETURNS.search, source.unreadable))


def has_answer(function: Function) -> bool:
    """Whether it may return something else than None."""
    if isinstance(function, ast.Lambda):
        return not _is_none(function.body)
    return any(isinstance(node, ast.Return) and not _is_none(node.value) for node in find_nodes(function))


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def find_nodes(function: Function) -> Iterator[ast.AST]:
    """What runs when it is called, without what the functions that it makes would do."""
    waiting: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _INNER):
            yield node
            waiting += ast.iter_child_nodes(node)
