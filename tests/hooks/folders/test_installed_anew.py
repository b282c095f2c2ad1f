"""A hook that is installed again while it is looked at: the agreed content counts at each moment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.config.settings import HooksSettings
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.manifests.installed import HooksLock
from gateway.hooks.places.installed_source import InstalledSource
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.wires.fork_client import ForkServerClient
from tests.hooks.folders.test_reach import lock
from tests.hooks.folders.workshop import Home
from tests.hooks.wires.workshop import SETTINGS
from tests.spine import until

HANDLER = "def handle(name, context): pass\n"
pytestmark = pytest.mark.process


@dataclass(frozen=True)
class InstalledMeanwhile(InstalledSource):
    """What is to happen behind the next look at a folder, before anybody judges it."""

    meanwhile: list[Callable[[], None]] = field(default_factory=list, kw_only=True, compare=False)

    def inspect(self, version: HookVersion) -> HookVersion:
        read = super().inspect(version)
        if self.meanwhile:
            self.meanwhile.pop()()
        return read


async def test_a_look_between_two_versions_finds_the_newer_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home(tmp_path)
    home.hooks = home.root / "installed"
    for version in ("one", "two"):
        home.plant(f"said@{version}", f"intercepts: ['my:*']\nversion: {version}\n", HANDLER)
    lock(home, "said", "installed/said@one")
    source = InstalledMeanwhile(home.hooks, "installed", lock=HooksLock(home.root / "hooks.lock"), placed=())
    async with ForkServerClient(SETTINGS) as fork_server, HookRegistry() as registry:
        service = FolderHooks(registry, fork_server, None, HooksSettings(), home.environment())
        async with service.running([source], home.grant):
            await service.settled()
            assert (await service.info("said")).version == "one"
            source.meanwhile.append(lambda: lock(home, "said", "installed/said@two"))
            (home.hooks / "said@one" / "handler.py").touch()
            await until(lambda: not source.meanwhile, "the look at the folder that was touched")
            await service.reload("said")
            found = await service.info("said")
    assert "nobody agreed" not in caplog.text
    assert (found.state, found.version, found.reason) == ("loaded", "two", "")
