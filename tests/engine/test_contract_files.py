"""Files by their keys, on the engines that share them: whole or not there, and never in memory as a whole."""

import io
import os
from pathlib import Path
from typing import BinaryIO

import anyio
import pytest

from gateway.engine.interface import Engine, FileStore
from tests.engine.conftest import DAY, KINDS

PHOTO, LETTER = "net/1002/00112233445566778899aabb.jpg", "net/chat.-5.7/ffeeddccbbaa998877665544"


@pytest.fixture(params=[one for one in KINDS if one not in ("sqlite", "memory")])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def files(engine: Engine) -> FileStore:
    assert engine.files
    return engine.files


def write(folder: Path, content: bytes, changed: float = 1_000_000) -> BinaryIO:
    path = folder / "given"
    path.write_bytes(content)
    os.utime(path, (changed, changed))
    return path.open("rb")


async def put(files: FileStore, folder: Path, key: str, content: bytes) -> None:
    with write(folder, content) as file:
        await files.put(key, file, DAY)


async def read(files: FileStore, folder: Path, key: str) -> bytes | None:
    path = folder / "got"
    with path.open("w+b") as file:
        found = await files.get(key, file)
    return path.read_bytes() if found else None


@pytest.mark.parametrize("size", [0, 1, 256_000, 1_500_000])
async def test_what_was_put_is_got(files: FileStore, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    await put(files, tmp_path, PHOTO, content)
    assert await read(files, tmp_path, PHOTO) == content
    (found,) = await files.list(PHOTO)
    assert (found.key, found.size, found.changed) == (PHOTO, size, 1_000_000)


async def test_what_is_put_again_is_in_the_place_of_the_first(files: FileStore, tmp_path: Path) -> None:
    await put(files, tmp_path, PHOTO, b"first" * 90_000)
    await put(files, tmp_path, PHOTO, b"second")
    assert await read(files, tmp_path, PHOTO) == b"second"
    assert [one.size for one in await files.list()] == [6]


async def test_what_is_deleted_or_was_never_put_is_not_there(files: FileStore, tmp_path: Path) -> None:
    await put(files, tmp_path, PHOTO, b"a photo")
    await files.delete(PHOTO)
    await files.delete(PHOTO)
    assert await read(files, tmp_path, PHOTO) is None
    assert await files.list() == []


async def test_they_are_listed_by_the_beginnings_of_their_keys(files: FileStore, tmp_path: Path) -> None:
    keys = [LETTER, PHOTO, "net/1002/x", "net/10/x", ".sent/00/x.md"]
    for key in keys:
        await put(files, tmp_path, key, key.encode())
    assert [one.key for one in await files.list()] == sorted(keys)
    assert [one.key for one in await files.list("net/1002")] == [PHOTO, "net/1002/x"]
    assert [one.key for one in await files.list("net/10")] == ["net/10/x"]
    assert await files.list("net/100") == []


@pytest.mark.parametrize("key", ["", "/etc/passwd", "a/../b", "a//b", "a b", "a/*", "ü", "a/.", "a/b/c/d"])
async def test_no_key_leads_elsewhere(files: FileStore, key: str) -> None:
    with pytest.raises(ValueError, match="is not a key"):
        await files.delete(key)
    with pytest.raises(ValueError, match="is not a key"):
        await files.get(key, io.BytesIO())


async def test_many_are_put_and_got_at_a_time(files: FileStore, tmp_path: Path) -> None:
    async def go_round(number: int) -> None:
        folder, content = tmp_path / f"n{number}", bytes([number]) * 300_000
        folder.mkdir()
        await put(files, folder, f"net/{number}/x", content)
        assert await read(files, folder, f"net/{number}/x") == content

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(go_round, number)
