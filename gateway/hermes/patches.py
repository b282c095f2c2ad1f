"""The patches that a hook or plugin makes to Hermes or Python, as its source shows them, and if it does more than that.

A patch of Hermes sets an attribute of one of its modules, classes or adapters, in any way, or searches for the
subclasses of a class. A patch of Python replaces a function or class by which a process reaches files, programs or the
network, or is a call that affects the whole process. In another process than Hermes's that changes nothing; a hook that
only works in this way is `without effect`. The search follows names through imports, assignments, loops, and the
arguments and results of the folder's own functions, without regard to their scopes: it is a guess, and it only changes
what people see.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.hermes.handler_source import Function, HandlerSource, find_nodes, has_answer
from gateway.hermes.imports import select_imports
from gateway.hermes.modules import NAMES
from gateway.hooks.manifests.manifest import HANDLER_FILE, Manifest, label_of
from gateway.yaml_source.tree import Finding, SourceLocation


def _read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PATCHES, IDLE = "patches", "idle"  # noted in a manifest: the patches, and that the hook does nothing else
PATCHED = re.compile(r"(?<!\w)(gateway|hermes_cli|tools|run_agent|hermes_\w+|model_tools|toolsets|agent)(\.|\Z)")
_MENTION = re.compile(rb"\b(gateway|hermes_\w+|tools|run_agent|model_tools|toolsets)\b")
# The modules of Python and of popular packages through which a process acts.
_PYTHON_MODULES = (
    r"(builtins|os|sys|io|subprocess|socket|shutil|pathlib|asyncio|multiprocessing|http|urllib|requests|httpx|aiohttp"
    r"|urllib3|websockets|openai|anthropic|resource|threading)"
)
PATCHED_PYTHON = re.compile(_PYTHON_MODULES + r"(\.|\Z)")
# Text that may set an attribute of a module or a class, or make a call that affects the whole process.
_ASSIGNED = re.compile(rb"(?<![\w.])(\.?(?:\w+\.)++)\w++ *+=(?!=)")
_MODULE_OR_CLASS = re.compile(rf"\b({_PYTHON_MODULES}|[A-Z]\w*)\.".encode())
_MENTION_OF_PYTHON = re.compile(
    rf"\bimport {_PYTHON_MODULES}[\w.]* as\b"
    r"|\b(addaudithook|meta_path|setrlimit|prlimit|settrace|setprofile|chroot|umask|setattr|mock|__subclasses__)\b".encode()
)
# Settings that a hook changes for itself: its output, and its search paths.
_OWN_OF_PYTHON = re.compile(r"os\.environ|sys\.(std\w+|path\w*|modules|argv|\w*hook|ps\d|dont_write_bytecode)\b")
_PROCESS_CALLS = frozenset(
    {
        *("sys.addaudithook", "sys.settrace", "sys.setprofile", "sys.meta_path.insert", "sys.meta_path.append"),
        *("threading.settrace", "threading.setprofile", "resource.setrlimit", "resource.prlimit"),
        *("os.chroot", "os.umask"),
    }
)
RUNNER = "gateway.run.GatewayRunner"
RUNNER_ARGUMENT = "gateway"  # names Hermes's runner among the arguments of a plugin's callback
MOST_READ = 128_000  # bytes of a folder's files that mention Hermes; reading more would block the gateway
MOST_ROUNDS = 5  # of following names; no code has a longer way

# Calls whose result is their argument, or a part of it.
_PASSES = frozenset({"list", "tuple", "set", "sorted", "iter", "next", "reversed", "type", "vars", "getmembers"})
_PASSING_METHODS = frozenset({"get", "values", "items", "pop", "copy", "__subclasses__", "getmembers"})
_IMPORTS = frozenset({"import_module", "__import__"})
_PATCHERS = frozenset({"patch", "wrap_function_wrapper", "patch_function_wrapper", "wrap_object", "resolve_path"})
_OBJECT_SEARCHES = frozenset({"get_objects", "get_referrers"})
# Calls without effect outside the process: reading values, and logging.
_HARMLESS = _read_words(
    """print getattr setattr delattr hasattr isinstance issubclass callable len str repr int float bool list tuple dict
    set frozenset sorted type vars dir id super iter next enumerate zip any all range max min format globals locals
    reversed map filter object staticmethod classmethod property Path wraps Lock"""
)
_HARMLESS_MODULES = _read_words(
    """asyncio datetime functools gc importlib inspect json logging os pathlib re sys threading time traceback types
    warnings"""
)
# A hook that imports nothing else reads its settings, computes, and has no effect outside.
_QUIET_MODULES = _HARMLESS_MODULES | _read_words(
    """__future__ collections contextlib copy dataclasses enum fnmatch hashlib io itertools math string tomllib typing
    unicodedata uuid weakref yaml"""
)
_LOGGERS = re.compile(r"_?(log|logger)\Z", re.IGNORECASE)
_HARMLESS_METHODS = _read_words(
    """append add extend update get items keys values pop setdefault copy join split strip format lower upper startswith
    endswith replace partition rpartition encode decode isoformat start exists acquire release __subclasses__
    __init__"""
)
_WRITING = frozenset({"open", "write", "write_text", "write_bytes", "writelines", "mkdir", "touch", "dump"})
# Functions of the modules above that do have an effect.
_ACTING = frozenset({"system", "popen", "kill", "execv", "spawnv", "remove", "unlink", "rmdir", "rename", "replace"})
# Registrations by which people or the model can call the plugin.
_OFFERS = frozenset({"register_", "register_command", "register_tool", "register_skill"})
_RUNS_TEXT = frozenset({"exec", "eval", "__import__"})
_STARTS_LATER = frozenset({"asyncio", "threading"})  # they call their arguments


class Patch(NamedTuple):
    """One patch: the patched name, and its place in the source."""

    place: SourceLocation
    name: str

    @property
    def finding(self) -> Finding:
        what = f"{self.name} is patched, which changes nothing outside this hook"
        return Finding(self.place, what, "the rest of the hook works", "warning")


class PatchReport(NamedTuple):
    """The patches of a folder. `acts`: it also does something else, or the source does not show that it does not."""

    patches: tuple[Patch, ...]
    acts: bool


def describe_patches(names: Sequence[str]) -> str:
    """Say why a hook that only patches another program is without effect."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"it patches {names[0]}{more}"


def make_patch_notes(names: Collection[str], *, acts: bool) -> dict[str, tuple[str, ...]]:
    """Return the patches as a manifest notes them."""
    return {**({PATCHES: (*names,)} if names else {}), **({} if acts else {IDLE: ()})}


def why_idle(manifest: Manifest, patches: Sequence[str] = (), remarks: Iterable[str] = ()) -> str:
    """Say why the hook has no effect here; "" if it acts. `patches` and `remarks` are those of the running hook."""
    if IDLE not in manifest.reading.noted:
        return ""
    found = manifest.reading.noted.get(PATCHES) or patches
    return describe_patches(found) if found else "; ".join(remarks)


def find_patches(folder: str, files: Mapping[str, bytes], entry: str, starts_only: bool = False) -> PatchReport:
    """Find the patches of a hook (its entry has `handle`) or a plugin (it has `register`).

    `starts_only`: Hermes calls it at the start alone. Its files are then its own log, and its calls act only if it
    imports more than `_QUIET_MODULES`.
    """
    if not any(map(_mentions_patched, files.values())):
        return PatchReport((), acts=True)
    code = select_imports(folder, entry, files) if len(files) > 1 else files
    read = {name: text for name, text in code.items() if name == entry or _mentions_patched(text)}
    if sum(map(len, read.values())) > MOST_READ:
        return PatchReport((), acts=True)
    source = HandlerSource(read)
    names = HermesNames(source, files)
    patchers = (names, PythonNames(source, files)) if any(map(_mentions_python, read.values())) else (names,)
    found: dict[str, Patch] = {}
    for file, tree in source.trees.items():
        for node in ast.walk(tree):
            for name in (name for patcher in patchers for name in patcher.patched_by(node)):
                place = SourceLocation(f"{label_of(folder)}/{file}", node.lineno, node.col_offset + 1)  # type: ignore[attr-defined]
                found.setdefault(name, Patch(place, name))
    if not found and not any(map(_MENTION.search, read.values())):
        return PatchReport((), acts=True)
    is_quiet = starts_only and all(_is_quiet(origin, files) for node in source.nodes for _, origin in _imported(node))
    return PatchReport(tuple(found.values()), bool(source.unreadable) or _acts(patchers, entry, starts_only, is_quiet))


def _is_quiet(origin: str, files: Iterable[str]) -> bool:
    """Return True for an import that reaches no person, machine or program."""
    top, own = origin.partition(".")[0], {name.partition("/")[0].removesuffix(".py") for name in files}
    return top in _QUIET_MODULES or top in own or PATCHED.match(origin) is not None


def _mentions_patched(source: bytes) -> bool:
    return _MENTION.search(source) is not None or _mentions_python(source)


def _mentions_python(source: bytes) -> bool:
    assigned = _ASSIGNED.finditer(source)
    return _MENTION_OF_PYTHON.search(source) is not None or any(_MODULE_OR_CLASS.search(one[1]) for one in assigned)


class HermesNames:
    """The names in a folder's source that mean something of Hermes, or of whatever else `patched` describes."""

    patched = PATCHED

    def __init__(self, source: HandlerSource, files: Iterable[str]) -> None:
        self.source = source
        own = {name.partition("/")[0].removesuffix(".py") for name in files}
        self._names: dict[str, str] = {}
        self._results: dict[str, str] = {}
        for node in source.nodes:
            for name, origin in _imported(node):
                if self.patched.match(origin) and origin.partition(".")[0] not in own:
                    self._names[name] = origin
        if "__init__.py" in source.trees and self.patched is PATCHED:
            self._names.update((one.arg, RUNNER) for one in self._arguments() if one.arg == RUNNER_ARGUMENT)
        for _ in range(MOST_ROUNDS):
            known = (dict(self._names), dict(self._results))
            for node in source.nodes:
                self._follow(node)
            if known == (self._names, self._results):
                break

    def of(self, node: ast.AST | None) -> str:
        """Return the name in Hermes of this expression's value; "" if it is not Hermes's."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, "")
            case ast.Attribute(value=inner, attr=name):
                base = self.of(inner)
                return f"{base}.{name}" if base else ""
            case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Constant(value=str(name))):
                return name if self.patched.match(name) else ""
            case ast.Tuple(elts=values) | ast.List(elts=values):
                return next(filter(None, map(self.of, values)), "")
            case ast.Subscript(value=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return self.of(inner)
            case ast.IfExp(body=first, orelse=second):
                return self.of(first) or self.of(second)
            case ast.BoolOp(values=values):
                return next(filter(None, map(self.of, values)), "")
            case ast.Call():
                return self._of_call(node)
        return ""

    def _of_call(self, call: ast.Call) -> str:
        name, arguments = call_name_of(call), call.args
        first = arguments[0] if arguments else None
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        if name in _IMPORTS or (name == "get" and ast.unparse(call.func) == "sys.modules.get"):
            return text if self.patched.match(text) else ""
        if name == "getattr" and len(arguments) > 1 and (base := self.of(first)):
            attribute = arguments[1]
            return f"{base}.{attribute.value!s}" if isinstance(attribute, ast.Constant) else base
        if name in _PASSES and first is not None:
            return self.of(first)
        if isinstance(call.func, ast.Attribute) and name in _PASSING_METHODS:
            return self.of(call.func.value) or (self.of(first) if name == "getmembers" else "")
        return self._results.get(name, "")

    def patched_by(self, node: ast.AST) -> Iterator[str]:
        """Yield the names of Hermes that this statement or expression patches."""
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and (base := self.of(target.value)):
                yield f"{base}.{target.attr}"
            elif isinstance(target, ast.Subscript) and (base := self.of(target)):
                yield base
        if not isinstance(node, ast.Call):
            return
        name, first = call_name_of(node), node.args[0] if node.args else None
        if name in ("setattr", "delattr") and (base := self.of(first)):
            attribute = node.args[1] if len(node.args) > 1 else None
            yield f"{base}.{attribute.value!s}" if isinstance(attribute, ast.Constant) else base
        elif name == "__subclasses__" and isinstance(node.func, ast.Attribute) and (base := self.of(node.func.value)):
            yield f"the subclasses of {base}"
        elif name in _OBJECT_SEARCHES and isinstance(node.func, ast.Attribute):
            yield f"what gc.{name} finds"
        elif name in _PATCHERS and isinstance(first, ast.Constant) and self.patched.match(str(first.value)):
            yield str(first.value)
        elif name == "object" and isinstance(node.func, ast.Attribute) and (base := self.of(first)):
            yield base

    def _follow(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind(target, value)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                results = (self.of(inner.value) for inner in find_nodes(node) if isinstance(inner, ast.Return))
                self._results.update((name, one) for one in results if one)
            case ast.Call():
                self._bind_arguments(node)

    def _bind(self, target: ast.AST, value: ast.AST | None) -> None:
        if origin := self.of(value):
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    self._names.setdefault(one.id, origin)

    def _bind_arguments(self, call: ast.Call) -> None:
        for function in self.source.functions.get(call_name_of(call), ()):
            names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
            skipped = 1 if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute) else 0
            given = [*zip(names[skipped:], call.args, strict=False)]
            given += [(one.arg, one.value) for one in call.keywords if one.arg]
            self._names.update((name, origin) for name, value in given if (origin := self.of(value)))

    def _arguments(self) -> Iterator[ast.arg]:
        return (node for node in self.source.nodes if isinstance(node, ast.arg))


class PythonNames(HermesNames):
    """The names in a folder's source that mean something of Python.

    A setting that a hook changes for itself is not a patch.
    """

    patched = PATCHED_PYTHON

    def patched_by(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Call) and (called := self.of(node.func)) in _PROCESS_CALLS:
            yield f"the process by {called}"
        if not isinstance(getattr(node, "value", None), ast.Constant | ast.JoinedStr | ast.List | ast.Dict | ast.Tuple):
            yield from (name for name in super().patched_by(node) if not _OWN_OF_PYTHON.match(name))


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with its meaning."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _targets(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target


def call_name_of(call: ast.Call) -> str:
    """Return the last word of the called name."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _acts(patchers: Sequence[HermesNames], entry: str, starts_only: bool, is_quiet: bool) -> bool:
    """Tell if the functions that Hermes calls do more than patch, as far as the source shows."""
    source = patchers[0].source
    waiting = _find_roots(source, entry)
    if waiting is None or (entry != HANDLER_FILE and any(map(has_answer, waiting))):
        return True
    seen: set[int] = set()
    while waiting:
        function = waiting.pop()
        if id(function) not in seen:
            seen.add(id(function))
            for call in find_nodes(function):
                if isinstance(call, ast.Call):
                    own = _own_functions_of(call, source)
                    if own is None and not _is_harmless(call, patchers, starts_only, is_quiet):
                        return True
                    waiting += [*(own or ()), *_called_later(call, source)]
    return False


def _word_of(node: ast.AST) -> object:
    """Return the name of an attribute, or the value of a text."""
    return node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None


def _own_functions_of(call: ast.Call, source: HandlerSource) -> list[Function] | None:
    """Return the folder's functions that this call means; None if it calls none of them."""
    called = call_name_of(call)
    return source.functions.get("__init__", []) if called in source.classes else source.functions.get(called)


def _called_later(call: ast.Call, source: HandlerSource) -> Iterator[Function]:
    if _root_of(call) in _STARTS_LATER:
        for value in (*call.args, *(one.value for one in call.keywords)):
            if isinstance(value, ast.Name | ast.Attribute):
                yield from source.functions.get(value.id if isinstance(value, ast.Name) else value.attr, ())


def _find_roots(source: HandlerSource, entry: str) -> list[Function] | None:
    """Find the functions that Hermes calls at events; None if the source does not show one."""
    if entry == HANDLER_FILE:
        return source.find_functions("handle")
    if any(_word_of(node) in _OFFERS for node in source.nodes):
        return None  # by its name, or by a computed one: `f"register_{kind}"`
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    roots: list[Function] = []
    for call in calls:
        if call_name_of(call) in ("register_hook", "subscribe"):
            for callback in (*call.args[1:], *(one.value for one in call.keywords)):
                match callback:
                    case ast.Lambda():
                        roots.append(callback)
                    case ast.Name(id=name) | ast.Attribute(attr=name) if name in source.functions:
                        roots += source.functions[name]
                    case _:
                        return None
    return roots


def _is_harmless(call: ast.Call, patchers: Sequence[HermesNames], starts_only: bool, is_quiet: bool) -> bool:
    name, origin = call_name_of(call), patchers[0].of(call.func)
    if any(name for names in patchers for name in names.patched_by(call)):
        return True
    if name in _WRITING:
        return starts_only
    if origin:  # a name without effect, or one of Hermes's that is served here
        module, _, attribute = origin.rpartition(".")
        return attribute not in NAMES.get(module, ())
    if isinstance(call.func, ast.Name):
        return name in _HARMLESS or (is_quiet and name not in _RUNS_TEXT)
    root = _root_of(call)
    if _LOGGERS.match(root) or root in _HARMLESS_MODULES:
        return name not in _ACTING
    return is_quiet or name in _HARMLESS_METHODS


def _root_of(call: ast.Call) -> str:
    """Return the first word of the called name."""
    root: ast.AST = call
    while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return root.id if isinstance(root, ast.Name) else ""
