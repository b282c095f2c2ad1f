"""A real gateway inside the test's own process, and a hook that records its events."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from gateway.access.access_control import AccessControl
from gateway.adapters.shared.folder import load_settings_schema
from gateway.adapters.verbs import SayRequest
from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.config.settings import Settings
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.gateway import Gateway
from gateway.daemon.groups.process import OwnPort
from gateway.daemon.platforms import PlatformPart
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.startup import open_gateway
from gateway.engine.interface import Engine
from gateway.errors import GatewayError
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.outbox.outbox import Outbox
from gateway.sessions.repository import SessionRepository
from gateway.testing.gateway_process import GatewayProcess
from gateway.testing.patience import LONGEST, Patience

GLANCE = 0.002


class RecordingHook:
    """An observer that records events: `events` in their order, each a name and its fields."""

    def __init__(self, registry: HookRegistry, names: str | Iterable[str] = "*") -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.remove = registry.watch(names, self._note)

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [name for name, _ in self.events]

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return the fields of each event of this name."""
        return [fields for heard, fields in self.events if heard == name]

    async def until(self, name: str, patience: float = LONGEST) -> dict[str, Any]:
        """Wait for the first event of this name.

        Raises:
            GatewayError: it did not come in time; the message lists the events that did.
        """
        limit = Patience(patience)
        while not self.of(name):
            if limit.is_over():
                raise GatewayError(f"no {name} within {patience:.0f} s; there was {', '.join(self.names) or 'nothing'}")
            await anyio.sleep(GLANCE)
        return self.of(name)[0]

    def _note(self, name: str, context: dict[str, Any]) -> None:
        self.events.append((name, dict(context)))


class GatewayParts(msgspec.Struct, eq=False):
    """The parts of a gateway that tests read by name; all others are in its groups: `parts.groups.storage.search`."""

    groups: Gateway

    @property
    def home(self) -> Home:
        return self.groups.base.home

    @property
    def engine(self) -> Engine:
        return self.groups.base.engine

    @property
    def registry(self) -> HookRegistry:
        return self.groups.base.registry

    @property
    def settings(self) -> Settings:
        return self.groups.base.settings

    @property
    def web(self) -> OwnPort | None:
        return self.groups.run.web

    @property
    def sessions(self) -> SessionRepository:
        return self.groups.storage.sessions

    @property
    def access(self) -> AccessControl:
        return self.groups.people.access

    @property
    def folder_hooks(self) -> FolderHooks:
        return self.groups.hooks.folder_hooks

    @property
    def outbox(self) -> Outbox:
        return self.groups.turns.outbox

    @property
    def platforms(self) -> list[PlatformPart]:
        return self.groups.networks.platforms


class LiveGateway:
    """A gateway in this process. `registry` takes hooks that are functions: `registry.on`, `registry.watch`."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = GatewayParts(gateway)
        self.registry = gateway.base.registry

    async def say(self, text: str, session: str = "main") -> dict[str, Any]:
        """Send a message on the terminal; return the answer (`reply`, `status`, `turn_id`, `error`)."""
        result = await self.gateway.groups.turns.terminal.say(SayRequest(text, session), _ignore_notification)
        return dict(msgspec.to_builtins(result))


@asynccontextmanager
async def gateway_in(
    root: Path,
    *turns: Mapping[str, Any],
    settings: str = "",
    hooks: Mapping[str, Mapping[str, str] | Path] | None = None,
) -> AsyncIterator[LiveGateway]:
    """Run a gateway in the home `root`, inside this process, for the time of the block.

    `turns` are the model's, as in a script file (without them it is the demo); `settings` is more YAML; `hooks` are
    folders by name.
    """
    files = GatewayProcess(root)
    if turns:
        files.script(*turns, settings=settings)
    else:
        files.configure(settings)
    for name, folder in (hooks or {}).items():
        files.add_hook(name, folder)
    load = partial(load_configuration, load_settings_schema(), files.home, files.environ)
    configuration = await anyio.to_thread.run_sync(load)
    shutdown = Shutdown(configuration.settings.gateway.shutdown_timeout)
    async with open_gateway(files.home, configuration, shutdown, build_verbs) as gateway:
        await gateway.hooks.folder_hooks.settled()
        yield LiveGateway(gateway)


async def until(is_so: Callable[[], Any], what: str = "it", limit: float = LONGEST) -> Any:
    """Wait for a condition, which may be a coroutine, and return its value; the test fails if that takes too long."""
    patience = Patience(limit)
    while True:
        answer = is_so()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert not patience.is_over(), f"{what} did not come about within {limit:g} s"
        await anyio.sleep(GLANCE)


async def _ignore_notification(_kind: str, _fields: Any) -> None:
    """Ignore the growing answer; only the result counts."""
