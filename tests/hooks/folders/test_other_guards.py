"""Guards of other gateways deny where their folder is missing, like a broken guard, and no longer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from gateway.cluster.other_hooks import KEPT_FOR, SharedHooks
from gateway.config.home import Home as GatewayHome
from gateway.config.settings import HookOverrides, HooksSettings
from gateway.daemon.dialects import DIALECTS, make_folder_source
from gateway.engine.interface import NewRecord
from gateway.engine.journal_clock import Clock
from gateway.errors import EngineError
from gateway.events import Deny, Event
from gateway.hermes.config import HermesConfig
from gateway.hermes.sources import make_plugin_source
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.own_changes import MOST_WHILE_LOADED
from gateway.hooks.manifests.installed import LOCK_VERSION
from gateway.hooks.places.installed_source import make_installed_source
from gateway.hooks.places.sources import Source
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.records import records, subjects
from gateway.records.records import HookGuard, NodeHooks
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.workshop import Home, hook_of
from tests.hooks.wires.workshop import SETTINGS
from tests.spine import SetClock, until

pytestmark = pytest.mark.process

SHELL = HookGuard(("tool:before",), {"tool": "shell"})
MANIFEST = "intercepts: [tool:before]\nwhen: {tool: shell}\non_error: deny\n"
PLUGIN = """def register(ctx):
    ctx.register_hook("pre_tool_call", lambda **_: None)
"""
ALLOWS = "def handle(event_type, context): pass\n"


class SharedEngine(MemoryEngine):
    """A journal as other gateways have it too; `is_away`: nobody can read it."""

    is_away = False

    async def read(self, *args: Any, **more: Any) -> Any:
        if self.is_away:
            raise EngineError("the servers are away")
        return await super().read(*args, **more)


class Here:
    """The gateway called here: its hooks, and what others write."""

    def __init__(self, home: Home, engine: MemoryEngine, registry: HookRegistry, service: FolderHooks) -> None:
        self.home, self.engine, self.registry, self.service = home, engine, registry, service
        assert isinstance(service.others, SharedHooks)
        self.others = service.others

    async def hear(self, node: str, **guards: HookGuard) -> None:
        """That gateway has these guards from now on, and no others."""
        written = NodeHooks(node=node, guards=guards)
        subject = subjects.node_hooks_subject_of(node)
        (seq,) = await self.engine.append(NewRecord(subject, records.encode(written)))
        (record,) = await self.engine.read(subject, after=seq - 1)
        await self.others.take(record)

    async def ask(self, tool: str = "shell", **fields: Any) -> str:
        """Why a tool may not be called; nothing where it may."""
        event: Event = await self.registry.run("tool:before", tool=tool, args={}, **fields)
        return event.outcome.text if isinstance(event.outcome, Deny) else ""

    async def until_denied(self, *, is_denied: bool = True) -> None:
        async def is_so() -> bool:
            return bool(await self.ask()) == is_denied

        await until(is_so)

    def read_own(self) -> NodeHooks | None:
        """What it has written of itself."""
        kept = [records.decode(record.data) for record in self.engine._log.values()]
        return next((one for one in reversed(kept) if isinstance(one, NodeHooks) and one.node == "here"), None)


@asynccontextmanager
async def serving(
    home: Home, engine: MemoryEngine | None = None, settings: HooksSettings | None = None, *more: Source
) -> AsyncIterator[Here]:
    engine, registry = engine or SharedEngine(), HookRegistry()
    async with ForkServerClient(SETTINGS) as fork_server, registry:
        others = SharedHooks(engine, "here")
        service = FolderHooks(registry, fork_server, engine, settings or HooksSettings(), home.environment(), others)
        await others.load()
        sources = (*others.list_sources(home.hooks), *more, make_folder_source(home.hooks, "home"))
        async with service.running(sources, home.grant):
            yield Here(home, engine, registry, service)


async def test_it_is_denied_with_what_helps_until_nobody_has_it(home: Home) -> None:
    async with serving(home) as here:
        assert not await here.ask()
        await here.hear("there", guard=SHELL)
        await here.hear("yonder", guard=SHELL)
        await here.until_denied()
        refusal = await here.ask()
        assert (
            "guard: is on gateways there, yonder and missing here; bring its folder here, or remove it there" in refusal
        )
        assert "hermes-gateway hooks disable guard" in refusal
        assert not await here.ask("read_file"), "its `when` counts"
        await here.hear("there")
        await until(lambda: "is on gateway yonder and" in hook_of(here.service, "guard").process.reason)
        await here.hear("yonder")
        await here.until_denied(is_denied=False)
        assert await here.service.status() == []


async def test_what_is_missing_here_is_not_told_as_had_here(home: Home) -> None:
    home.plant("own", MANIFEST, ALLOWS)
    async with serving(home) as here:
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        await until(lambda: here.read_own() is not None)
        kept = here.read_own()
        assert kept
        assert [*kept.folders] == [*kept.guards] == ["own"]
        assert kept.guards["own"] == HookGuard(("tool:before",), {"tool": "shell"}, stored_as="own")


async def test_it_is_known_before_the_first_event_and_while_the_journal_is_away(home: Home) -> None:
    engine = SharedEngine()
    async with serving(home, engine) as here:
        await here.hear("there", guard=SHELL)
    async with serving(home, engine) as here:
        assert await here.ask(), "from the first event on"
        engine.is_away = True
        with pytest.raises(EngineError):
            await here.others.load()
        await here.service.reload()
        assert await here.ask()
        engine.is_away = False


async def test_of_a_gateway_that_is_away_it_counts_for_seven_days(home: Home) -> None:
    clock = SetClock()
    async with serving(home, SharedEngine(Clock(wall=clock, machine=clock))) as here:
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        clock.now += KEPT_FOR - 60
        await here.service.reload()
        assert await here.ask()
        clock.now += 120
        await here.until_denied(is_denied=False)


async def test_gateways_with_two_versions_of_it_guard_what_either_does(home: Home) -> None:
    async with serving(home) as here:
        await here.hear("there", guard=SHELL)
        await here.hear("yonder", guard=HookGuard(("tool:before",), {"tool": "fetch"}))
        await here.until_denied()
        await until(lambda: "yonder" in hook_of(here.service, "guard").process.reason)
        assert await here.ask("fetch")
        await here.hear("there")
        await here.until_denied(is_denied=False)
        assert await here.ask("fetch")


@pytest.mark.parametrize(
    "settings",
    [
        HooksSettings(disabled=("guard",)),
        HooksSettings(each={"guard": HookOverrides(enabled=False)}),
        HooksSettings(each={"guard": HookOverrides(on_error="skip")}),
    ],
    ids=("disabled", "not enabled", "skips"),
)
async def test_the_configuration_may_say_otherwise(home: Home, settings: HooksSettings) -> None:
    async with serving(home, None, settings) as here:
        await here.hear("there", guard=SHELL)
        await until(lambda: "guard" in here.service._set.hooks)
        assert not await here.ask()


async def test_a_folder_that_is_here_decides_from_its_start_through_all_changes(home: Home) -> None:
    folder = home.plant("guard", MANIFEST, "import time\ntime.sleep(0.3)\n" + ALLOWS)
    engine = SharedEngine()
    async with serving(home, engine) as here:
        await here.hear("there", guard=SHELL)
    async with serving(home, engine) as here:
        assert not await here.ask(), "it waits for its start"
        for number in range(5):
            (folder / "handler.py").write_text(f"N = {number}\n{ALLOWS}")
            before = hook_of(here.service, "guard").process.loaded_at
            while hook_of(here.service, "guard").process.loaded_at == before:
                assert not await here.ask()
                await anyio.sleep(0.01)


async def test_while_a_folder_is_brought_it_is_denied_until_its_manifest_is_there(home: Home) -> None:
    async with serving(home) as here:
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        folder = home.hooks / "guard"
        folder.mkdir(parents=True)
        (folder / "handler.py").write_text(ALLOWS)
        await until(lambda: hook_of(here.service, "guard").is_here)
        assert await here.ask()
        await until(lambda: bool((kept := here.read_own()) and kept.folders))
        kept = here.read_own()
        assert kept
        assert not kept.guards, "which would then never end"
        (folder / "HOOK.yaml").write_text(MANIFEST)
        await here.until_denied(is_denied=False)


async def test_a_folder_that_goes_takes_its_process_along_and_all_it_guards_is_denied(home: Home) -> None:
    home.plant("guard", MANIFEST + "events: [agent:end]\ndelivery: durable\n", ALLOWS)
    async with serving(home) as here:
        await here.hear("there", guard=SHELL)
        assert not await here.ask()
        await until(lambda: bool((kept := here.read_own()) and kept.owed))
        (home.hooks / "guard").rename(home.root / "away")
        await here.until_denied()
        assert not hook_of(here.service, "guard").is_up
        await until(lambda: bool((kept := here.read_own()) and not kept.owed and not kept.folders))
        (home.root / "away").rename(home.hooks / "guard")
        await here.until_denied(is_denied=False)
        assert hook_of(here.service, "guard").is_up


async def test_one_that_was_installed_here_and_is_gone_is_missing_too(home: Home) -> None:
    place = GatewayHome(home.root)
    place.own_folder.mkdir()
    entry = {"path": "installed/guard@00ff", "grants": {}}
    place.hooks_lock.write_text(json.dumps({"version": LOCK_VERSION, "hooks": {"guard": entry}}))
    async with serving(home, None, None, make_installed_source(place, DIALECTS)) as here:
        assert (await here.service.info("guard")).state == "refused"
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        await here.service.reload()
        assert await here.ask()
        await here.hear("there")
        await here.until_denied(is_denied=False)


async def test_where_only_trusted_folders_run_it_is_denied_until_somebody_has_read_it(home: Home) -> None:
    async with serving(home, None, HooksSettings(trust="pinned")) as here:
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        home.plant("guard", MANIFEST, ALLOWS)
        await until(lambda: hook_of(here.service, "guard").process.state == "pending")
        assert "not trusted as it is now" in await here.ask()
        assert not await here.ask("read_file"), "its `when` counts"
        await until(lambda: bool((kept := here.read_own()) and kept.folders))
        kept = here.read_own()
        assert kept
        assert not kept.guards, "nobody has ever trusted it here"
        await here.service.trust("guard")
        await here.until_denied(is_denied=False)


async def test_a_folder_that_nobody_trusts_guards_no_more_than_others_say(home: Home) -> None:
    home.plant("guard", MANIFEST, ALLOWS)
    async with serving(home, None, HooksSettings(trust="pinned")) as here:
        assert (await here.service.info("guard")).state == "pending"
        assert not await here.ask()
        await here.hear("there", guard=SHELL)
        await here.until_denied()
        await here.hear("there")
        await here.until_denied(is_denied=False)
    settings = HooksSettings(trust="pinned", each={"guard": HookOverrides(on_error="skip")})
    async with serving(home, None, settings) as here:
        await here.hear("there", guard=SHELL)
        await here.service.reload()
        assert not await here.ask(), "the configuration says otherwise"


async def test_switching_it_off_elsewhere_again_and_again_counts_each_time(home: Home) -> None:
    home.plant("guard", MANIFEST, ALLOWS)
    async with serving(home) as here:
        for _ in range(2 * MOST_WHILE_LOADED):
            assert not await here.ask()
            assert hook_of(here.service, "guard").is_up
            await here.service.switch("guard", enabled=False)
            assert not hook_of(here.service, "guard").is_up
            await here.service.switch("guard", enabled=True)


async def test_a_plugin_that_is_brought_is_denied_until_somebody_switches_it_on_or_off(home: Home) -> None:
    guard, name = HookGuard(("tool:before",)), "plugin:guard"
    config = HermesConfig(home.root / "config.yaml")
    plugins = make_plugin_source(home.root / "plugins", "plugins", config)
    async with serving(home, None, None, plugins) as here:
        await here.hear("there", **{name: guard})
        await here.until_denied()
        folder = home.root / "plugins" / "guard"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: guard\n")
        (folder / "__init__.py").write_text(PLUGIN)
        await until(lambda: hook_of(here.service, name).is_here)
        assert "hooks enable guard" in await here.ask()
        assert "is denied meanwhile" in hook_of(here.service, name).process.reason
        await here.service.switch("guard", enabled=True)
        assert not await here.ask()
        await here.service.switch("guard", enabled=False)
        assert not await here.ask(), "whoever switches it off knows what it guards"


async def test_a_guard_is_told_while_another_hook_is_still_starting(home: Home) -> None:
    home.plant("guard", MANIFEST, ALLOWS)
    waits = "import time, pathlib\nwhile not pathlib.Path(__file__).with_name('go').exists(): time.sleep(0.01)\n"
    slow = home.plant("slow", "events: [agent:end]\n", waits + ALLOWS)
    async with serving(home) as here:
        await until(lambda: bool((kept := here.read_own()) and kept.guards))
        kept = here.read_own()
        assert kept
        assert not kept.folders, "these are told when all have started"
        (slow / "go").touch()
        await until(lambda: {*(((kept := here.read_own()) and kept.folders) or ())} == {"guard", "slow"})
