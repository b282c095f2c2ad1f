"""The imported files of a folder's code, and the missing packages that it imports, from the source alone."""

import ast
import posixpath
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from gateway.hermes.modules import NAMES, PLUGIN_PARENT
from gateway.hermes.written_for import parse_python
from gateway.hooks.manifests.manifest import FORMER_PACKAGES, label_of
from gateway.yaml_source.tree import SourceLocation

# Code that only its author runs, by hand.
_WORKSHOP_FOLDERS = frozenset({"scripts", "test", "tests", "examples"})
_WORKSHOP_MODULES = frozenset({"conftest", "setup"})
FORMER_IMPORT = re.compile(rb"^[ \t]*+(import|from)\b.*\b(anthropic|mcp|openai)\b", re.MULTILINE)
_MAKES_NAMES = re.compile(rb"\b(import_module|__import__|exec_module|spec_from_file_location|runpy)\b")
HERMES_MODULES = re.compile(
    r"(agent|gateway|hermes_cli|tools|hermes_state|hermes_logging|model_tools|toolsets|trajectory_compressor)(\.|\Z)"
)


class MissingImport(NamedTuple):
    """An import of a package that is missing.

    `is_fatal`: nothing in the folder works without it. `is_sure`: its code looks for it in no other place.
    """

    place: SourceLocation
    module: str
    is_fatal: bool
    is_sure: bool = True


def select_imports(folder: str, entry: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Select the entry and the files that it imports, directly or not.

    If the code computes names of modules, all files count, except scripts and tests.
    """
    sources = {name: source for name, source in files.items() if name.endswith(".py")}
    found: dict[str, bytes] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name in found or name not in sources:
            continue
        found[name] = sources[name]
        if _MAKES_NAMES.search(sources[name]):
            return {name: source for name, source in sources.items() if not _is_for_the_workshop(name)}
        for path in _list_imported_paths(folder, name, sources[name]):
            waiting += (other for other in sources if other == path or other.endswith(f"/{path}"))
    return found


def _is_for_the_workshop(path: str) -> bool:
    *folders, name = path.split("/")
    module = name.removesuffix(".py")
    is_test = module.startswith("test_") or module in _WORKSHOP_MODULES
    return is_test or not _WORKSHOP_FOLDERS.isdisjoint(folders)


def _list_imported_paths(folder: str, name: str, source: bytes) -> Iterator[str]:
    """Yield the possible paths of the modules that this file imports: `a/b.py` or `a/b/__init__.py`.

    They may be relative to a folder above.
    """
    tree = parse_python(source)
    for node in ast.walk(tree) if tree else ():
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = posixpath.dirname(name).split("/") if node.level else []
            above = [part for part in parts[: len(parts) - node.level + 1 or None] if part]
            base = ".".join([*above, *([node.module] if node.module else [])])
            modules = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
        for module in modules:
            words = module.split(".")
            # A package names itself; under Hermes a plugin is one in `hermes_plugins`.
            words = words[2:] if words[0] == PLUGIN_PARENT else words[1:] if words[0] == folder else words
            for count in range(1, len(words) + 1):
                path = "/".join(words[:count])
                yield f"{path}.py"
                yield f"{path}/__init__.py"


def find_import_guards(tree: ast.Module) -> set[int]:
    """Find the ids of all nodes within a `try` that catches a failed import."""
    return {id(node) for guard in ast.walk(tree) if _is_import_guard(guard) for node in ast.walk(guard)}


def find_unused_nodes(tree: ast.Module) -> set[int]:
    """Find the ids of all nodes that only a type checker uses."""
    branches = (
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for statement in (
            node.body if _is_type_check(node.test) else node.orelse if _is_no_type_check(node.test) else ()
        )
    )
    return {id(node) for statement in branches for node in ast.walk(statement)}


def _is_type_check(test: ast.expr) -> bool:
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "TYPE_CHECKING"
        case ast.BoolOp(op=ast.And(), values=values):
            return any(map(_is_type_check, values))
    return False


def _is_no_type_check(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_type_check(test.operand)


def _is_import_guard(node: ast.AST) -> bool:
    if not isinstance(node, ast.Try):
        return False
    caught = " ".join(ast.unparse(handler.type) if handler.type else "Exception" for handler in node.handlers)
    return re.search(r"\b(ImportError|ModuleNotFoundError|Exception|BaseException)\b", caught) is not None


def find_missing_imports(
    folder: Path, entry: str, files: Mapping[str, bytes], places: Sequence[str]
) -> Iterator[MissingImport]:
    """Yield the imported packages that are in none of these places, each once, without those of guarded imports.

    If the code changes the search path, the computable places count; if a place is not computable, a package may be
    there.
    """
    own = {part for name in files for part in name.removesuffix(".py").split("/")} | {folder.name}
    told: set[str] = set()
    code = select_imports(folder.name, entry, files)
    added = [place for name, source in code.items() for place in find_extra_places(folder / name, source)]
    there = [*places, *(str(place) for place in added if place)]
    is_sure = all(place is not None and place.is_dir() for place in added)
    for name, source in code.items():
        tree = parse_python(source)
        guarded = find_import_guards(tree) | find_unused_nodes(tree) if tree else set()
        inner = _find_function_nodes(tree) if tree else set()
        for node in ast.walk(tree) if tree else ():
            for module in _tops_of(node):
                if id(node) not in guarded and module not in told and not _is_there(module, own, there):
                    told.add(module)
                    assert isinstance(node, ast.stmt)
                    place = SourceLocation(f"{label_of(folder.name)}/{name}", node.lineno, node.col_offset + 1)
                    yield MissingImport(place, module, is_sure and id(node) not in inner, is_sure)


def find_former_packages(folder: str, entry: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """List the imported packages that came with earlier versions of the gateway, without optional ones."""
    if not any(map(FORMER_IMPORT.search, files.values())):
        return ()
    found = {one.module for one in find_missing_imports(Path(folder), entry, files, ()) if one.is_sure}
    return tuple(sorted(found & FORMER_PACKAGES))


def find_extra_places(file: Path, source: bytes) -> Iterator[Path | None]:
    """Yield the places that the code adds to Python's search path; None for a place that only a run can show."""
    tree = parse_python(source) if b"sys.path" in source or b"addsitedir" in source else None
    nodes = [*ast.walk(tree)] if tree else []
    names = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        for value in _list_added_values(node):
            yield _read_path(value, file, names) if value else None


def _list_added_values(node: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the values that this node adds to `sys.path`; None if the source does not show them."""
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="insert"), args=[_, value])
            | ast.Call(func=ast.Attribute(attr="append" | "addsitedir"), args=[value, *_])
        ) if ast.unparse(node.func) in ("sys.path.insert", "sys.path.append", "site.addsitedir"):
            yield value
        case ast.Call(func=ast.Attribute(attr="extend", value=place), args=[values]) if _is_search_path(place):
            yield from _list_items(values)
        case ast.AugAssign(target=target, value=values) if _is_search_path(target):
            yield from _list_items(values)
        case ast.Assign(targets=targets, value=values) if any(map(_is_search_path, targets)):
            yield from _list_items(values)


def _is_search_path(node: ast.expr) -> bool:
    """Tell if this is `sys.path`, or a part of it: `sys.path[:0]`."""
    return ast.unparse(node.value if isinstance(node, ast.Subscript) else node) == "sys.path"


def _list_items(values: ast.expr) -> Iterator[ast.expr | None]:
    """Yield the items of a literal list, or of a sum of lists; the path's earlier contents add nothing."""
    match values:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _list_items(item.value) if isinstance(item, ast.Starred) else (item,)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from (*_list_items(left), *_list_items(right))
        case ast.Attribute() | ast.Subscript() if _is_search_path(values):
            return
        case _:
            yield None


def _read_path(node: ast.expr, file: Path, names: Mapping[str, ast.expr]) -> Path | None:
    """Compute the path in an expression with `__file__`, `os.path` and `pathlib`; None if that is not possible."""
    match node:
        case ast.Name(id="__file__"):
            return file
        case ast.Constant(value=str(text)):
            return Path(text)
        case ast.Name(id=name) if name in names:
            return _read_path(names[name], file, {other: value for other, value in names.items() if other != name})
        case ast.Attribute(value=inner, attr="parent"):
            found = _read_path(inner, file, names)
            return found and found.parent
        case ast.Subscript(value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(count))):
            found = _read_path(inner, file, names)
            return found.parents[count] if found and count < len(found.parents) else None
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _join_paths([left, right], file, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="resolve" | "absolute"), args=[]):
            found = _read_path(inner, file, names)
            return found and found.resolve()
        case ast.Call(func=ast.Attribute(value=inner, attr="joinpath"), args=args):
            return _join_paths([inner, *args], file, names)
        case ast.Call(func=called, args=[inner, *more]):
            return _read_path_call(ast.unparse(called).rpartition(".")[2], [inner, *more], file, names)
    return None


def _read_path_call(called: str, values: Sequence[ast.expr], file: Path, names: Mapping[str, ast.expr]) -> Path | None:
    found = _join_paths(values, file, names)
    if found is None or called in ("str", "Path", "fspath", "join"):
        return found
    return found.parent if called == "dirname" else found.resolve() if called in ("abspath", "realpath") else None


def _join_paths(parts: Sequence[ast.expr], file: Path, names: Mapping[str, ast.expr]) -> Path | None:
    found = [_read_path(part, file, names) for part in parts]
    return Path(*(one for one in found if one)) if all(found) else None


def _tops_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return (
        [node.module.partition(".")[0]] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
    )


def _find_function_nodes(tree: ast.Module) -> set[int]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {id(inner) for function in functions for inner in ast.walk(function)}


def _is_there(module: str, own: Collection[str], places: Sequence[str]) -> bool:
    served = {name.partition(".")[0] for name in NAMES} | {PLUGIN_PARENT}
    if module in own or module in served or module in sys.stdlib_module_names or HERMES_MODULES.match(module):
        return True
    return PathFinder.find_spec(module, list(places)) is not None
