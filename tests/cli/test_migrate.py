"""A home's journal goes to a real NATS server and comes back: each gateway goes on where the last one was."""

import json
import socket
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.cluster.files import SharedFiles
from gateway.cluster.folders import SharedFolders
from gateway.cluster.nats.engine import open_nats
from gateway.cluster.sqlite_journal import open_journal_file
from gateway.cluster.stored_journal import JournalDigest
from gateway.engine.interface import ConsumerSpec, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import GatewayError
from gateway.files.agent_folders import SharedFolder, make_chat_folder
from gateway.testing import GatewayProcess
from tests.engine.nats_servers import NatsServer, run_servers
from tests.http_server import find_free_ports

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(20)], "delay": "150ms"}]}
SOON = 0.3  # seconds: nothing is moved by then
PHOTO = "00112233445566778899aabb.jpg"
SCRIPT: tuple[dict[str, Any], ...] = (*[SLOW] * 6, *({"user": "", "text": "I heard you."},) * 40)
HOOK = """
from pathlib import Path
HERE = Path({folder!r})
def handle(event_type, context):
    if event_type == "agent:end" and (HERE / "closed").exists():
        raise RuntimeError("closed")
    with (HERE / "told").open("a") as told:
        print(event_type, context.get("delivery", dict()).get("key", ""), file=told)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with run_servers(tmp_path_factory.mktemp("nats"), 1) as (one,):
        yield one


class Home:
    """A gateway with a durable hook, which receives events only while nothing is `closed`, and a scheduled one."""

    def __init__(self, folder: Path, gateway: GatewayProcess, server: NatsServer) -> None:
        self.folder, self.gateway = folder, gateway
        self.url = f"{server.url}/t{uuid.uuid4().hex[:12]}"
        self.engine = f"engine: {self.url}\n"
        handler = HOOK.format(folder=str(folder))
        for name, manifest in {"tells": "events: [agent:end]", "clock": "schedule: every 1m"}.items():
            gateway.add_hook(name, {"HOOK.yaml": f"{manifest}\ndelivery: durable\n", "handler.py": handler})
        (folder / "closed").touch()

    def set_engine(self, text: str) -> None:
        self.gateway.script(*SCRIPT, settings=text)

    def be_cut_off(self) -> None:
        """The gateway is killed in the middle of a turn; where this machine stood still, the turn may be over."""
        before = len(self.list_said())
        asked = threading.Thread(target=self._ask_in_vain)
        asked.start()
        self.gateway.until(lambda: self.gateway.call("status")["turns"]["running"] or len(self.list_said()) > before)
        time.sleep(1.0)
        self.gateway.kill()
        asked.join()

    def _ask_in_vain(self) -> None:
        with suppress(GatewayError, OSError):
            self.gateway.say("slow")

    def migrate(self, to: str) -> dict[str, Any]:
        done = self.gateway.cli("migrate", "--to", to, "--json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def start(self) -> None:
        (self.folder / "closed").unlink(missing_ok=True)
        self.gateway.start()

    def list_said(self) -> list[tuple[str, str]]:
        found = list[dict[str, Any]]()
        for session in self.gateway.call("sessions.list")["sessions"][:1]:
            found = self.gateway.call("sessions.show", {"session": session["session_id"]})["entries"]
        return [(one["role"], one["content"].strip()) for one in found]

    def count_told(self, event: str) -> Counter[str]:
        told = self.folder / "told"
        lines = told.read_text().splitlines() if told.exists() else []
        return Counter(line for line in lines if line.startswith(event))

    def check(self, said: list[str], told: int) -> None:
        """Check that the cut turn has ended, each event came once, and each person has one answer."""
        self.gateway.until(lambda: len(self.list_said()) == 2 * len(said))
        self.gateway.until(lambda: len(self.count_told("agent:end")) == told)
        entries = self.list_said()
        assert [text for role, text in entries if role == "user"] == said
        assert all(text in ("I heard you.", "word19") or text.endswith("word19") for role, text in entries[1::2])
        assert set(self.count_told("agent:end").values()) <= {1}


@pytest.fixture
def home(tmp_path: Path, server: NatsServer) -> Iterator[Home]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield Home(tmp_path, gateway, server)


def test_a_gateway_goes_on_with_its_journal_on_the_servers_and_back_in_the_home(home: Home) -> None:
    gateway = home.gateway
    home.set_engine("")
    gateway.start()
    assert gateway.say("good morning")["reply"] == "I heard you."
    home.be_cut_off()
    home.set_engine(home.engine)
    photo = gateway.home.files / "net" / "7" / PHOTO
    photo.parent.mkdir(parents=True)
    photo.write_bytes(b"a photo")
    (photo.parent / "notes.md").write_text("nobody's but the agent's")
    there = home.migrate("nats")
    assert there["files"] == 1
    photo.unlink()
    assert not gateway.home.journal.exists()
    assert Path(there["kept"]).exists()
    assert there["owed"] >= 1
    home.start()
    home.check(["good morning", "slow"], told=2)
    assert gateway.say("hello")["reply"] == "I heard you."
    assert [one["snippet"] for one in gateway.call("sessions.search", {"query": "morning"})["hits"]]
    gateway.until(lambda: len(home.count_told("agent:end")) == 3)
    refused = gateway.cli("migrate", "--to", "sqlite")
    assert "hermes-gateway: a gateway serves this home" in refused.stderr
    assert "stop it first: hermes-gateway stop\n" in refused.stderr
    (home.folder / "closed").touch()
    home.be_cut_off()
    back = home.migrate("sqlite")
    assert (back["files"], photo.read_bytes()) == (1, b"a photo")
    assert back["records"] > there["records"]
    home.set_engine("")
    home.start()
    home.check(["good morning", "slow", "hello", "slow"], told=4)
    home.set_engine(home.engine)
    gateway.stop()
    refused = gateway.cli("run")
    assert refused.returncode != 0
    assert "it was taken to" in refused.stderr


async def fill(path: Path) -> JournalDigest:
    path.parent.mkdir(parents=True, mode=0o700)
    async with await open_sqlite(path) as engine:
        for part in range(6):
            await engine.append(*(NewRecord(f"gw.x.{number}", b"x" * 100, f"{part}-{number}") for number in range(800)))
        await engine.purge("gw.x.*", 2400, after=1600)
        await engine.consumer(ConsumerSpec("hook", ("gw.x.7",)))
    digest, file = JournalDigest(), await open_journal_file(path)
    for record in file.read():
        digest.add(record)
    file.close()
    return digest


def cut_off(gateway: GatewayProcess, to: str, seconds: float) -> bool:
    """Kill the command after so many seconds; false where it was through before."""
    process = gateway.spawn("migrate", "--to", to)
    with suppress(subprocess.TimeoutExpired):
        _, said = process.communicate(timeout=seconds)
        assert process.returncode == 0, said
        return False
    process.kill()
    process.communicate()
    return True


async def test_a_migration_that_is_killed_at_any_moment_is_run_again(home: Home) -> None:
    gateway, path = home.gateway, home.gateway.home.journal
    digest = await fill(path)
    home.set_engine(home.engine)
    seconds, counts = SOON, Counter[str]()
    for to in ("nats", "sqlite"):
        while cut_off(gateway, to, seconds):
            seconds, counts[to] = seconds * 1.4, counts[to] + 1
        home.migrate(to)  # and once more, where there is nothing left to do
        seconds = SOON
    assert min(counts[to] for to in ("nats", "sqlite")) > 0, counts
    file, found = await open_journal_file(path), JournalDigest()
    for record in file.read():
        found.add(record)
    assert (found.records, found.value) == (digest.records, digest.value) == (4000, digest.value)
    assert [(one.name, one.floor, len(one.owed)) for one in file.read_consumers()] == [("hook", 0, 0)]
    file.close()


async def test_what_is_not_whole_is_used_by_nobody(home: Home) -> None:
    """Each moment at which one may be cut off between the last two steps."""
    gateway, path = home.gateway, home.gateway.home.journal
    await fill(path)
    home.set_engine(home.engine)
    kept = Path(home.migrate("nats")["kept"])
    place = f"{socket.gethostname()}:{gateway.home.root.resolve()}"
    async with await open_nats(home.url, takes_marked=True) as engine:
        await engine.get_journal().set_mark(f"filled {place}")
    assert "was cut off: run it again" in " ".join(gateway.cli("run").stderr.split())
    assert home.migrate("nats")["records"] == 0
    await anyio.to_thread.run_sync(kept.rename, path)
    refused = gateway.cli("migrate", "--to", "nats")
    assert "hermes-gateway: the journal at " in refused.stderr  # a slow machine shows how far it is, first
    assert "is not empty" in refused.stderr
    assert "Traceback" not in refused.stderr
    refused = gateway.cli("migrate", "--to", "sqlite")
    assert "is there already" in refused.stderr
    await anyio.to_thread.run_sync(path.unlink)
    async with await open_nats(home.url) as engine:
        await engine.get_journal().set_mark("moved elsewhere:/home")
    refused = gateway.cli("migrate", "--to", "sqlite")
    assert "it was taken to elsewhere:/home" in refused.stderr


async def put(url: str, photo: Path) -> None:
    """It came in at another gateway, where an agent wrote down what it shows."""
    files, workspace = photo.parents[2], photo.parents[3] / "workspace"
    for folder in (photo.parent, workspace):
        await anyio.Path(folder).mkdir(parents=True)
        await anyio.Path(folder / "notes.md").write_text("The barn is red.")
    await anyio.Path(photo).write_bytes(b"a photo")
    async with await open_nats(url) as engine:
        await SharedFiles(engine.files, files).put(photo)
        root = SharedFolder("root/hermes-gateway/workspace", workspace)
        await SharedFolders(engine, files).put(make_chat_folder(photo.parent), root)


def test_a_copy_of_a_home_has_the_journal_of_the_servers_and_goes_on_elsewhere(
    home: Home, server: NatsServer, tmp_path: Path
) -> None:
    gateway, copy = home.gateway, tmp_path / "copy.tar.gz"
    home.set_engine(f"{home.engine}backup: {{every: 1h, keep: 1}}\n")
    home.start()
    assert gateway.say("good morning")["reply"] == "I heard you."
    gateway.until(lambda: len(home.count_told("agent:end")) == 1)
    photo = tmp_path / "elsewhere" / "files" / "net" / "7" / PHOTO
    anyio.run(put, home.url, photo)
    made = gateway.cli("backup", "create", str(copy), "--json")
    records = json.loads(made.stdout)["records"]
    assert records > 5
    assert json.loads(gateway.cli("backup", "create", str(tmp_path / "copy.db"), "--json").stdout)["records"] >= records
    gateway.until(lambda: len(list(gateway.home.backups.glob("*.tar.gz"))) == 1)
    assert "backup" not in " ".join(gateway.call("status")["attention"])
    assert "keeps the journal, and no file here" in gateway.cli("backup", "verify").stderr
    gateway.kill()
    (home.folder / "told").unlink()
    with GatewayProcess(tmp_path / "other" / "home") as other:
        again = Home(tmp_path, other, server)
        again.set_engine(again.engine)
        done = other.cli("backup", "restore", str(copy), "--replace")
        assert done.returncode == 0, done.stderr
        assert (other.home.files / "net" / "7" / PHOTO).read_bytes() == b"a photo"
        for folder in (other.home.files / "net" / "7", other.home.own_folder / "workspace"):
            assert (folder / "notes.md").read_text() == "The barn is red."
        again.set_engine(again.engine)
        again.migrate("nats")
        again.start()
        again.check(["good morning"], told=0)
        assert other.say("hello")["reply"] == "I heard you."
    (nobody,) = find_free_ports(1)
    home.set_engine(f"engine: nats://127.0.0.1:{nobody}\n")
    refused = gateway.cli("backup", "create", str(tmp_path / "none.tar.gz"))
    assert "no NATS server answers" in refused.stderr
    assert refused.returncode != 0
