"""Real nurseries and real workers for the tests of the wires."""

from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gateway.hooks.wires.nursery import Nursery, Plan
from gateway.hooks.wires.worker import Worker, WorkerSpec
from tests.hooks.wires.workshop import Make


@pytest.fixture(scope="module")
async def nursery() -> AsyncIterator[Nursery]:
    async with Nursery(Plan()) as nursery:
        yield nursery


@pytest.fixture
async def make(nursery: Nursery, tmp_path: Path) -> AsyncIterator[Make]:
    """`await make(source, serve=..., options=...)` is a worker with that handler; all are gone after the test."""
    made: list[Worker] = []

    async def echo(verb: str, params: dict[str, Any], during: str) -> Any:
        return {"verb": verb, "params": params, "during": during}

    async def make(source: str, serve: Any = echo, timeout: float = 10.0, name: str = "probe", **spec: Any) -> Worker:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        handler = folder / "handler.py"
        handler.write_text(dedent(source))
        worker = await nursery.start(
            WorkerSpec(name=name, handler=str(handler), **spec), serve, tmp_path / f"{name}.log", timeout
        )
        made.append(worker)
        return worker

    yield make
    for worker in made:
        await worker.stop(1.0)
