"""The journal's troubles, as an operator of the daemon meets them."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.control.client import ControlError
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def with_answers(gateway: GatewayProcess) -> None:
    gateway.script({"user": "hello", "answers": [{"text": "hello yourself"}]})


def test_a_journal_of_a_later_version_is_refused_with_78_and_left_alone(gateway: GatewayProcess) -> None:
    with_answers(gateway)
    gateway.start()
    gateway.say("hello")
    gateway.stop()
    with closing(sqlite3.connect(gateway.home.journal)) as db:
        db.execute("PRAGMA user_version = 99")
    before = gateway.home.journal.read_bytes()
    refused = gateway.cli("run")
    assert (refused.returncode, "has version 99" in refused.stderr) == (78, True)
    assert gateway.home.journal.read_bytes() == before


def test_a_damaged_journal_is_set_aside_and_the_status_says_so(gateway: GatewayProcess) -> None:
    with_answers(gateway)
    gateway.start()
    gateway.say("hello")
    gateway.stop()
    gateway.home.journal.write_bytes(b"\xff" * 40_000)
    gateway.start()
    assert gateway.say("hello")["reply"] == "hello yourself"
    kept = min(gateway.home.own_folder.glob("journal.db.damaged-*"))  # its companions are named after it
    assert kept.read_bytes() == b"\xff" * 40_000
    assert str(kept) in gateway.call("status")["journal"]["detail"]
    assert "was damaged" in gateway.cli("status").stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root can mount a small disk: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.machine
def test_on_a_full_disk_intake_stops_visibly_and_goes_on_by_itself(small_disk: Path) -> None:
    """Who speaks meanwhile is told; what was said before is there; nobody restarts anything."""
    with GatewayProcess(small_disk / "home") as gateway:
        with_answers(gateway)
        gateway.start()
        assert gateway.call("status")["intake"] == "open"
        gateway.say("hello")
        ballast = small_disk / "ballast"
        fill(ballast)
        with pytest.raises(ControlError, match="no room for the journal"):
            talk_on(gateway)
        facts = gateway.call("status")
        assert facts["intake"].startswith("stopped: no room")
        assert any(one.startswith("journal: no room") for one in facts["attention"])
        assert "stopped: no room" in gateway.cli("status").stdout
        ballast.unlink()
        gateway.until(lambda: gateway.call("status")["intake"] == "open")
        assert gateway.say("hello again")["status"] == "ok"
        gateway.until(lambda: gateway.call("status")["backlog"]["sessions"] == 0)
        said = gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"})["entries"]
        assert [said[0]["content"], said[1]["content"], said[-2]["content"]] == [
            "hello",
            "hello yourself",
            "hello again",
        ]
        assert gateway.cli("doctor").stdout.count("journal: fine") == 1


def talk_on(gateway: GatewayProcess) -> None:
    for _ in range(1000):
        gateway.say("hello " + "x" * 5000)


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_an_answer_of_many_pieces_is_given_where_each_is_owed_to_a_hook(gateway: GatewayProcess) -> None:
    """Each is a record of its own, and all are written with the next step of the turn."""
    words = " ".join(f"w{n}" for n in range(1500))
    gateway.script({"user": "hello", "answers": [{"text": words}]})
    note = "def handle(event, context):\n    with open(__file__ + '.heard', 'a') as heard:\n        heard.write('.')\n"
    manifest = "name: pieces\nevents: ['llm:chunk']\ndelivery: durable\n"
    folder = gateway.add_hook("pieces", {"HOOK.yaml": manifest, "handler.py": note})
    gateway.start()
    assert gateway.say("hello")["reply"] == words
    heard = folder / "handler.py.heard"
    gateway.until(lambda: heard.exists() and heard.stat().st_size > 1100, 60)
