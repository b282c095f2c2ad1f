"""A home with hook folders in it, and the service that runs them, with everything real."""

import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from gateway.config.settings import HooksSettings
from gateway.daemon.dialects import make_folder_source
from gateway.engine.interface import Engine
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.services import HookEnvironment
from gateway.hooks.stats import HookStatus
from gateway.hooks.wires.fork_client import ForkServerClient
from tests.hooks.wires.workshop import SETTINGS
from tests.spine import until

# Writes a line for each event into a file of its own: the version, the event, and a number in it.
NOTE = """
import json, os, pathlib
FILE = pathlib.Path(os.environ["HERMES_HOME"]) / "seen-{name}.jsonl"
def handle(event_type, context):
    with FILE.open("a") as file:
        file.write(json.dumps(["{version}", event_type, context.get("n")]) + "\\n")
"""


def hook_of(service: FolderHooks, name: str) -> FolderHook:
    return service._set.hooks[name]


class Home:
    """A home in a temporary place."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hooks = root / "hooks"
        self.retries: tuple[float, ...] = (0.02, 0.02)
        self.granted: list[tuple[str, str, dict[str, Any], str]] = []

    def plant(self, name: str, manifest: str, handler: str = "", **files: str) -> Path:
        """A folder that appears at once, as one that was moved there."""
        made = self.root / "made" / name
        made.mkdir(parents=True)
        (made / "HOOK.yaml").write_text(textwrap.dedent(manifest))
        if handler:
            (made / "handler.py").write_text(textwrap.dedent(handler))
        for file, text in files.items():
            (made / file).write_text(textwrap.dedent(text))
            (made / file).chmod(0o755)
        self.hooks.mkdir(exist_ok=True)
        made.rename(self.hooks / name)
        return self.hooks / name

    def note(self, name: str, version: str = "1", manifest: str = "events: ['my:*']\n") -> Path:
        return self.plant(name, manifest, self.noting(name, version))

    def noting(self, name: str, version: str) -> str:
        return NOTE.replace("{name}", name).replace("{version}", version)

    def seen(self, name: str) -> list[list[Any]]:
        """The lines that are whole: one that crosses a page of the file is seen in halves while it is written."""
        try:
            whole, _, _ = (self.root / f"seen-{name}.jsonl").read_text().rpartition("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in whole.splitlines()]

    def log(self, name: str) -> str:
        try:
            return (self.root / "logs" / f"{name}.log").read_text()
        except FileNotFoundError:
            return ""

    def environment(self, **environ: str) -> HookEnvironment:
        return HookEnvironment(
            environ={"PATH": os.environ["PATH"], "HOME": str(self.root), **environ},
            home=self.root,
            logs=self.root / "logs",
            state=self.root / "state",
            platforms=("terminal",),
            packages=sys.path,
            retries=self.retries,
        )

    async def grant(self, hook: str, verb: str, params: dict[str, Any], during: str) -> Any:
        self.granted.append((hook, verb, params, during))
        return {"granted": verb}

    @asynccontextmanager
    async def serving(
        self,
        registry: HookRegistry,
        engine: Engine | None = None,
        settings: HooksSettings | None = None,
        check: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
        **environ: str,
    ) -> AsyncIterator[FolderHooks]:
        sources = [
            FolderSource(self.root / "builtin", "built in", is_ours=True),
            make_folder_source(self.hooks, "home"),
        ]
        async with ForkServerClient(SETTINGS) as fork_server, registry:
            service = FolderHooks(
                registry, fork_server, engine, settings or HooksSettings(), self.environment(**environ)
            )
            async with service.running(sources, self.grant, check):
                await service.settled()
                yield service


class Yard(Home):
    """A home whose hooks run."""

    registry: HookRegistry
    service: FolderHooks

    async def status(self, name: str) -> HookStatus:
        return await self.service.info(name)

    def hook(self, name: str) -> FolderHook:
        return hook_of(self.service, name)

    async def state(self, name: str, state: str) -> HookStatus:
        """Its status, once it is in this state."""

        async def find() -> list[HookStatus]:
            return [status for status in await self.service.status() if (status.name, status.state) == (name, state)]

        found: list[HookStatus] = await until(find, f"{name} being {state}")
        return found[0]
