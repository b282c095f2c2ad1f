"""Folders of agents that several gateways have, by two homes on one journal."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from gateway.cluster.files import SharedFiles
from gateway.cluster.folder_contents import LARGEST_FILE, MOST_FILES, open_until_end
from gateway.cluster.folder_journal import STORED, FolderJournal
from gateway.cluster.folders import SharedFolders, list_chat_folders
from gateway.cluster.nats.connection import PATIENCE
from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.cluster.nats.file_names import FileNames, make_file_id
from gateway.files.agent_folders import BASES, SharedFolder, is_steering, make_chat_folder
from gateway.records import records
from tests.engine.conftest import nats_server
from tests.waits import Stopwatch

__all__ = ["nats_server"]


class Home:
    """A gateway's, as far as it has a workspace."""

    def __init__(self, engine: NatsEngine, root: Path) -> None:
        self.engine = engine
        self.files = root / "files"
        self.kept = root / BASES
        self.root = root / "workspace"
        self.root.mkdir(parents=True)
        self.folder = SharedFolder("root/workspace", self.root, is_steering)
        self.start()

    def start(self) -> None:
        """What was only in memory is no more."""
        self.shared = SharedFolders(self.engine, self.files, self.root.parent.name)

    def write(self, content: str, name: str = "notes.md") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def read(self) -> dict[str, str]:
        return {
            str(one.relative_to(self.root)): one.read_text() for one in sorted(self.root.rglob("*")) if one.is_file()
        }

    async def take(self) -> dict[str, str]:
        await self.shared.take(self.folder)
        return self.read()

    async def put(self) -> None:
        await self.shared.put(self.folder)


@pytest.fixture
async def homes(nats_server: str, tmp_path: Path) -> AsyncIterator[tuple[Home, Home]]:
    async with await open_nats(f"{nats_server}/{uuid.uuid4().hex[:12]}") as engine:
        yield Home(engine, tmp_path / "one"), Home(engine, tmp_path / "other")


@pytest.fixture
def memory_disk(tmp_path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if Path(folder).stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("all is one disk here")
        yield Path(folder)


class Requests:
    """What anybody asks of the server, as one hears it who listens to all: how much, and how much of it at a time."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self.asked = self.at_a_time = 0

    async def hear(self, message: Msg) -> None:
        self._waiting.discard(message.subject)
        if message.reply:
            self._waiting.add(message.reply)
            self.asked, self.at_a_time = self.asked + 1, max(self.at_a_time, len(self._waiting))


@asynccontextmanager
async def heard(url: str) -> AsyncIterator[Requests]:
    client, requests = await nats.connect(url), Requests()
    try:
        await client.subscribe(">", cb=requests.hear)
        await client.flush()
        yield requests
        await client.flush()
    finally:
        await client.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def count_stored(home: Home) -> int:
    return len(await home.engine.files.list(STORED))


async def test_what_one_wrote_the_other_has_and_what_it_removed_is_gone(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("The barn is red.", "a/barn.md")
    one.write("#!/bin/sh", ".git/hooks/run").chmod(0o755)
    await one.put()
    assert await other.take() == {".git/hooks/run": "#!/bin/sh", "a/barn.md": "The barn is red."}
    assert os.access(other.root / ".git/hooks/run", os.X_OK)
    assert not os.access(other.root / "a/barn.md", os.X_OK)
    other.write("The barn is blue.", "a/barn.md")
    shutil.rmtree(other.root / ".git")
    await other.put()
    assert await one.take() == {"a/barn.md": "The barn is blue."}
    assert not (one.root / ".git").exists()
    assert await count_stored(one) == 1
    (one.root / "a/barn.md").chmod(0o755)
    await one.put()
    await other.take()
    assert os.access(other.root / "a/barn.md", os.X_OK)


async def test_what_did_not_change_is_never_put(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write("of the first")
    await one.put()
    await other.take()
    other.write("newer")
    await other.put()
    os.utime(path)
    one.write("of one", "more.md")
    await one.put()
    assert await other.take() == {"more.md": "of one", "notes.md": "newer"}
    assert await one.take() == {"more.md": "of one", "notes.md": "newer"}


async def test_many_are_put_and_taken_beside_each_other(homes: tuple[Home, Home], nats_server: str) -> None:
    one, other = homes
    files = sorted(f"{number}.md" for number in range(20))
    for content, most in (("red", 4), ("blue", 9)):
        for name in files:
            one.write(content, name)
        async with heard(nats_server) as put:
            await one.put()
        async with heard(nats_server) as taken:
            assert await other.take() == dict.fromkeys(files, content)
        assert 1 < put.at_a_time < len(files)
        assert put.asked < most * len(files), "nothing is removed where nothing was"
        assert 1 < taken.at_a_time < len(files)


async def test_who_puts_what_both_changed_later_counts(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("of the first")
    await one.put()
    await other.take()
    one.write("of one")
    other.write("of the other")
    await one.put()
    await other.put()
    assert await one.take() == {"notes.md": "of the other"} == await other.take()


async def test_what_loses_stays_beside(homes: tuple[Home, Home]) -> None:
    one, other = homes
    os.utime(other.write("older"), (1_000_000, 1_000_000))
    one.write("newer")
    await one.put()
    found = await other.take()
    assert found.pop("notes.md") == "newer"
    (beside,) = found
    assert beside.startswith("notes.md.")
    assert found[beside] == "older"
    await other.put()
    assert len(await one.take()) == 2


async def test_a_killed_gateway_puts_what_it_wrote_when_it_is_back(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("The barn is red.")
    await one.put()
    await other.take()
    one.write("and large", "more.md")
    one.write("of a person", "third.md")
    await one.put()
    one.write("and more", "more.md")
    (one.root / "third.md").unlink()
    one.start()
    await one.shared.sync(one.folder)
    assert await other.take() == {"more.md": "and more", "notes.md": "The barn is red."}


@pytest.mark.parametrize("again", [False, True], ids=["emptied", "made again"])
async def test_an_empty_folder_in_its_place_removes_nothing(homes: tuple[Home, Home], again: bool) -> None:
    one, other = homes
    one.write("The barn is red.")
    await one.put()
    await other.take()
    shutil.rmtree(one.root)
    one.root.mkdir()
    if again:
        one.write("new", "more.md")
    one.start()
    await one.shared.sync(one.folder)
    assert one.read()["notes.md"] == "The barn is red." == (await other.take())["notes.md"]


async def test_on_another_journal_all_is_put_anew(homes: tuple[Home, Home], nats_server: str) -> None:
    one, _ = homes
    one.write("The barn is red.")
    await one.put()
    async with await open_nats(f"{nats_server}/{uuid.uuid4().hex[:12]}") as engine:
        one.engine = engine
        one.start()
        await one.shared.sync(one.folder)
        assert await count_stored(one) == 1
        assert one.read() == {"notes.md": "The barn is red."}


async def test_what_the_servers_lost_is_put_anew(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("The barn is red.")
    one.write("stays", "more.md")
    await one.put()
    await one.take()
    for stored in await one.engine.files.list(STORED):
        await one.engine.files.delete(stored.key)
    one.start()
    await one.shared.sync(one.folder)
    assert await other.take() == {"more.md": "stays", "notes.md": "The barn is red."}
    key = f"{(await one.engine.files.list(STORED))[0].key[:-4]}0000"
    with one.write("cut off", "more.md").open("rb") as file:
        await one.engine.files.put(key, file, 1_000)
    never_whole = f"{key[:-4]}0001"
    piece = FileNames(one.engine._names.journal).pieces(make_file_id(never_whole, uuid.uuid4().hex))
    await one.engine._connection.ask_stored(piece, b"killed before it was who")
    other.start()
    await other.shared.sync(other.folder)
    assert await count_stored(one) == 3, "it is not from there"
    assert await one.engine.files.list_cut_off(STORED) == [never_whole]
    await one.shared.sync(one.folder)
    assert await count_stored(one) == 2
    assert await one.engine.files.list_cut_off(STORED) == []
    await one.engine._connection.ask_stored(piece, b"killed before it was who")
    await other.shared.forget(one.folder.name)
    assert await one.engine.files.list_cut_off(STORED) == []


async def test_links_pipes_sockets_and_what_steers_agents_stay(homes: tuple[Home, Home], tmp_path: Path) -> None:
    one, other = homes
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("a key")
    (one.root / "key").symlink_to(secret / "key")
    (one.root / "folder").symlink_to(secret)
    os.mkfifo(one.root / "pipe")
    one.write("Obey.", "AGENTS.md")
    one.write("Obey.", ".claude/settings.json")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(one.root / "socket"))
        await one.put()
    assert await other.take() == {}
    (other.root / "folder").symlink_to(secret)
    (one.root / "folder").unlink()
    one.write("written", "folder/key")
    await one.put()
    await other.take()
    assert (secret / "key").read_text() == "a key", "no link is followed"


async def test_what_is_over_a_bound_is_named(homes: tuple[Home, Home], caplog: pytest.LogCaptureFixture) -> None:
    one, other = homes
    with one.write("").open("r+b") as file:
        file.truncate(LARGEST_FILE + 1)
    for number in range(MOST_FILES + 5):
        one.write("", f"many/{number:04}")
    one.write("", "line\nbreak")
    await one.put()
    words = one.shared.left_out["root/workspace"]
    assert words.startswith(f"other gateways do not have all files of {one.root}: ")
    assert "'notes.md': 20 MB, where 20 MB are the most" in words
    assert "'line\\nbreak': a name with unreadable characters" in words
    assert words.endswith("and 4 more")
    assert "'many/1000'" in words
    assert words in caplog.text
    assert len(await other.take()) == MOST_FILES
    await one.take()
    shutil.rmtree(one.root / "many")
    (one.root / "notes.md").unlink()
    (one.root / "line\nbreak").unlink()
    await one.put()
    assert one.shared.left_out == {}
    assert await other.take() == {}


async def test_a_file_that_grows_is_read_to_where_it_ended(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    path = one.write("begun")
    with open_until_end(path) as file:
        one.write("begun, and so on", path.name)
        assert file.read(3) + file.read() + file.read(3) == b"begun"
    with path.open("r+b") as large:
        large.truncate(2 * LARGEST_FILE)
    with open_until_end(path) as file:
        assert len(file.read()) == LARGEST_FILE + 1


async def test_an_older_file_never_takes_the_place_of_one_that_cannot_be_had(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("older")
    await one.put()
    await other.take()
    one.write("newer")
    await one.put()
    for stored in await one.engine.files.list(STORED):  # as whoever puts a third one does
        await one.engine.files.delete(stored.key)
    assert await other.take() == {"notes.md": "older"}
    await other.put()
    assert await one.take() == {"notes.md": "newer"}


async def test_what_could_not_be_written_here_is_named_and_comes_the_next_time(
    homes: tuple[Home, Home], nats_server: str
) -> None:
    one, other = homes
    one.write("red" * 1_000_000)
    one.write("of one", "z.md")
    await one.put()
    (other.root / "notes.md").mkdir()
    (other.root / "notes.md" / "in its way").write_text("here")
    for _ in range(2):
        async with heard(nats_server) as requests:
            assert "notes.md" not in await other.take()
        assert requests.asked < 10, "what cannot be written is not fetched"
        assert other.shared.absent["root/workspace"].endswith(": 'notes.md': Is a directory")
    shutil.rmtree(other.root / "notes.md")
    assert await other.take() == {"notes.md": "red" * 1_000_000, "z.md": "of one"}
    assert other.shared.absent == {}


@pytest.mark.machine
async def test_what_the_disk_has_no_room_for_is_fetched_when_it_has(
    homes: tuple[Home, Home], nats_server: str, small_disk: Path
) -> None:
    one, other = homes
    one.write("x" * 3_000_000)
    await one.put()
    other.root, other.files = small_disk / "workspace", small_disk / "files"
    other.folder = SharedFolder(one.folder.name, other.root)
    other.start()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    for most in (30, 5):
        async with heard(nats_server) as requests:
            assert await other.take() == {}
        assert requests.asked < most, "only its size is asked for again"
        assert other.shared.absent["root/workspace"].endswith(": 'notes.md': No space left on device")
    ballast.unlink()
    assert len((await other.take())["notes.md"]) == 3_000_000
    assert other.shared.absent == {}


async def test_a_turn_goes_on_where_the_disk_takes_nothing(homes: tuple[Home, Home]) -> None:
    one, other = homes
    one.write("The barn is red.")
    one.kept.write_text("in the way")
    await one.shared.sync(one.folder)
    assert str(one.kept) in one.shared.left_out["root/workspace"]
    other.root.rmdir()
    other.root.write_text("in the way")
    await other.shared.take(other.folder)
    assert str(other.root) in other.shared.absent["root/workspace"]
    other.root.unlink()
    assert await other.take() == {"notes.md": "The barn is red."}
    assert other.shared.absent == {}


@pytest.mark.parametrize(
    ("bound", "words"),
    [({"max_msg_size": 100_000}, "message size"), ({"max_bytes": 300_000}, "it has no room: ")],
    ids=["too large", "full"],
)
async def test_what_was_stored_before_the_servers_refused_one_counts(
    homes: tuple[Home, Home], bound: dict[str, int], words: str
) -> None:
    one, other = homes
    files = await one.engine._connection.call(f"STREAM.INFO.{one.engine._names.files}")
    await one.engine._connection.call(f"STREAM.UPDATE.{one.engine._names.files}", **(files["config"] | bound))
    one.write("of one", "a")
    one.write("of one", "b")
    one.write("c" * 400_000, "c")
    for _ in range(2):
        with Stopwatch() as watch:
            await one.put()
        assert watch.seconds < PATIENCE, "it is an answer, and another one was waited for"
        assert f"the NATS server does not take a file: {words}" in one.shared.left_out["root/workspace"]
        assert await count_stored(one) == 2
    assert sorted(await other.take()) == ["a", "b"]


async def test_a_file_comes_to_another_disk(homes: tuple[Home, Home], memory_disk: Path) -> None:
    one, other = homes
    one.write("#!/bin/sh", "run").chmod(0o755)
    one.write("The barn is red.")
    await one.put()
    other.root = memory_disk
    await other.shared.take(SharedFolder(one.folder.name, memory_disk))
    assert other.read() == {"run": "#!/bin/sh", "notes.md": "The barn is red."}
    assert os.access(memory_disk / "run", os.X_OK)
    assert (memory_disk / "notes.md").stat().st_mode & 0o777 == 0o600


async def test_no_record_leads_to_what_steers_agents_or_out_of_the_folder(homes: tuple[Home, Home]) -> None:
    one, other = homes
    named = SharedFolder(one.folder.name, one.root)  # as a gateway has it that knows nothing of these
    one.write("Obey.", ".claude/settings.json")
    one.write("Obey.", "below/.Cursor/rules/all.md")
    one.write("stays", "below/notes.md")
    await one.shared.put(named)
    path = records.FolderFile(folder=named.name, path="../out.md", sha256="0", stored="0")
    await FolderJournal(one.engine, "one").append(named.name, [path])
    assert await other.take() == {"below/notes.md": "stays"}
    assert not (other.root.parent / "out.md").exists()


async def test_a_long_name_stays_beside(homes: tuple[Home, Home]) -> None:
    one, other = homes
    name = "ä" * 127 + "x"
    os.utime(other.write("older", name), (1_000_000, 1_000_000))
    one.write("newer", name)
    await one.put()
    found = await other.take()
    assert found.pop(name) == "newer"
    assert list(found.values()) == ["older"]


async def test_of_a_conversation_goes_what_the_agent_wrote(homes: tuple[Home, Home]) -> None:
    one, other = homes
    here, there = (home.files / "net" / "7" for home in homes)
    here.mkdir(parents=True)
    (here / "notes.md").write_text("of the agent")
    (here / "00112233445566778899aabb.jpg").write_bytes(b"came in")
    (one.files / "net" / "8").mkdir()
    (one.files / "net" / "8" / "00112233445566778899aabb.jpg").write_bytes(b"came in")
    assert [folder.name for folder in list_chat_folders(one.files)] == ["files/net/7"]
    await one.shared.put(make_chat_folder(here))
    (here / "notes.md").unlink()
    assert [folder.name for folder in list_chat_folders(one.files)] == ["files/net/7"], "what was removed is told"
    await SharedFiles(other.engine.files, other.files).fetch_all()
    assert not there.exists(), "it is not a file that came in"
    await other.shared.fetch_all(lambda _name: None)
    assert [path.name for path in there.iterdir()] == ["notes.md"]
    await one.shared.forget("files/net/7")
    assert await count_stored(one) == 0
    assert await one.shared.list_names() == []
