"""In a chat one after the other, in different chats side by side."""

import anyio

from gateway.adapters.shared.inbox import KeyedLock
from tests.spine import until


async def test_who_asks_first_is_first_and_others_do_not_wait() -> None:
    order, done = KeyedLock(), list[str]()
    gate = anyio.Event()

    async def act(key: str, name: str) -> None:
        async with order.hold(key):
            if name == "a1":
                await gate.wait()
            done.append(name)

    async with anyio.create_task_group() as tasks:
        for key, name in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")):
            tasks.start_soon(act, key, name)
        await until(lambda: done == ["b1"], "the other chat")
        assert len(order) == 1
        gate.set()
    assert done == ["b1", "a1", "a2", "a3"]
    assert not len(order), "nobody is waited for any more"


async def test_one_that_fails_holds_nobody_up() -> None:
    order = KeyedLock()
    try:
        async with order.hold("a"):
            raise ValueError("no")
    except ValueError:
        pass
    async with order.hold("a"):
        assert len(order) == 1
