"""The imports of Hermes's modules in a hook's source: those that work here, and those that do not.

A running hook reports the same about its real imports; this works before it runs, and for a home that was never
started.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from gateway.hermes.imports import (
    HERMES_MODULES,
    find_extra_places,
    find_import_guards,
    find_unused_nodes,
    select_imports,
)
from gateway.hermes.modules import HERMES_OWN_MODULES, HOLLOW_MODULES, NAMES
from gateway.hermes.written_for import parse_python
from gateway.hooks.manifests.manifest import label_of
from gateway.worker.boot import PATCHED_MODULES
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

OWN_HOME = "gateway.hooks"  # our own, not Hermes's
# Packages of this gateway that Hermes's gateway does not have.
_OWN_PACKAGES = frozenset(f"gateway.{name}" for name in ("agent", "cli", "daemon", "dispatcher", "engine", "testing"))
ImportSupport = Literal["hollow", "missing"]


class UnsupportedImport(msgspec.Struct, frozen=True):
    """One unsupported import: its place in the source, and if it fails or only has no effect."""

    place: SourceLocation
    name: str
    verdict: ImportSupport
    is_caught: bool = False
    module: str = ""  # the module that it is imported from
    users: tuple[str, ...] = ()  # the functions that use it

    @property
    def is_ours(self) -> bool:
        """Tell if this gateway has such a module, and Hermes's does not."""
        package = ".".join(self.name.split(".")[:2])
        return package in _OWN_PACKAGES

    @property
    def finding(self) -> Finding:
        if self.verdict == "hollow":
            what, remedy = f"{self.name} is inside Hermes: patching it has no effect here", "the rest of the hook works"
        elif self.is_ours:
            what, remedy = f"{self.name} is the gateway's own and not there for hooks", f"import from {OWN_HOME} alone"
        elif self.is_caught:
            what, remedy = f"{self.name} is inside Hermes and not here", "the hook catches that"
            if self.users:
                verb = "goes" if len(self.users) == 1 else "go"
                remedy += f", and {', '.join(self.users)} {verb} on without it: look whether that still stops anything"
        else:
            what, remedy = f"{self.name} is inside Hermes: importing it fails here", "catch ImportError around it"
        return Finding(self.place, what, remedy, "warning")


def find_unsupported_imports(
    folder: Path, entry: str, files: Mapping[str, bytes], patches: Collection[str] = ()
) -> Iterator[UnsupportedImport]:
    """Yield the unsupported imports, in the order of files and lines.

    Files that are unreadable or not imported have none. `patches`: the names of Hermes that the hook patches; their
    modules exist here, without effect.
    """
    if not any(HERMES_MENTION.search(source) for source in files.values()):
        return
    own = {name.partition("/")[0].removesuffix(".py") for name in files}
    code = select_imports(folder.name, entry, files)
    added = {str(place) for name, text in code.items() for place in find_extra_places(folder / name, text) if place}
    own |= {top for top in HERMES_OWN_MODULES - {"gateway"} if added and PathFinder.find_spec(top, [*added])}
    for name, source in sorted(code.items()):
        if HERMES_MENTION.search(source) and (tree := parse_python(source)):
            for found in _find_in_tree(tree, f"{label_of(folder.name)}/{name}", own):
                is_patched = any(f"{patch}.".startswith(f"{found.module}.") for patch in patches)
                yield replace(found, verdict="hollow") if is_patched else found


HERMES_MENTION = re.compile(rb"\b(agent|gateway|hermes_\w+|tools|run_agent|model_tools|toolsets)\b")


def _find_in_tree(tree: ast.Module, file: str, own: Iterable[str]) -> Iterator[UnsupportedImport]:
    caught, unused = find_import_guards(tree), find_unused_nodes(tree)
    users = _find_users(tree)
    for node in ast.walk(tree):
        for name, verdict in _imports_of(node) if id(node) not in unused else ():
            if name.partition(".")[0] not in own:
                assert isinstance(node, ast.Import | ast.ImportFrom)
                place = SourceLocation(file, node.lineno, node.col_offset + 1)
                module = name if isinstance(node, ast.Import) else node.module or ""
                bound = (one.asname or one.name.partition(".")[0] for one in node.names if name.endswith(one.name))
                using = dict.fromkeys(user for one in bound for user in users.get(one, ()))
                yield UnsupportedImport(place, name, verdict, id(node) in caught, module, tuple(using))


def _find_users(tree: ast.Module) -> dict[str, list[str]]:
    """Return, for each name, the functions that read it."""
    found: dict[str, list[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    found.setdefault(node.id, []).append(function.name)
    return found


def check_own_imports(folder: Path, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield the names that a hook imports from `gateway.hooks` and that do not exist there."""
    for file, source in sorted(files.items()):
        tree = parse_python(source) if OWN_HOME.encode() in source else None
        caught = find_import_guards(tree) if tree else frozenset()
        for node in ast.walk(tree) if tree else ():
            if not isinstance(node, ast.ImportFrom) or node.module != OWN_HOME or id(node) in caught:
                continue
            for alias in node.names:
                if alias.name not in (*NAMES[OWN_HOME], "*"):
                    place = SourceLocation(f"{label_of(folder.name)}/{file}", alias.lineno, alias.col_offset + 1)
                    near = get_close_matches(alias.name, NAMES[OWN_HOME], 1)
                    remedy = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(NAMES[OWN_HOME])}"
                    what = f"{OWN_HOME} has no `{to_printable(alias.name)}`: importing it fails"
                    yield Finding(place, what, remedy, "warning")


def _imports_of(node: ast.AST) -> Iterator[tuple[str, ImportSupport]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if verdict := _module_support(alias.name):
                yield alias.name, verdict
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from _names_of(node.module, [alias.name for alias in node.names])


def _names_of(module: str, names: list[str]) -> Iterator[tuple[str, ImportSupport]]:
    verdict = _module_support(module)
    served = NAMES[module] if module in NAMES and module != OWN_HOME else None
    for name in names:
        whole = f"{module}.{name}"
        if verdict:
            yield whole, verdict
        elif module in ("agent", "gateway", "gateway.platforms", "hermes_cli", "tools"):
            if inner := _module_support(whole):
                yield whole, inner
        elif served is not None and name not in served and name != "*":
            yield whole, "hollow" if module in HOLLOW_MODULES else "missing"


def _module_support(module: str) -> ImportSupport | None:
    if module in NAMES or module in ("gateway", "gateway.events") or not HERMES_MODULES.match(module):
        return None
    return "hollow" if module.startswith(PATCHED_MODULES) else "missing"
