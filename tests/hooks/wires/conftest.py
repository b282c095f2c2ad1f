"""Real fork servers and real workers for the tests of the wires."""

from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.worker_handle import WorkerHandle
from tests.hooks.wires.workshop import SETTINGS, Make, worker_spec


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServerClient]:
    async with ForkServerClient(SETTINGS) as fork_server:
        yield fork_server


@pytest.fixture
async def make(fork_server: ForkServerClient, tmp_path: Path) -> AsyncIterator[Make]:
    """`await make(source, serve=..., options=...)` is a worker with that handler; all are gone after the test."""
    made: list[WorkerHandle] = []

    async def echo(verb: str, params: dict[str, Any], during: str) -> Any:
        return {"verb": verb, "params": params, "during": during}

    async def make(
        source: str, serve: Any = echo, timeout: float = 60.0, name: str = "probe", **spec: Any
    ) -> WorkerHandle:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        handler = folder / "handler.py"
        handler.write_text(dedent(source))
        worker = await fork_server.start(
            worker_spec(handler, name=name, **spec), serve, tmp_path / f"{name}.log", timeout
        )
        made.append(worker)
        return worker

    yield make
    for worker in made:
        await worker.stop(1.0)
