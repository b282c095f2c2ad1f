"""One answer for many callers: never an old one, and no caller suffers if another leaves or fails."""

import anyio
import pytest

from gateway.web.shared_answers import SharedAnswers


class Finder:
    """Says how often it was asked; `goes_on` lets it answer."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = anyio.Event()
        self.goes_on = anyio.Event()

    async def find(self) -> bytes:
        self.count += 1
        self.begun.set()
        await self.goes_on.wait()
        return b"%d" % self.count


async def test_those_who_ask_meanwhile_are_told_what_was_found_after_they_asked() -> None:
    answers, finder, told = SharedAnswers(), Finder(), list[bytes]()

    async def ask() -> None:
        told.append(await answers.get("status", finder.find))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await finder.begun.wait()
        for _ in range(20):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        finder.goes_on.set()
    assert told == [b"1", *[b"2"] * 20]
    assert await answers.get("hooks", finder.find) == b"3"


async def test_who_leaves_takes_nobodys_answer_along() -> None:
    answers, finder, told = SharedAnswers(), Finder(), list[bytes]()
    leaving = anyio.CancelScope()

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            told.append(await answers.get("status", finder.find))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, leaving)
        await finder.begun.wait()
        tasks.start_soon(ask, anyio.CancelScope())
        await anyio.wait_all_tasks_blocked()
        leaving.cancel()
        finder.goes_on.set()
    assert told == [b"2"]


async def test_what_fails_is_looked_for_again() -> None:
    answers = SharedAnswers()

    async def fail() -> bytes:
        raise ValueError("not now")

    async def find() -> bytes:
        return b"found"

    with pytest.raises(ValueError, match="not now"):
        await answers.get("status", fail)
    assert await answers.get("status", find) == b"found"
