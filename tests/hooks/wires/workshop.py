"""What the tests of the wires share."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from gateway.hooks.wires.worker import Worker

Make = Callable[..., Awaitable[Worker]]


async def until(condition: Callable[[], object], limit: float = 5) -> None:
    """Wait for what nobody tells of."""
    with anyio.fail_after(limit):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await anyio.sleep(0.002)


def lines_of(log: Path) -> list[str]:
    """A hook's log without the time of each line."""
    return [line[20:] for line in log.read_text().splitlines()]
