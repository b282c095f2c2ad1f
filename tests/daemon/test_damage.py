"""A gateway whose journal is damaged while it runs: it says so, and no person waits in vain."""

import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.control.client import ControlError
from gateway.errors import GatewayError
from gateway.records import subjects
from gateway.testing import GatewayProcess
from tests.web.visits import send

SLOW = {"user": "slow", "answers": [{"chunks": ["at ", "last"], "delay": "6s"}]}
QUICK = {"user": "hello", "answers": [{"text": "here"}]}
MANY = 40  # conversations
KEY = "agent:main:terminal:dm:main"


def cut_off(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.truncate(8192)


def overwrite(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.write(b"\xff" * journal.stat().st_size)


def take_away(journal: Path) -> None:
    shutil.rmtree(journal.parent / "gone", ignore_errors=True)
    journal.unlink()


def suppressed(act: Callable[[], object]) -> None:
    with suppress(GatewayError, OSError):
        act()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(SLOW, QUICK)
        gateway.start()
        for number in range(MANY):  # so much that not all of it is written anew at the next start
            assert gateway.say(f"hello {'there ' * 200}", f"s{number}")["reply"] == "here"
        gateway.stop()  # all of it is in the file itself now
        gateway.start()
        yield gateway


def is_found(gateway: GatewayProcess) -> bool:
    """Read the overwritten data, and return True if the damage shows."""
    suppressed(lambda: gateway.call("sessions.show", {"session": "agent:main:terminal:dm:s0"}))
    return not gateway.call("status")["journal"]["ok"]


@pytest.mark.process
@pytest.mark.parametrize("damage", [cut_off, take_away, overwrite])
def test_the_status_says_so_and_who_waits_is_told(gateway: GatewayProcess, damage: Callable[[Path], None]) -> None:
    said: list[str] = []

    def wait() -> None:
        try:
            said.append(str(gateway.say("slow")))
        except ControlError as error:
            said.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
    damage(gateway.home.journal)
    gateway.until(lambda: is_found(gateway))
    status = gateway.call("status")
    assert any("journal" in line and "damaged" in line for line in status["attention"])
    assert status["intake"].startswith("stopped")
    waiting.join()
    assert "cannot be answered now" in said[0]
    with pytest.raises(ControlError, match="damaged"):
        gateway.say("hello", "another")


@pytest.mark.process
def test_a_program_is_told_nothing_of_the_files_of_a_journal_that_is_damaged(gateway: GatewayProcess) -> None:
    made = gateway.cli("keys", "new", "app", "--as", "user", "--agent", "main", "--json")
    bearer = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}", "Content_Type": "application/json"}
    url = str(gateway.call("status")["web"]["url"])
    cut_off(gateway.home.journal)
    body = b'{"model": "main", "messages": [{"role": "user", "content": "hello"}]}'
    gateway.until(lambda: send(url, "/v1/chat/completions", "POST", body, **bearer).status == 503)
    answer = send(url, "/v1/chat/completions", "POST", body, **bearer)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["message"]) == (503, "the journal takes nothing now; call again")


@pytest.mark.process
def test_a_write_ahead_log_that_was_deleted_is_said_and_loses_nothing_at_a_stop(gateway: GatewayProcess) -> None:
    assert gateway.say("hello")["reply"] == "here"
    Path(f"{gateway.home.journal}-wal").unlink()
    gateway.until(lambda: any("-wal was deleted" in line for line in gateway.call("status")["attention"]))
    assert gateway.say("hello", "late")["reply"] == "here"
    gateway.stop()
    gateway.start()
    assert gateway.call("sessions.show", {"session": "agent:main:terminal:dm:late"})["entries"]


@pytest.mark.process
def test_a_damaged_conversation_says_so_all_others_go_on_and_it_can_be_forgotten(gateway: GatewayProcess) -> None:
    assert gateway.say("hello")["reply"] == "here"
    gateway.stop()
    with closing(sqlite3.connect(gateway.home.journal)) as db, db:
        turn = subjects.session_subject_of("turn", KEY)
        db.execute("UPDATE log SET data = CAST(replace(data, 'here', 'hare') AS BLOB) WHERE subject = ?", (turn,))
    gateway.start()
    assert "was damaged on the disk" in gateway.say("hello")["reply"]
    assert gateway.say("hello", "s1")["reply"] == "here"
    assert len(gateway.call("sessions.list")["sessions"]) == MANY + 1
    assert any(subjects.token_of(KEY) in line for line in gateway.call("status")["attention"])
    gateway.call("sessions.delete", {"session": KEY})
    assert gateway.say("hello")["reply"] == "here"


@pytest.mark.process
def test_a_conversation_that_was_damaged_with_a_turn_in_it_is_told_once_and_can_begin_anew(
    gateway: GatewayProcess,
) -> None:
    waiting = threading.Thread(target=lambda: suppressed(lambda: gateway.say("slow")))
    waiting.start()
    turn = (subjects.session_subject_of("turn", KEY),)
    with closing(sqlite3.connect(gateway.home.journal)) as db:  # a turn runs a moment before its claim is there
        gateway.until(lambda: db.execute("SELECT count(*) FROM log WHERE subject = ?", turn).fetchone()[0])
    gateway.kill()
    waiting.join()
    with closing(sqlite3.connect(gateway.home.journal)) as db, db:
        db.execute("UPDATE log SET data = CAST(replace(data, 'main', 'mean') AS BLOB) WHERE subject = ?", turn)
    for _ in range(2):
        gateway.start()
        gateway.until(lambda: any(f"sessions delete {KEY}" in line for line in gateway.call("status")["attention"]))
        assert gateway.say("hello", "s1")["reply"] == "here"
        _, _, logged = gateway.stop()
        assert logged.count("cannot go on") == 1
    with closing(sqlite3.connect(gateway.home.journal)) as db:
        told = db.execute("SELECT count(*) FROM log WHERE msg_id LIKE 'damaged:%'").fetchone()
    assert told == (1,)
    gateway.start()
    gateway.call("sessions.delete", {"session": KEY})
    assert gateway.say("hello")["reply"] == "here"
    assert not any(KEY in line for line in gateway.call("status")["attention"])
