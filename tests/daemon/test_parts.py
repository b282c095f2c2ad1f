"""A part that fails is restarted and says why; the others do not feel it."""

import anyio
from anyio.abc import TaskStatus

from gateway.daemon.parts import Part


async def test_a_part_that_fails_comes_back_and_says_why() -> None:
    attempts: list[int] = []
    again = anyio.Event()

    async def serve(*, task_status: TaskStatus[None]) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("the network is gone")
        part.up("polling")
        again.set()
        await anyio.sleep_forever()

    part = Part("telegram", serve)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(part.run)
        await part.wait_first_try()
        assert (part.facts.state, part.facts.detail) == ("restarting", "OSError: the network is gone")
        await again.wait()
        assert (part.facts.state, part.facts.restarts) == ("up", 1)
        tasks.cancel_scope.cancel()
    assert (part.facts.state, part.facts.restarts) == ("stopped", 1)
