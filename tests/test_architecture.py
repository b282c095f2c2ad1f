"""The house rules that no linter knows, and the floors. Each rule is shown a sin first, so that it is known to see."""

import ast
import io
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

import pytest

from gateway.adapters import ADAPTERS
from gateway.adapters.shared.folder import load_settings_schema

ROOT = Path(__file__).parent.parent
HOOK_FOLDERS = ("hooks_builtin/", "sample_hooks/")
BUILT = ("gateway/", *HOOK_FOLDERS)

MOST_LINES = 600
FEWEST_LINES = 40
MOST_FOLDERS = 3
MOST_LINES_A_FUNCTION = 60
MOST_METHODS = 15
MOST_ARGUMENTS = 7
EMPTY_FILE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "core"}
EMPTY_CLASS_NAMES = re.compile(r"(Manager|Helper|Utils?|Impl|Mixin)$|^Base[A-Z]")
OUTCOME_NAMES = {"Deny", "End", "Retry"}
PLATFORM_NAMES = re.compile("|".join(ADAPTERS), re.IGNORECASE)
HERMES_SHAPES = "gateway/hermes/shim/"  # has Hermes's own list of networks, as handlers import it
# Who signs what it sends may be a company that has a network too; that it has one counts for nothing there.
SENDERS_OF_WEBHOOKS = ("gateway/config/webhooks.py", "gateway/web/webhooks/senders.py")
HERMES_NAMES = "gateway/hermes/modules.py"  # the names that handlers import, one of which is of a network
KNOW_PLATFORMS = ("gateway/adapters/", HERMES_SHAPES, HERMES_NAMES, *SENDERS_OF_WEBHOOKS)

# Which library for the outside world is known to which modules, by an import or by its name as text.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "aiohttp": ("gateway/agent/libraries.py", "gateway/hooks/http_transport.py"),
    "anthropic": (),
    "httpcore": ("gateway/agent/models/endpoint_client.py",),
    "httpx": ("gateway/adapters/telegram/connection.py",),  # whose library has it make a context for each client
    "mcp": ("gateway/agent/libraries.py",),
    "nats": ("gateway/cluster/nats/", "gateway/hooks/nats_transport.py", "gateway/agent/libraries.py"),
    "httpx2": ("gateway/agent/libraries.py",),
    "openai": (),
    "pyromark": ("gateway/messages/markdown.py",),
    "PIL": ("gateway/agent/libraries.py", "gateway/parser/media_handler.py"),
    "rich": ("gateway/cli/table.py", "gateway/cli/progress.py"),
    "pypdfium2": ("gateway/agent/libraries.py", "gateway/parser/media_handler.py"),
}
for network, spec in load_settings_schema().platforms.items():
    for library in spec.libraries:
        LIBRARIES[library] = (*LIBRARIES.get(library, ()), f"gateway/adapters/{network}/")

# Classes that do more than fifteen things, and why they are one thing all the same.
CROWDED = {
    ("gateway/engine/interface.py", "Engine"): "the journal's contract",
    ("gateway/cluster/nats/engine.py", "NatsEngine"): "fills the contract",
    ("gateway/testing/networks/wire.py", "Wire"): "all that people and networks can do to an adapter",
}
# Files (or folders of files) that are short, and why they stand by themselves.
SHORT = {
    "gateway/adapters/slack/emoji.py": "a table",
    "gateway/*/answers.py": "a room's answers to verbs are found by this name",
    "gateway/*/verbs.py": "a room's verbs are found by this name",
    "gateway/control/params.py": "the socket and the page say what a verb takes",
    "gateway/daemon/verb_activity.py": "refusals are written before any verb is built",
    "gateway/daemon/verb_table.py": "rows without what answers them",
    "gateway/adapters/*/setup.py": "its network's row of `setup`",
    "gateway/adapters/shared/buttons.py": "two networks have it, the third has buttons of another kind",
    "gateway/adapters/shared/markdown_table.py": "two networks have it, the third shows tables by itself",
    "gateway/cli/hooks/control.py": "a file is a verb that one types",
    "gateway/cli/disk_room.py": "the gateway that runs and each command say it, and `--help` does not load it",
    "gateway/cli/disconnect.py": "a file is a verb that one types",
    "gateway/cli/open.py": "a file is a verb that one types",
    "gateway/cli/reload.py": "a file is a verb that one types",
    "gateway/backup/sqlite_copy.py": "a program, whose process reaches two folders",
    "gateway/transcript.py": "the name that programs import the conversation by",
    "gateway/late_imports.py": "models, hooks and networks load by it, and neither knows the other",
    "gateway/installer/package_installer.py": "a program, run by the Python that has pip",
    "gateway/testing/networks/plugin.py": "what pytest loads by its name",
    "gateway/testing/plugin.py": "what pytest loads by its name",
    "gateway/records/stores.py": "hooks, people's switches and skills keep small values, and none knows the others",
    "gateway/records/own_turns.py": "traces and figures ask it, and neither knows the other",
    "gateway/records/turn_ends.py": "jobs and hooks wait by it, and neither knows the other",
    "gateway/hooks/manifests/requirement.py": "plugins and commands read packages too, and no manifest",
    "gateway/hermes/shim/*": "each stands in for one module of Hermes",
}
# All imports inside functions: where, what, and why it is worth the surprise.
IMPORTED_LATE = {
    ("gateway/cli/__init__.py", "gateway"): "`--help`, and what goes well, need nothing of how errors are shown",
    ("gateway/cli/chat.py", "gateway"): "only whoever types needs the line editor",
    ("gateway/cli/output.py", "gateway"): "neither the daemon nor whoever wants an object needs tables and bars",
    ("gateway/cli/platform.py", "gateway"): "`status` shows networks as it does, and need not know which there are",
    ("gateway/cli/status.py", "gateway"): "a gateway that runs is asked how it is without what is known of upgrades",
    ("gateway/adapters/shared/adapter_finder.py", "importlib"): "the metadata of packages costs each start 10 ms",
    ("gateway/backup/shared_journal.py", "gateway"): "the library of NATS is an extra",
    ("gateway/cluster/journal_copy.py", "gateway"): "likewise",
    ("gateway/daemon/cluster_table.py", "gateway"): "a gateway whose journal is in its home has no other beside it",
    ("gateway/engine/journal_clock.py", "ctypes"): "only where a clock was set forward is the kernel asked",
    ("gateway/config/checks.py", "zoneinfo"): "six modules, and few name a time zone",
    ("gateway/usage/totals.py", "zoneinfo"): "likewise",
    ("gateway/jobs/job.py", "zoneinfo"): "likewise",
    ("gateway/cli/chat_screen.py", "gateway"): "Markdown is for a terminal with colours, and a pipe does without",
    ("gateway/web/http_request.py", "email"): "nine modules for one date, which an idle gateway does without",
    ("gateway/daemon/groups/hooks.py", "gateway"): "traces are sent where a collector is named, and hardly one is",
    ("gateway/traces/trace_sender.py", "gateway"): "the library of traces is an extra",
}
# Who else loads a module by its name, and why.
LOADED_BY_NAME = {
    "gateway/cli/program.py": "the one command that was typed, and the one verb of it",
    "gateway/adapters/shared/kit.py": "what an adapter of somebody else's imports of the kit",
    "gateway/adapters/shared/adapter_loading.py": "what is wanted of a chat network",
    "gateway/late_imports.py": "libraries and networks, in one thread at a time",
    "gateway/hooks/manifests/requirement.py": "the library for versions, for the first hook that needs a package",
    "gateway/testing/warm_process.py": "the command line, which is a floor above, as Python itself runs it",
    "gateway/testing/__init__.py": "what a test imports of it; pytest loads the package in every run",
    "gateway/worker/boot.py": "the part that this process is to play",
    "gateway/hermes/modules.py": "a name of Hermes's, for the handler that asks for it",
    "gateway/worker/fork_server.py": "what handlers import most, before they are forked",
    "gateway/hermes/dialects.py": "the reader of lists of packages, for the first hook that lacks one",
    "gateway/hermes/plugin/plugin.py": "a plugin that is a package, by the name of its entry point",
    "gateway/worker/worker.py": "the loader of plugins: the core of the worker knows nothing of Hermes",
}
FOR_HANDLERS = {"gateway.hooks", "gateway.hooks.contexts"}
FOR_HOOK_SERVERS = {*FOR_HANDLERS, "gateway.hooks.server"}


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the top."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of it, walked once for all rules."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def comments(self) -> dict[int, str]:
        """What each line says behind its code, less the words to the linter."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        said = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        return {line: re.sub(r"noqa(: [A-Z0-9, ]+)?( - )?", "", text).strip() for line, text in said.items()}

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))


Rule = Callable[[Source], Iterator[str]]


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports, as far as their names go."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module]
    return []


def is_under(path: str, places: tuple[str, ...]) -> bool:
    return path.startswith(places)


def long_files(source: Source) -> Iterator[str]:
    if (count := len(source.text.splitlines())) > MOST_LINES:
        yield f"{source.path}: {count} lines; split it by noun"


def short_files(source: Source) -> Iterator[str]:
    """Whoever opens a file wants to find something in it. A package's face and an entry point are free."""
    is_face = Path(source.path).stem.startswith("__")
    if (count := len(source.text.splitlines())) < FEWEST_LINES and not is_face and not reason_to_be_short(source.path):
        yield f"{source.path}: {count} lines; it belongs to a neighbour, or SHORT says why not"


def reason_to_be_short(path: str) -> str:
    return next((reason for place, reason in SHORT.items() if fnmatch(path, place)), "")


def deep_folders(source: Source) -> Iterator[str]:
    if len(Path(source.path).parents) - 1 > MOST_FOLDERS:
        yield f"{source.path}: more than {MOST_FOLDERS} folders deep"


def long_functions(source: Source) -> Iterator[str]:
    for node in source.functions():
        if (count := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_A_FUNCTION:
            yield f"{source.path}:{node.lineno}: {node.name} has {count} lines"


def crowded_classes(source: Source) -> Iterator[str]:
    for node in source.classes():
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        count = sum(map(is_verb, methods))
        if count > MOST_METHODS and (source.path, node.name) not in CROWDED:
            yield f"{source.path}:{node.lineno}: {node.name} has {count} methods"
        for method in methods:
            given = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs][1:]
            if method.name == "__init__" and len(given) > MOST_ARGUMENTS:
                yield f"{source.path}:{method.lineno}: {node.name} wants {len(given)} arguments"


def is_verb(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A property is a fact, and what Python calls by itself is grammar; all else is something the class does."""
    facts = {"property", "cached_property", "setter"}
    decorated = {ast.unparse(decorator).split(".")[-1] for decorator in method.decorator_list}
    return not (decorated & facts) and not (method.name.startswith("__") and method.name.endswith("__"))


def empty_names(source: Source) -> Iterator[str]:
    if Path(source.path).stem in EMPTY_FILE_NAMES:
        yield f"{source.path}: a name that says nothing"
    for node in source.classes():
        if EMPTY_CLASS_NAMES.search(node.name):
            yield f"{source.path}:{node.lineno}: {node.name} is named after how, not what"


def silent_modules(source: Source) -> Iterator[str]:
    if source.tree.body and not ast.get_docstring(source.tree):
        yield f"{source.path}: does not say what it is and what it promises"


def late_imports(source: Source) -> Iterator[str]:
    for function in source.functions():
        for node in ast.walk(function):
            for name in imported(node):
                if (source.path, name.split(".")[0]) not in IMPORTED_LATE:
                    yield f"{source.path}: {function.name} imports {name}; import at the top"
    for call in source.calls():
        if ast.unparse(call.func).endswith("import_module") and source.path not in LOADED_BY_NAME:
            yield f"{source.path}:{call.lineno}: loads a module by name, and LOADED_BY_NAME does not say why"


def strange_libraries(source: Source) -> Iterator[str]:
    """An import; and the name as a text, where modules are loaded by name, for that is how one goes around imports."""
    texts = "import_module" in source.text
    for node in source.nodes:
        for name in [*imported(node), *(text(node) if texts else ())]:
            if not is_under(source.path, LIBRARIES.get(name.split(".")[0], ("",))):
                yield f"{source.path}: loads {name}, which is known elsewhere"


def text(node: ast.AST) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def platform_names(source: Source) -> Iterator[str]:
    """In code; what is explained in a comment or a docstring may name whom it likes."""
    explained = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes if not is_under(source.path, KNOW_PLATFORMS) else ():
        words = " ".join(value for _, value in ast.iter_fields(node) if isinstance(value, str))
        if PLATFORM_NAMES.search(words) and id(node) not in explained:
            yield f"{source.path}:{getattr(node, 'lineno', 0)}: the core knows a chat network: {words[:60]}"


def private_doors(source: Source) -> Iterator[str]:
    """A hook comes in by the visitors' door: of ours it may import the hook API alone."""
    if is_under(source.path, HOOK_FOLDERS):
        allowed = FOR_HANDLERS if source.path.endswith("handler.py") else FOR_HOOK_SERVERS
        for node in source.nodes:
            for name in imported(node):
                if name.split(".")[0] in ("gateway", "hooks_builtin") and name not in allowed:
                    yield f"{source.path}: a hook may not import {name}"


def unexplained_catches(source: Source) -> Iterator[str]:
    """Whoever catches everything says why, unless all that is caught goes on, as it is or as an error of ours."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "BaseException"
            goes_on = isinstance(node.body[-1], ast.Raise)
            near = range(node.lineno - 1, node.body[0].lineno + 1)
            reason = any(source.comments.get(line) for line in near)
            if re.search(r"\b(Base)?Exception\b", caught) and not goes_on and not reason:
                yield f"{source.path}:{node.lineno}: except {caught} without a reason"


def shared_state(source: Source) -> Iterator[str]:
    """What a module holds is constant; what changes belongs to an object that somebody passes on."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict | ast.List | ast.Set):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and not target.id.strip("_").isupper() and target.id != "__all__":
                    yield f"{source.path}:{node.lineno}: {target.id} is mutable and everybody's"
    for inner in source.nodes:
        if isinstance(inner, ast.Global):
            yield f"{source.path}:{inner.lineno}: global {', '.join(inner.names)}"


def guessed_attributes(source: Source) -> Iterator[str]:
    for call in source.calls():
        if ast.unparse(call.func) in ("getattr", "hasattr") and ast.unparse(call.args[0]) == "self":
            yield f"{source.path}:{call.lineno}: an object knows what it has"


def own_meanings(source: Source) -> Iterator[str]:
    """What an outcome means stands in `events/outcomes.py`; the collector of outcomes makes one of several."""
    if source.path.startswith("gateway/events/") or source.path == "gateway/hooks/outcome_collector.py":
        return
    for node in source.nodes:
        asked = node.args[1] if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" else None
        asked = node.cls if isinstance(node, ast.MatchClass) else asked
        if asked and OUTCOME_NAMES & {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}:
            yield f"{source.path}:{asked.lineno}: gateway.events.outcomes says what a {ast.unparse(asked)} means"


def loose_ends(source: Source) -> Iterator[str]:
    for line, text in source.comments.items():
        if re.match(r"(TODO|FIXME|XXX|HACK)\b", text) or re.fullmatch(r"[-=*#~]{3,}.*", text):
            yield f"{source.path}:{line}: {text}"


RULES: list[tuple[Rule, tuple[str, ...], str, str]] = [
    (long_files, (*BUILT, "tests/", "bench/"), "gateway/a.py", "x = 1\n" * 601),
    (short_files, ("gateway/",), "gateway/a.py", '"""Little."""\nx = 1\n'),
    (deep_folders, ("gateway/",), "gateway/a/b/c/d.py", ""),
    (long_functions, (*BUILT, "tests/", "bench/"), "gateway/a.py", "def f():\n" + "    x = 1\n" * 60),
    (crowded_classes, BUILT, "gateway/a.py", "class A:\n" + "".join(f"  def m{i}(self): ...\n" for i in range(16))),
    (crowded_classes, BUILT, "gateway/a.py", "class A:\n  def __init__(self, a, b, c, d, *, e, f, g, h): ...\n"),
    (empty_names, (*BUILT, "tests/", "bench/"), "gateway/engine/utils.py", ""),
    (empty_names, (*BUILT, "tests/", "bench/"), "gateway/a.py", "class LaneManager: ...\n"),
    (silent_modules, ("gateway/", "hooks_builtin/", "tests/", "bench/"), "gateway/a.py", "x = 1\n"),
    (late_imports, ("gateway/",), "gateway/a.py", "def f():\n    import json\n"),
    (late_imports, ("gateway/",), "gateway/a.py", "importlib.import_module(name)\n"),
    (strange_libraries, ("gateway/", "hooks_builtin/"), "gateway/lanes/a.py", "import telegram.ext\n"),
    (strange_libraries, ("gateway/", "hooks_builtin/"), "gateway/adapters/slack.py", "from discord import Client\n"),
    (strange_libraries, ("gateway/", "hooks_builtin/"), "gateway/a.py", "x = import_module('openai.types')\n"),
    (platform_names, ("gateway/",), "gateway/outbox.py", "def send_to_telegram(): ...\n"),
    (private_doors, HOOK_FOLDERS, "sample_hooks/a/handler.py", "from gateway.errors import HookError\n"),
    (private_doors, HOOK_FOLDERS, "hooks_builtin/a/handler.py", "import gateway.hooks.server\n"),
    (unexplained_catches, BUILT, "gateway/a.py", "try: ...\nexcept Exception:  # noqa: BLE001\n    x = 1\n"),
    (unexplained_catches, BUILT, "gateway/a.py", "try: ...\nexcept (OSError, BaseException) as e:\n    print(e)\n"),
    (shared_state, BUILT, "gateway/a.py", "seen: dict[str, int] = {}\n"),
    (shared_state, BUILT, "gateway/a.py", "def f():\n    global count\n    count = 1\n"),
    (guessed_attributes, BUILT, "gateway/a.py", "class A:\n  def f(self): return getattr(self, 'x', None)\n"),
    (own_meanings, ("gateway/",), "gateway/a.py", "if isinstance(event.outcome, Deny | End): ...\n"),
    (own_meanings, ("gateway/",), "gateway/a.py", "match event.outcome:\n  case Retry(message=text): ...\n"),
    (loose_ends, (*BUILT, "tests/", "bench/"), "gateway/a.py", "# TO" + "DO: later\n"),
    (loose_ends, (*BUILT, "tests/", "bench/"), "gateway/a.py", "# ------ section\n"),
]


@cache
def house() -> list[Source]:
    files = [path for place in (*BUILT, "tests/", "bench/") for path in sorted((ROOT / place).rglob("*.py"))]
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in files]


@pytest.mark.parametrize(("rule", "path", "sin"), [(rule, path, sin) for rule, _, path, sin in RULES])
def test_the_rule_sees_the_sin(rule: Rule, path: str, sin: str) -> None:
    assert list(rule(Source(path, sin)))


@pytest.mark.parametrize(("rule", "where"), {rule: where for rule, where, _, _ in RULES}.items())
def test_the_house_keeps_the_rule(rule: Rule, where: tuple[str, ...]) -> None:
    sources = [source for source in house() if is_under(source.path, where)]
    findings = [finding for source in sources for finding in rule(source)]
    assert not findings, "\n".join(["", *findings])


def test_every_exception_to_a_rule_is_still_needed() -> None:
    """A table of excuses that outlives its sins hides the next one."""
    by_path = {source.path: source for source in house()}
    for path, name in IMPORTED_LATE:
        late = {
            name for function in by_path[path].functions() for node in ast.walk(function) for name in imported(node)
        }
        assert name in {module.split(".")[0] for module in late}, path
    for path, crowded in CROWDED:
        assert crowded in {node.name for node in by_path[path].classes()}, path
    for place in SHORT:
        there = [source for path, source in by_path.items() if fnmatch(path, place)]
        assert any(len(source.text.splitlines()) < FEWEST_LINES for source in there), place
    for path in LOADED_BY_NAME:
        assert "import_module" in by_path[path].text, path


def test_imports_look_down_and_never_in_a_circle() -> None:
    """The contracts in pyproject.toml: floors, neighbours, cycles, adapters, libraries."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# A line for each contract in pyproject.toml that breaks it.
SINS_OF_IMPORTS = {
    "gateway/messages/roles.py": "from gateway.daemon import parts",  # the first two: up, and in a circle
    "gateway/hooks/registry.py": "from gateway.hooks.folders import calls",
    "gateway/adapters/slack/emoji.py": "from gateway.adapters.discord import settings",
    "gateway/agent/ports.py": "from gateway.records import records",
    "gateway/cli/stop.py": "from gateway.web.verbs import VERBS",
    "gateway/lanes/context.py": "from gateway.cluster import nodes",
    "gateway/questions/rights.py": "from gateway.hermes import sources",
}


def test_each_contract_sees_its_sin(tmp_path: Path) -> None:
    for package in ("gateway", "hooks_builtin"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, sin in SINS_OF_IMPORTS.items():
        source = tmp_path / path
        source.write_text(f"{source.read_text('utf-8')}\n{sin}\n", "utf-8")
    told = (ROOT / "pyproject.toml").read_text("utf-8")
    (tmp_path / "pyproject.toml").write_text(told, "utf-8")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    contracts = [one["name"] for one in tomllib.loads(told)["tool"]["importlinter"]["contracts"]]
    assert [name for name in contracts if f"{name} BROKEN" not in done.stdout] == []
