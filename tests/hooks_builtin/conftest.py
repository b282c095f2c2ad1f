"""The hooks that come with the gateway, each in a worker of its own, before and after the events of real turns."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hooks_builtin
from gateway.agent import Tool
from gateway.hooks.folders.handlers import HandlerTargets, ask_handlers, notify_handlers
from gateway.hooks.manifests.manifest import read_manifest
from gateway.hooks.wires.event_calls import CallTerms
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.worker_handle import WorkerHandle
from tests.agent.endpoint import Endpoint, serving
from tests.agent.stage import WANTS_WEATHER, Stage, weather
from tests.hooks.wires.workshop import SETTINGS, worker_spec

Enable = Callable[..., Awaitable[Path]]
ROOT = Path(hooks_builtin.__file__).parent


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    async with stage.hooks:
        yield stage


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with serving() as server:
        yield server


@pytest.fixture
def call_weather() -> dict[str, Any]:
    return WANTS_WEATHER


@pytest.fixture
def weather_tool() -> Tool:
    return weather


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServerClient]:
    async with ForkServerClient(SETTINGS) as fork_server:
        yield fork_server


@pytest.fixture
async def enable(stage: Stage, fork_server: ForkServerClient, tmp_path: Path) -> AsyncIterator[Enable]:
    """`await enable("echo", max_chars=10)` starts that hook with its own options and these; its log is returned."""
    workers: list[WorkerHandle] = []

    async def refuse(verb: str, params: dict[str, Any], during: str) -> Any:
        raise AssertionError(f"{verb} was not granted")

    async def enable(name: str, **options: Any) -> Path:
        manifest = read_manifest(ROOT / name).manifest
        assert manifest
        log = tmp_path / f"{name}.log"
        spec = worker_spec(
            ROOT / name / "handler.py",
            name=name,
            env={"HERMES_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            options={**manifest.options, **options},
        )
        worker = await fork_server.start(spec, refuse, log, 10.0)
        workers.append(worker)
        targets = HandlerTargets(worker)
        if manifest.intercepts:

            async def ask(event: Any) -> Any:
                return await ask_handlers(worker, targets.of(event.name), event, CallTerms(manifest.decide_timeout))

            ask.__name__ = name
            stage.hooks.on(
                manifest.intercepts, ask, order=manifest.order, when=manifest.when or None, on_error="raise", key=name
            )
        if manifest.events:
            tell = partial(tell_one, worker, targets, manifest.observe_timeout)
            stage.hooks.watch(manifest.events, tell, key=name)
        return log

    yield enable
    for worker in workers:
        await worker.stop(1.0)


async def tell_one(worker: WorkerHandle, targets: HandlerTargets, timeout: float, name: str, event: Any) -> None:
    await notify_handlers(worker, targets.of(name), event, CallTerms(timeout))
