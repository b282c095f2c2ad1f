"""In a chat one after the other, in different chats side by side."""

import anyio

from gateway.adapters.shared.keyed_lock import KeyedLock
from gateway.adapters.shared.recent_messages import MOST, RecentMessages
from tests.spine import until


async def test_who_asks_first_is_first_and_others_do_not_wait() -> None:
    order, done = KeyedLock(), list[str]()
    gate = anyio.Event()

    async def act(key: str, name: str) -> None:
        async with order.turn(key):
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
        async with order.turn("a"):
            raise ValueError("no")
    except ValueError:
        pass
    async with order.turn("a"):
        assert len(order) == 1


def test_what_was_said_long_ago_is_forgotten() -> None:
    recent = RecentMessages()
    for number in range(MOST + 1):
        recent.note(str(number), f"person{number}", " how   do\nI ")
    assert recent.author("0") == ""
    assert (recent.author("1"), recent.title("1")) == ("person1", "how do I")
