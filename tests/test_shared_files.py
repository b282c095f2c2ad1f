"""Files of conversations that several gateways have, by two homes on one journal."""

import base64
import dataclasses
import io
import math
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from gateway.access.pairing import Pairings
from gateway.agent.toolbox.memory import FileMemory
from gateway.cluster.files import SharedFiles
from gateway.cluster.folders import SharedFolders
from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.cluster.nats.file_names import FileNames
from gateway.cluster.nats.stored_messages import LIFETIME
from gateway.cluster.removals import RemovalFollower
from gateway.config.home import Home as GatewayHome
from gateway.files.agent_folders import make_chat_folder
from gateway.files.folders import key_of
from gateway.messages.files import HomeFiles, find_event_files, find_message_files, make_path_pattern
from gateway.messages.message import Address, Attachment, Message, Reply
from gateway.messages.steps import LlmStep, ToolFinished, ToolStarted
from gateway.messages.transcript import Entry, Picture, ToolCall
from gateway.people.person import Person
from gateway.people.removal import PersonRemoval
from gateway.people.traces import PersonTraces
from gateway.records.activity import Activity
from gateway.records.follower import JournalFollower
from gateway.sessions.removal import digest_of, remove_files
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionSearch
from gateway.usage.totals import RunningTotals
from gateway.usage.usage_journal import UsageJournal
from tests.engine.conftest import nats_server
from tests.spine import until

__all__ = ["nats_server"]
NAME, KEY = "00112233445566778899aabb.jpg", "net/7/00112233445566778899aabb.jpg"


class Home:
    """A gateway's, as far as it has files."""

    def __init__(self, engine: NatsEngine, root: Path) -> None:
        self.engine = engine
        self.folder = root / "hermes-gateway" / "files"
        self.files = SharedFiles(engine.files, self.folder)
        self.workspace = root / "workspace"
        self.workspace.mkdir(parents=True)

    def write(self, content: bytes, key: str = KEY) -> Path:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_000_000, 1_000_000))
        return path

    def make(self, content: bytes, name: str = "chart.png") -> Attachment:
        path = self.workspace / name
        path.write_bytes(content)
        return Attachment("image", str(path), name, "image/png", len(content))


@pytest.fixture
async def homes(nats_server: str, tmp_path: Path) -> AsyncIterator[tuple[Home, Home]]:
    async with await open_nats(f"{nats_server}/{uuid.uuid4().hex[:12]}") as engine:
        yield Home(engine, tmp_path / "one"), Home(engine, tmp_path / "my other")


async def test_what_one_has_another_one_finds_and_it_is_as_old(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"a photo")
    await one.files.put(path)
    message = Message("1", Address("net", "7"), "7", "look", attachments=(Attachment("image", str(path)),))
    (there,) = await find_message_files(other.files, [message])
    assert there.attachments[0].path == str(other.folder / KEY)
    assert (other.folder / KEY).read_bytes() == b"a photo"
    assert (other.folder / KEY).stat().st_mtime == 1_000_000
    assert await find_message_files(one.files, [message]) == (message,)


async def test_a_hook_is_told_where_a_file_lies_here(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"a photo")
    await one.files.put(path)
    file = {"kind": "audio", "path": str(path)}
    there = {"kind": "audio", "path": str(other.folder / KEY)}
    assert await find_event_files(other.files, {"attachments": [file], "file": file, "text": "look"}) == {
        "attachments": [there],
        "file": there,
        "text": "look",
    }
    kept = {"file": "/home/ann/unreadable/telegram-7.json", "attachments": "none"}
    assert await find_event_files(other.files, kept) == kept, "events have other fields of these names"


async def test_what_is_nobody_s_any_more_is_said_to_lie_where_it_lay(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"a photo")
    assert await other.files.find(str(path)) == str(path)
    await one.files.put(path)
    assert await other.files.find(str(path)) == str(other.folder / KEY), "it came again"


async def test_a_bound_counts_what_came_in_at_any_gateway(homes: tuple[Home, Home]) -> None:
    one, other = homes
    await one.files.put(one.write(b"a photo"))
    await other.files.put(other.write(b"of another chat", "net/8/00112233445566778899aabb"))
    other.write(b"the agent's own", "net/7/notes.md")
    assert await other.files.list_received(other.folder / "net/7") == {NAME: 7}


async def test_what_is_damaged_at_the_servers_is_nobody_s(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"p" * 600_000)
    await one.files.put(path)
    assert isinstance(one.engine, NatsEngine)
    connection, names = one.engine._connection, one.engine._names
    end = (await connection.call(f"STREAM.INFO.{names.files}"))["state"]["last_seq"]
    await connection.call(f"STREAM.MSG.DELETE.{names.files}", seq=end - 1)
    assert await other.files.find(str(path)) == str(path)
    assert not list(other.folder.rglob("*.jpg"))


async def test_what_was_said_names_files_where_they_lie_here(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"a photo")
    await one.files.put(path)
    picture = Picture("image", str(path), "d", 7, "image/jpeg")
    said = (
        Entry("user", f"[attached image: a.jpg, in {path}]", parts=(picture,)),
        Entry("tool", f"see {path}.bak, '/srv/hermes/files/net/7/{NAME}' and /files/net/8/{NAME}"),
    )
    folder = other.folder / "net" / "7"
    there = await other.files.find_of_entries(said, folder)
    assert there[0].parts[0].path == str(folder / NAME)
    assert there[1].content == f"see {folder / NAME}.bak, '{folder / NAME}' and /files/net/8/{NAME}"
    assert (folder / NAME).exists()
    assert await one.files.find_of_entries(said[:1], path.parent) == said[:1]


async def test_what_a_turn_did_elsewhere_names_files_where_they_lie_here(homes: tuple[Home, Home]) -> None:
    one, other = homes
    path = one.write(b"a photo")
    await one.files.put(path)
    call, folder = ToolCall("c", "read_file", {"path": str(path)}), other.folder / "net" / "7"
    steps = (
        LlmStep(turn_id="t", hop=0, entry=Entry("assistant", f"I look at {path}.", tool_calls=(call,))),
        ToolStarted(turn_id="t", call_id="c", name="read_file", args=call.args),
        ToolFinished(turn_id="t", call_id="c", entry=Entry("tool", f"{path}: a photo", call_id="c")),
    )
    thought, started, done = await other.files.find_of_steps(steps, folder)
    assert started == steps[1]
    assert isinstance(thought, LlmStep)
    assert isinstance(done, ToolFinished)
    assert (thought.entry.content, thought.entry.tool_calls) == (f"I look at {folder / NAME}.", (call,))
    assert done.entry.content == f"{folder / NAME}: a photo"
    assert (folder / NAME).exists()
    assert await one.files.find_of_steps(steps, path.parent) == steps


def test_a_text_that_is_made_to_be_slow_is_not() -> None:
    places = make_path_pattern(Path("/h/files/net/7"))
    begun = time.thread_time()
    assert not places.findall("x" * 200_000 + "/files/net/7/")
    assert time.thread_time() - begun < 2


async def test_a_file_that_goes_out_is_sent_from_elsewhere(homes: tuple[Home, Home]) -> None:
    one, other = homes
    received = one.write(b"a photo")
    await one.files.put(received)
    gone = Attachment("image", str(one.workspace / "gone.png"), "gone.png")
    large = dataclasses.replace(one.make(b"x", "large.png"), size=10**9)
    given = Reply(
        "r", Address("net", "7"), "Here.", (one.make(b"a chart"), Attachment("image", str(received)), gone, large)
    )
    reply = await one.files.share(given, "agent:main:net:dm:7")
    assert reply.text == "Here.\n[the file large.png is not sent: it has 1000 MB]"
    chart, photo, lost = reply.attachments
    assert (chart.name, photo, lost) == ("chart.png", given.attachments[1], gone)
    found = await other.files.find_all(reply.attachments)
    assert [await anyio.Path(one.path).read_bytes() for one in found[:2]] == [b"a chart", b"a photo"]
    assert found[2] == gone
    assert await one.files.share(given, "agent:main:net:dm:7") == reply, "a turn that runs again says the same"


async def test_no_link_is_followed_to_what_goes_out(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    secret, chart = one.make(b"a secret", "secret.env"), one.make(b"a chart")
    await anyio.Path(chart.path).unlink()
    await anyio.Path(chart.path).symlink_to(secret.path)
    reply = await one.files.share(Reply("r", Address("net", "7"), "", (chart,)), "k")
    assert reply.attachments == (chart,)
    assert await one.engine.files.list() == []


async def test_where_nobody_else_works_a_home_that_was_moved_finds_its_files(tmp_path: Path) -> None:
    files = HomeFiles(tmp_path / "files")
    path = tmp_path / "files" / KEY
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a photo")
    (path.parent / "notes.md").write_text("the agent's own")
    assert await files.find(f"/before/files/{KEY}") == str(path)
    for elsewhere in (f"/before/files/net/8/{NAME}", "/before/workspace/chart.png"):
        assert await files.find(elsewhere) == elsewhere
    assert await files.list_received(path.parent) == {NAME: 7}


async def test_what_a_home_has_from_before_comes_to_the_servers_once(homes: tuple[Home, Home], tmp_path: Path) -> None:
    one, other = homes
    home = GatewayHome(one.folder.parent.parent)
    there, *mine, late = (one.write(b"a photo", KEY.replace("aabb", f"aa{number:02}")) for number in range(4))
    await one.files.put(there)
    now = time.time()
    for age, path in zip((100, 86_400, 100 * 86_400), (there, *mine), strict=True):
        os.utime(path, (now - age, now - age))
    home.journal.touch()
    os.utime(home.journal, (now - 3 * 86_400,) * 2)
    await one.files.put_earlier(home.journal, home.shared_files)
    assert [found.key for found in await one.engine.files.list()] == [str(key_of(path)) for path in (there, mine[0])]
    os.utime(late, (now, now))
    await one.files.put_earlier(home.journal, home.shared_files)
    assert await other.files.find(str(late)) == str(late), "whoever takes it in puts it there now"
    assert (await other.files.find(str(mine[0]))).startswith(str(other.folder))


async def test_what_is_removed_goes_from_all_gateways_with_what_was_made_of_it(homes: tuple[Home, Home]) -> None:
    one, other = homes
    made, photo = one.write(b"small", KEY.replace(".jpg", "-1.jpg")), one.write(b"a photo")
    for path in (made, photo):
        await one.files.put(path)
        assert await other.files.find(str(path)) != str(path)
    stays = other.write(b"mine", "net/7/notes.md")
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        stack.callback(tasks.cancel_scope.cancel)
        await tasks.start(JournalFollower(other.engine, RemovalFollower(other.engine, other.folder)).run)
        await remove_files(one.engine, [photo])
        await until(lambda: [one for one in other.folder.rglob("*") if one.is_file()] == [stays], "the end of it")
    assert await one.engine.files.list() == []
    anew = other.write(b"it came again")
    os.utime(anew, (time.time() + 60,) * 2)
    old = other.write(b"this did not", KEY.replace("aabb", "aacc"))
    await remove_files(one.engine, [old])
    await RemovalFollower(other.engine, other.folder).load()
    assert (anew.exists(), old.exists()) == (True, False)


async def test_somebody_s_files_are_shown_and_forgotten_wherever_they_came_in(
    homes: tuple[Home, Home], tmp_path: Path
) -> None:
    one, other = homes
    engine, person = other.engine, Person("net", "7")
    stays = ("net/8/00112233445566778899aabb", "net/chat.7/00112233445566778899aabb", "nets/7/00112233445566778899aabb")
    theirs = (KEY, "net%3Awork/7/00112233445566778899aabb.ogg")
    for key in (*theirs, *stays):
        await one.files.put(one.write(key.encode(), key))
    search = SessionSearch(engine, tmp_path / "search.db")
    wrote = one.write(b"net/7/notes.md", "net/7/notes.md")
    await SharedFolders(one.engine, one.folder).put(make_chat_folder(wrote.parent))
    sessions, memory, folders = (
        SessionRepository(engine),
        FileMemory(tmp_path / "memory"),
        SharedFolders(engine, other.folder),
    )
    traces = PersonTraces(engine, sessions, search, memory, other.folder, other.files, folders)
    found = await traces.fetch_files(person)
    assert [path.read_bytes().decode() for path in found] == [theirs[0], "net/7/notes.md", theirs[1]]
    usage = UsageJournal(engine, RunningTotals(time.time))
    gone = await PersonRemoval(traces, Pairings(engine), Activity(engine), usage, tmp_path / "unreadable").forget(
        person
    )
    assert gone.files == len(found)
    assert not any((other.folder / key).exists() for key in (*theirs, "net/7/notes.md"))
    assert [stored.key for stored in await engine.files.list()] == sorted(stays)
    assert await folders.list_names() == []


def test_a_key_is_known_by_the_end_of_a_path() -> None:
    assert key_of(Path(f"/home/ann/.hermes/hermes-gateway/files/{KEY}")) == KEY
    for path in (f"/files/../7/{NAME}", f"/files/net/{NAME}/y", "/files/net/7/a.md", f"/files/{NAME}", f"/a/b/{NAME}"):
        assert key_of(Path(path)) == ""
    assert digest_of(Path(f"/a/files/{KEY}")) == digest_of(Path(f"/b/files/{KEY}".replace(".jpg", "-2.jpg")))


class CutOff(io.BytesIO):
    """A file that cannot be read to its end."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise OSError("the disk is ill")
        return super().read(size)


async def test_of_what_cannot_be_read_nothing_stays_at_the_servers(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    with pytest.raises(OSError, match="the disk is ill"):
        await one.engine.files.put(KEY, CutOff(b"p" * 600_000), math.inf)
    assert isinstance(one.engine, NatsEngine)
    connection, names = one.engine._connection, one.engine._names
    assert (await connection.call(f"STREAM.INFO.{names.files}"))["state"]["messages"] == 0
    path = one.write(b"p")
    with path.open("rb") as file:
        await one.engine.files.put(KEY, file, math.inf)
    where = f"{FileNames(names.journal).file(KEY)}.*.*"
    stored = await connection.call(f"STREAM.MSG.GET.{names.files}", last_by_subj=where)
    assert LIFETIME not in base64.b64decode(stored["message"]["hdrs"]).decode(), "it stays"
