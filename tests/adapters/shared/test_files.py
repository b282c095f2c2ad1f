"""The bytes of files that go out."""

import os
from pathlib import Path

import pytest

from gateway.adapters.shared.files import read_attachment
from gateway.errors import AdapterError
from gateway.messages.message import Attachment


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def read(path: Path, largest: int = 100) -> bytes:
    return (await read_attachment(Attachment("document", str(path), "letter"), largest, "Telegram"))[1]


async def test_a_file_is_read_whole(root: Path) -> None:
    (root / "letter").write_bytes(b"dear Ann")
    assert await read(root / "letter") == b"dear Ann"


@pytest.mark.row("T20")
async def test_no_link_is_followed_wherever_on_the_way_it_is(root: Path) -> None:
    """What was checked under its real path is that path's file, even if a folder was swapped for a link since."""
    (root / "secret").mkdir()
    (root / "secret" / "letter").write_bytes(b"key")
    (root / "folder").symlink_to(root / "secret")
    (root / "letter").symlink_to(root / "secret" / "letter")
    for path in (root / "folder" / "letter", root / "letter"):
        with pytest.raises(AdapterError, match="cannot be read"):
            await read(path)


async def test_what_is_missing_too_large_or_no_file_is_said(root: Path) -> None:
    (root / "large").write_bytes(b"x" * 3_000_000)
    os.mkfifo(root / "pipe")
    for name, words in (("none", "none not found"), ("pipe", "pipe not found"), ("large", "has 3 MB; Telegram")):
        with pytest.raises(AdapterError, match=words):
            await read(root / name)
