"""In a chat one after the other, in different chats side by side."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from gateway.adapters.shared.inbox import KeyedLock, add_files
from gateway.adapters.shared.incoming import IncomingMessage
from gateway.engine.sqlite.engine import open_sqlite
from gateway.messages.files import HomeFiles
from gateway.messages.message import Attachment
from tests.engine.conftest import JUMPS
from tests.engine.test_journal_clock import BEGUN, Machine
from tests.spine import message, until


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


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_file_is_as_old_as_its_message_whatever_the_wall_clock_says(tmp_path: Path, jump: float) -> None:
    machine = Machine()

    async def fetch(name: str, folder: Path) -> Attachment:
        path = anyio.Path(folder / name)
        await path.parent.mkdir(parents=True)
        await path.write_bytes(b"letter")
        return Attachment("document", str(path))

    async with await open_sqlite(tmp_path / "journal.db", clock=machine.clock) as engine:
        machine.wall += jump
        told = IncomingMessage(message("look"), ("a",))
        parts = SimpleNamespace(engine=engine, files=SimpleNamespace(shared=HomeFiles(tmp_path / "files")))
        context: Any = SimpleNamespace(files=tmp_path / "files", parts=parts)
        (file,) = (await add_files(told.message, told, fetch, context)).attachments
        assert (await anyio.Path(file.path).stat()).st_mtime == BEGUN
