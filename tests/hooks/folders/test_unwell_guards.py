"""A guard that is not well is shut: its operations are denied, and its pending events are kept, in every state.

Each state is tried on a hook of its own, beside all others: while the gateway runs, and through a start. The hooks
never allow anything, so that a call which nobody denies has gone past a guard.
"""

import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.config.settings import HooksSettings
from gateway.daemon.dialects import make_folder_source
from gateway.events import Deny
from gateway.hermes.config import HermesConfig
from gateway.hermes.sources import ShellHookSource, make_plugin_source
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.kept_hooks import REGISTRATIONS_FILE
from gateway.hooks.places.sources import Source
from gateway.hooks.services import HookPorts
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.turn_marks import ToolTimes
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.workshop import Home, hook_of
from tests.hooks.wires.workshop import SETTINGS
from tests.spine import until

pytestmark = pytest.mark.process

MANIFEST = """
intercepts: [tool:before]
events: [my:thing]
when: {tool: "%s"}
on_error: deny
delivery: durable
timeout: 3s
"""
HANDLER = """
import json, os, pathlib, time
from gateway.hooks import Deny
def handle(event_type, context):
    if event_type == "tool:before":
        raise Deny("not this")
    file = pathlib.Path(os.environ["HERMES_HOME"]) / ("told-" + context["tool"])
    with file.open("a") as told:
        told.write(json.dumps(context["n"]) + "\\n")
"""
ALLOWS = "def handle(event_type, context): pass\n"
OTHER_USER = 12_345

Spoil = Callable[[Path], object]


def write(file: str, text: str) -> Spoil:
    return lambda folder: (folder / file).write_text(text)


def replace_by_folder(file: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).mkdir()

    return spoil


def replace_by_link(file: str, target: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).symlink_to(target)

    return spoil


def add_to_manifest(line: str) -> Spoil:
    return lambda folder: (folder / "HOOK.yaml").write_text((folder / "HOOK.yaml").read_text() + line + "\n")


def start_with(line: str) -> Spoil:
    return write("handler.py", f"{line}\n{HANDLER}")


STATES: Mapping[str, Spoil] = {
    "everybody may write to it": lambda folder: folder.chmod(0o777),
    "manifest cannot be parsed": write("HOOK.yaml", "intercepts: [tool:before\nwhen: {"),
    "manifest is empty": write("HOOK.yaml", ""),
    "handler is empty": write("handler.py", ""),
    "handler cannot be imported": start_with("import no_such_module"),
    "manifest is gone": lambda folder: (folder / "HOOK.yaml").unlink(),
    "handler is gone": lambda folder: (folder / "handler.py").unlink(),
    "a program that it needs is missing": add_to_manifest("requires: {bins: [no-such-program]}"),
    "everybody may write to its handler": lambda folder: (folder / "handler.py").chmod(0o666),
    "manifest is of another kind": write("HOOK.yaml", "- just\n- a list\n"),
    "manifest says what nobody knows": add_to_manifest("intercepts: {}"),
    "manifest is not text": lambda folder: (folder / "HOOK.yaml").write_bytes(b"\xff\xfe\0\0"),
    "manifest is a folder": replace_by_folder("HOOK.yaml"),
    "manifest is a circle of links": replace_by_link("HOOK.yaml", "HOOK.yaml"),
    "manifest leads out": replace_by_link("HOOK.yaml", "/etc/hostname"),
    "manifest is too long": lambda folder: (folder / "HOOK.yaml").write_text("# " + "x" * 100_000),
    "handler is not Python": write("handler.py", "def handle(:\n"),
    "handler is a folder": replace_by_folder("handler.py"),
    "handler leads out": replace_by_link("handler.py", "/etc/hostname"),
    "handler ends at its import": start_with("import os; os._exit(3)"),
    "handler wants to exit": start_with("raise SystemExit(0)"),
    "handler has nothing to call": write("handler.py", "x = 1\n"),
    "handler takes one argument": write("handler.py", "def handle(event): pass\n"),
    "a variable that it needs is missing": add_to_manifest("requires: {env: [NO_SUCH_VARIABLE]}"),
    "a package that it needs is missing": add_to_manifest("requires: {python: [no-such-package]}"),
    "a network that it needs is missing": add_to_manifest("requires: {platforms: [pigeons]}"),
}
if os.geteuid() == 0:
    STATES = {**STATES, "belongs to another user": lambda folder: os.chown(folder, OTHER_USER, OTHER_USER)}
SHORT = list(STATES)[:10]


# What handlers do when they are to decide.
DEEDS = {
    "raises": "raise KeyError(1)",
    "exits": "raise SystemExit(0)",
    "ends its process": "os._exit(0)",
    "kills its process": "os.kill(os.getpid(), 9)",
    "stops its process": "os.kill(os.getpid(), 19)",
    "hangs": "time.sleep(60)",
    "spins": "while True: pass",
    "answers what means nothing": "return object()",
    "answers a word": "return 'fine'",
    "closes its wire": "os.closerange(3, 2000)",
    "eats memory": "x = [bytearray(1 << 24) for _ in range(200)]; raise MemoryError",
    "recurses": "return handle(event_type, context)",
    "interrupts": "raise KeyboardInterrupt",
}
# Programs in place of a handler, and what becomes of each.
PROGRAM = "#!/bin/sh\necho 'not this' >&2\nexit 2\n"
PROGRAMS: Mapping[str, Spoil] = {
    "has no x bit": lambda folder: (folder / "hook.sh").chmod(0o600),
    "is gone": lambda folder: (folder / "hook.sh").unlink(),
    "is empty": write("hook.sh", ""),
    "fails": write("hook.sh", "#!/bin/sh\nexit 1\n"),
    "has an interpreter that is not there": write("hook.sh", "#!/no/such/interpreter\n"),
    "says what means nothing": write("hook.sh", "#!/bin/sh\necho hello\n"),
    "hangs": write("hook.sh", "#!/bin/sh\nsleep 60\n"),
    "is killed": write("hook.sh", "#!/bin/sh\nkill -9 $$\n"),
}


class Guarded:
    """A home whose hooks guard and are owed, one for each state; `tools`: when tools were at work."""

    def __init__(self, home: Home) -> None:
        self.home, self.engine, self.tools = home, MemoryEngine(), ToolTimes()
        self.settings = HooksSettings(eager=100)
        self.list_sources: Callable[[], list[Source]] = lambda: [make_folder_source(home.hooks, "home")]
        self.sent = 0
        self.names: list[str] = []

    def plant(self, *names: str) -> None:
        for name in names:
            self.home.plant(name, MANIFEST % name, HANDLER)
            self.names.append(name)

    @asynccontextmanager
    async def serving(self, *, settled: bool = True) -> AsyncIterator[None]:
        around = replace(self.home.environment(), ports=HookPorts(tools=self.tools))
        async with ForkServerClient(SETTINGS) as fork_server, HookRegistry() as self.registry:
            self.service = FolderHooks(self.registry, fork_server, self.engine, self.settings, around)
            async with self.service.running(self.list_sources(), self.home.grant):
                if settled:
                    await self.service.settled()
                yield

    async def list_open(self, names: Collection[str] = ()) -> list[str]:
        """Those that something got past, each being owed an event more from now on."""
        self.sent += 1
        found = []
        for name in names or self.names:
            event = await self.registry.run("tool:before", tool=name, args={})
            found += [] if isinstance(event.outcome, Deny) else [name]
            self.registry.emit("my:thing", tool=name, n=self.sent)
        return found

    async def until_noticed(self, names: Collection[str] = ()) -> None:
        for name in names or self.names:
            await until(partial(self.is_noticed, name), f"{name} being noticed")

    async def until_told(self, names: Collection[str] = ()) -> None:
        for name in names or self.names:
            await until(partial(self.is_told_all, name), f"{name} being told all")

    def is_noticed(self, name: str) -> bool:
        return bool(hook_of(self.service, name).process.reason)

    def is_told_all(self, name: str) -> bool:
        return self.told(name) >= {*range(1, self.sent + 1)}

    def told(self, name: str) -> set[int]:
        try:
            return {json.loads(line) for line in (self.home.root / f"told-{name}").read_text().splitlines()}
        except FileNotFoundError:
            return set()

    def mend(self, *names: str) -> None:
        for name in names or self.names:
            shutil.rmtree(self.home.hooks / name, ignore_errors=True)
            self.home.plant(name, MANIFEST % name, HANDLER)


@pytest.fixture
def guarded(home: Home) -> Guarded:
    return Guarded(home)


def name_of(state: str) -> str:
    return state.replace(" ", "-")


async def walk(guarded: Guarded, states: Collection[str]) -> None:
    guarded.plant(*map(name_of, states))
    async with guarded.serving():
        assert not await guarded.list_open()
        for state in states:
            STATES[state](guarded.home.hooks / name_of(state))
        await guarded.until_noticed()
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving(settled=False):
        assert not await guarded.list_open(), "from the first event on"
        await guarded.service.settled()
        assert not await guarded.list_open(), "after a start"
        guarded.mend()
        await guarded.until_told()
        assert not await guarded.list_open(), "when it is well again"


async def test_in_each_state_of_its_files_nothing_gets_past_it(guarded: Guarded) -> None:
    await walk(guarded, SHORT)


@pytest.mark.thorough
async def test_in_all_states_of_its_files_nothing_gets_past_it(guarded: Guarded) -> None:
    await walk(guarded, STATES)


@pytest.mark.thorough
async def test_whatever_a_handler_does_in_place_of_a_decision_nothing_gets_past_it(guarded: Guarded) -> None:
    for deed, code in DEEDS.items():
        guarded.plant(name_of(deed))
        handler = guarded.home.hooks / name_of(deed) / "handler.py"
        handler.write_text(HANDLER.replace('raise Deny("not this")', code))
    async with guarded.serving():
        for _ in range(2):
            assert not await guarded.list_open()
        guarded.mend()
        await guarded.until_told()


@pytest.mark.thorough
async def test_whatever_becomes_of_a_program_nothing_gets_past_it(guarded: Guarded) -> None:
    manifest = 'intercepts: [tool:before]\nwhen: {tool: %s}\ncommand: ["./hook.sh"]\nprotocol: oneshot\ntimeout: 3s\n'
    for state in PROGRAMS:
        guarded.home.plant(name_of(state), manifest % name_of(state), **{"hook.sh": PROGRAM})
        guarded.names.append(name_of(state))
    async with guarded.serving():
        assert not await guarded.list_open()
        for state, spoil in PROGRAMS.items():
            spoil(guarded.home.hooks / name_of(state))
        await guarded.until_noticed(["is-gone", "has-no-x-bit"])
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving(settled=False):
        assert not await guarded.list_open(), "after a start"


PLUGIN = """
def guard(tool_name, args, **_):
    if tool_name == "%s":
        return {"action": "block", "message": "not this"}

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""
PLUGINS: Mapping[str, Spoil] = {
    "manifest cannot be parsed": write("plugin.yaml", "name: [one\n"),
    "manifest is empty": write("plugin.yaml", ""),
    "manifest is gone": lambda folder: (folder / "plugin.yaml").unlink(),
    "code is empty": write("__init__.py", ""),
    "code is not Python": write("__init__.py", "def register(:\n"),
    "code cannot be imported": write("__init__.py", f"import no_such_module\n{PLUGIN}"),
    "code is gone": lambda folder: (folder / "__init__.py").unlink(),
    "everybody may write to it": lambda folder: folder.chmod(0o777),
}


@pytest.mark.thorough
async def test_in_each_state_of_a_plugin_nothing_gets_past_it(guarded: Guarded) -> None:
    place, config = guarded.home.root / "plugins", guarded.home.root / "config.yaml"
    enabled = json.dumps({"plugins": {"enabled": [*map(name_of, PLUGINS), "well"]}})
    config.write_text(enabled)
    for name in (*map(name_of, PLUGINS), "well"):
        (place / name).mkdir(parents=True)
        (place / name / "plugin.yaml").write_text(f"name: {name}\n")
        (place / name / "__init__.py").write_text(PLUGIN % name)
        guarded.names.append(name)
    guarded.list_sources = lambda: [make_plugin_source(place, "plugins", HermesConfig(config))]
    async with guarded.serving():
        assert not await guarded.list_open()
        for state, spoil in PLUGINS.items():
            spoil(place / name_of(state))
        assert not await guarded.list_open(), "while it runs"
    for text in (enabled, "", "plugins: {enabled: ["):
        config.write_text(text)
        async with guarded.serving(settled=False):
            assert not await guarded.list_open(), f"after a start with {text!r}"
    config.unlink()
    async with guarded.serving(settled=False):
        assert not await guarded.list_open(), "nothing says which are on"
    config.write_text(enabled)
    place.rename(guarded.home.root / "aside")
    async with guarded.serving(settled=False):
        assert not await guarded.list_open(), "its place is away"


async def test_a_plugin_guards_what_it_last_guarded_until_its_new_version_has_loaded(guarded: Guarded) -> None:
    place, config = guarded.home.root / "plugins", guarded.home.root / "config.yaml"
    config.write_text(json.dumps({"plugins": {"enabled": ["cell"]}}))
    code, quiet = place / "cell" / "__init__.py", "def register(ctx):\n    ctx.register_hook('on_session_end', print)\n"
    code.parent.mkdir(parents=True)
    (place / "cell" / "plugin.yaml").write_text("name: cell\n")
    code.write_text(PLUGIN % "cell")
    guarded.list_sources = lambda: [make_plugin_source(place, "plugins", HermesConfig(config))]
    async with guarded.serving():
        assert not await guarded.list_open(["cell"])
    code.write_text(f"import no_such_module\n{quiet}")
    for _ in range(2):
        async with guarded.serving():
            assert not await guarded.list_open(["cell"]), "no name of a guard stands in it, and it does not load"
    code.write_text(quiet)
    async with guarded.serving():
        assert await guarded.list_open(["cell"]) == ["cell"]


async def test_a_broken_plugin_that_0_1_0_has_kept_is_still_a_plugin(guarded: Guarded) -> None:
    home, config = guarded.home, guarded.home.root / "config.yaml"
    config.write_text(json.dumps({"plugins": {"enabled": ["cell"]}}))
    folder = home.root / "plugins" / "cell"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: [cell\n")
    (folder / "__init__.py").write_text("def register(ctx): ...\n")
    manifest = {"folder": "cell", "name": "cell", "hermes": True, "intercepts": ["tool:before"]}
    kept = {"manifest": {**manifest, "guards": ["tool:before"]}, "path": str(folder), "place": str(folder.parent)}
    (home.root / "state").mkdir()
    (home.root / "state" / REGISTRATIONS_FILE).write_text(json.dumps({"plugin:cell": kept}))
    plugins = make_plugin_source(folder.parent, "plugins", HermesConfig(config))
    guarded.list_sources = lambda: [plugins, make_folder_source(home.hooks, "home")]
    async with guarded.serving():
        found = hook_of(guarded.service, "plugin:cell").latest
        assert found
        assert found.dialect.starts_early
        assert not await guarded.list_open(["cell"])


SHELL_GUARD = '#!/bin/sh\necho \'{"decision": "block", "reason": "not this"}\'\n'


class ShellGuards:
    """Guards that Hermes's config.yaml names, one for each state of its script; a person trusts them."""

    def __init__(self, guarded: Guarded, states: Collection[str]) -> None:
        self.guarded, self.config = guarded, guarded.home.root / "config.yaml"
        guarded.names = [*map(name_of, states)]
        for name in guarded.names:
            self.folder_of(name).mkdir(parents=True)
            self.write_script(name, SHELL_GUARD)
        self.write_config(guarded.names)
        guarded.list_sources = lambda: [ShellHookSource(self.config, HermesConfig(self.config))]

    def folder_of(self, name: str) -> Path:
        return self.guarded.home.root / "bin" / name

    def write_script(self, name: str, text: str) -> None:
        script = self.folder_of(name) / "hook.sh"
        script.write_text(text)
        script.chmod(0o700)

    def write_config(self, names: Collection[str]) -> None:
        entries = [{"command": str(self.folder_of(name) / "hook.sh"), "matcher": name, "timeout": 3} for name in names]
        self.config.write_text(json.dumps({"hooks": {"pre_tool_call": entries}}))

    def called(self, name: str) -> str:
        number = self.guarded.names.index(name)
        return "shell-pre_tool_call-hook" + (f"-{number + 1}" if number else "")

    async def trust(self) -> None:
        for name in self.guarded.names:
            await self.guarded.service.trust(self.called(name))


async def test_a_shell_hook_whose_script_is_not_well_denies(guarded: Guarded) -> None:
    shell = ShellGuards(guarded, [*PROGRAMS, "well"])
    async with guarded.serving():
        assert not await guarded.list_open(), "until somebody has trusted it"
        await shell.trust()
        assert not await guarded.list_open()
        for state, spoil in PROGRAMS.items():
            spoil(shell.folder_of(name_of(state)))
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving(settled=False):
        assert not await guarded.list_open(), "after a start"


@pytest.mark.thorough
async def test_while_what_names_shell_hooks_is_not_well_they_are_shut(guarded: Guarded) -> None:
    shell = ShellGuards(guarded, ["one", "two"])
    async with guarded.serving():
        await shell.trust()
        assert not await guarded.list_open()
        for text in ("", "hooks: {"):
            shell.config.write_text(text)
            await guarded.service.reload()
            assert not await guarded.list_open(), f"while it runs, with {text!r}"
        shell.config.unlink()
        await guarded.service.reload()
        assert not await guarded.list_open(), "while it runs, without it"
    for spoil in (shell.config.mkdir, shell.config.rmdir, lambda: shell.config.symlink_to(shell.config)):
        spoil()
        async with guarded.serving(settled=False):
            assert not await guarded.list_open(), "after a start"
    shell.config.unlink()
    shell.write_config(["one"])
    async with guarded.serving():
        assert await guarded.list_open() == ["two"], "a person took it out"


async def test_a_shell_hook_that_a_tool_takes_out_waits_for_a_person(guarded: Guarded) -> None:
    shell = ShellGuards(guarded, ["kept", "gone"])
    async with guarded.serving():
        await shell.trust()
        with guarded.tools.running():
            shell.write_config(["kept"])
        await until(lambda: "hooks forget" in hook_of(guarded.service, shell.called("gone")).process.reason)
        assert not await guarded.list_open()
    async with guarded.serving():
        assert not await guarded.list_open(), "after a start"
        await guarded.service.forget(shell.called("gone"))
        assert await guarded.list_open() == ["gone"]


async def test_what_changes_or_goes_while_a_tool_is_at_work_waits_for_a_person(guarded: Guarded) -> None:
    guarded.plant("changed", "gone", "taken-back")
    hooks = guarded.home.hooks
    async with guarded.serving():
        assert not await guarded.list_open()
        with guarded.tools.running():
            (hooks / "changed" / "handler.py").write_text(ALLOWS)
            (hooks / "taken-back" / "handler.py").write_text(ALLOWS)
            shutil.move(hooks / "gone", guarded.home.root / "aside")
        await guarded.until_noticed()
        assert not await guarded.list_open(), "the version before runs on"
        assert "hooks trust changed" in hook_of(guarded.service, "changed").process.reason
    async with guarded.serving():
        assert not await guarded.list_open(), "after a start"
        assert (await guarded.service.info("gone")).state == "missing"
        assert (await guarded.service.info("changed")).state == "pending"
        guarded.mend("taken-back")
        await guarded.until_told(["taken-back"])
        await guarded.service.forget("gone")
        await guarded.service.trust("changed")
        assert sorted(await guarded.list_open()) == ["changed", "gone"]


async def test_where_a_person_takes_it_away_nothing_is_denied_and_that_is_said_once(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.plant("first", "second")
    said = "guard {} is gone; nothing is denied for it"
    async with guarded.serving():
        shutil.rmtree(guarded.home.hooks / "first")
        await until(lambda: said.format("first") in caplog.text)
        assert await guarded.list_open() == ["first"]
    shutil.rmtree(guarded.home.hooks / "second")
    async with guarded.serving():
        assert await guarded.list_open() == ["first", "second"]
    async with guarded.serving():
        assert caplog.text.count(said.format("second")) == 1


async def test_while_their_place_is_away_they_are_shut_and_they_come_back_with_it(guarded: Guarded) -> None:
    guarded.plant("one", "two")
    hooks, aside = guarded.home.hooks, guarded.home.root / "aside"
    async with guarded.serving():
        assert not await guarded.list_open()
        hooks.rename(aside)
        await guarded.until_noticed()
        assert not await guarded.list_open(), "while it runs"
    hooks.write_text("no folder")
    async with guarded.serving():
        assert not await guarded.list_open()
        assert "hooks forget one" in (await guarded.service.info("one")).reason
        hooks.unlink()
        aside.rename(hooks)
        await guarded.until_told()


async def test_where_their_place_is_another_folder_and_empty_they_are_shut(guarded: Guarded) -> None:
    """It is one in which theirs was mounted."""
    guarded.plant("one")
    hooks = guarded.home.hooks
    async with guarded.serving():
        assert not await guarded.list_open()
    hooks.rename(guarded.home.root / "aside")
    hooks.mkdir()
    async with guarded.serving():
        assert not await guarded.list_open()
        (hooks / "another").mkdir()
    async with guarded.serving():
        assert await guarded.list_open() == ["one"], "a person put another folder there"


async def test_what_is_switched_off_is_neither_denied_for_nor_owed(guarded: Guarded) -> None:
    guarded.plant("off")
    async with guarded.serving():
        await guarded.list_open()
        (guarded.home.hooks / "off").chmod(0o777)
        await guarded.until_noticed()
        await guarded.service.switch("off", enabled=False)
        assert await guarded.list_open() == ["off"]
    async with guarded.serving():
        assert await guarded.list_open() == ["off"]
