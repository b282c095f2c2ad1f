"""`state.db` for readers of Hermes's: its content, the time of its writes, and that other databases stay untouched."""

import json
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.hermes.state_follower import StateFollower
from gateway.messages.pieces import DELETED, MessageName, MessagePiece
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from gateway.sessions.transitions import begin_session
from gateway.testing import GatewayProcess
from tests.engine.memory_engine import MemoryEngine
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

READERS = Path(__file__).parent / "homes" / "readers"
SIDE = Path(__file__).with_name("hermes_gateway_side.py")
USED = {"input_tokens": 30, "output_tokens": 12, "cost": 0.25}
SCRIPT = (
    {
        "user": "use a tool",
        "answers": [
            {
                "tool_calls": [
                    {"name": "shell", "args": {"command": "printf out"}},
                    {"name": "read_file", "args": {"path": "a.txt", "first_line": 1, "lines": 5}},
                ]
            },
            {"text": "y" * 1200, "usage": USED},
        ],
    },
    {"user": "hello", "answers": [{"text": "y" * 1200, "usage": USED}]},
    {"user": "secret", "answers": [{"text": "I keep it: rosebud", "usage": USED}]},
)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT, settings="tools: {shell: allow}\n")
        yield gateway


def furnish(home: Path, *names: str) -> None:
    for kind in ("hooks", "plugins"):
        for folder in (READERS / kind).iterdir():
            if folder.name in names:
                shutil.copytree(folder, home / kind / folder.name)
    (home / "config.yaml").write_text(json.dumps({"plugins": {"enabled": list(names)}}))


def state_of(gateway: GatewayProcess) -> Path:
    return gateway.home.root / "state.db"


def rows(path: Path, sql: str, *values: Any) -> list[Any]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute(sql, values).fetchall()


def said(path: Path) -> list[str]:
    try:
        return [text for (text,) in rows(path, "SELECT content FROM messages ORDER BY id")] if path.exists() else []
    except sqlite3.OperationalError:  # it is being thrown away in this moment
        return []


def recaps(home: Path) -> list[dict[str, Any]]:
    path = home / "recap.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_loaded(gateway: GatewayProcess, name: str) -> None:
    def is_loaded() -> bool:
        return any(one["name"] == name and one["state"] == "loaded" for one in gateway.call("hooks.list")["hooks"])

    gateway.until(is_loaded)


@pytest.mark.machine
def test_a_hook_reads_of_a_conversation_what_it_reads_under_hermes(
    hermes: Path, gateway: GatewayProcess, tmp_path: Path
) -> None:
    home = tmp_path / "theirs"
    furnish(home, "recap")
    (home / "logs").mkdir()
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    done = run([str(hermes), str(SIDE), "hello", "use a tool"], env=environ, cwd=home)
    theirs = recaps(home)
    assert len(theirs) == 2, done.stdout[-3000:] + done.stderr[-3000:]

    furnish(gateway.home.root, "recap")
    gateway.start()
    for number, text in enumerate(("hello", "use a tool"), 1):
        gateway.say(text)
        gateway.until(lambda number=number: len(recaps(gateway.home.root)) == number)  # type: ignore[misc]
    for our, their in zip(recaps(gateway.home.root), theirs, strict=True):
        assert our["columns"] == their["columns"]
        assert our["session"].keys() == their["session"].keys()
        assert [without_results(one) for one in our["messages"]] == [
            without_results(one)
            for one in their["messages"]
            if one[0] != "session_meta"  # what tools Hermes offers
        ]
        for name in ("tool_call_count", "model", "title", "ended_at", "end_reason", "user_id", "chat_id", "chat_type"):
            assert our["session"][name] == their["session"][name], name
        assert [functions_of(calls) for calls in our["calls"]] == [functions_of(calls) for calls in their["calls"]]


def without_results(message: list[Any]) -> list[Any]:
    """What a tool says is each side's own."""
    role, content, *more = message
    return [role, "" if role == "tool" else content, *more]


def functions_of(calls: list[dict[str, Any]]) -> list[Any]:
    return [(one["type"], one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls]


def test_model_tokens_and_costs_are_the_real_ones(gateway: GatewayProcess) -> None:
    furnish(gateway.home.root, "cost-report", "history-search")
    gateway.start()
    wait_loaded(gateway, "cost-report")
    for text in ("hello", "secret"):
        gateway.say(text)
    gateway.until(lambda: len(said(state_of(gateway))) == 4)
    assert gateway.say("/usage")["reply"].strip() == "script: 84 tokens, $0.5, 1 sessions"
    prices = gateway.home.root / "prices.txt"
    gateway.until(lambda: prices.exists() and len(prices.read_text().splitlines()) == 2)
    keys = ["assistant_response", "conversation_history", "platform", "task_id", "telemetry_schema_version"]
    assert prices.read_text().splitlines()[0] == f"script 12 0.25 {[*keys, 'turn_id', 'user_message']}"


def test_a_connection_that_is_kept_sees_what_follows(gateway: GatewayProcess) -> None:
    furnish(gateway.home.root, "history-search")
    gateway.start()
    gateway.say("secret")
    gateway.until(lambda: len(said(state_of(gateway))) == 2)
    assert gateway.say("/find rosebud")["reply"] == "terminal assistant: I keep it: rosebud"


def test_it_is_written_once_a_hook_reads_it_and_then_has_all_that_was_said_before(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.say("hello")
    time.sleep(0.5)
    assert not state_of(gateway).exists()
    gateway.add_hook("recap", READERS / "hooks" / "recap")
    wait_loaded(gateway, "recap")
    assert said(state_of(gateway)) == ["hello", "y" * 1200]
    assert stat.S_IMODE(state_of(gateway).stat().st_mode) == 0o600
    assert "state.db: written for it" in gateway.cli("hooks", "info", "recap").stdout
    shutil.rmtree(gateway.home.hooks / "recap")
    gateway.stop()
    gateway.start()
    gateway.until(lambda: not state_of(gateway).exists())


def test_off_means_off_and_on_means_on(gateway: GatewayProcess) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: 'off'}\n")
    furnish(gateway.home.root, "recap")
    gateway.start()
    wait_loaded(gateway, "recap")
    gateway.say("hello")
    assert not state_of(gateway).exists()
    assert "state_db: off" in gateway.cli("hooks", "info", "recap").stdout
    gateway.stop()
    shutil.rmtree(gateway.home.hooks / "recap")
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    gateway.start()
    gateway.until(lambda: len(said(state_of(gateway))) == 2)


def test_what_is_forgotten_or_undone_is_gone_within_a_second(gateway: GatewayProcess) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    gateway.start()
    gateway.say("secret")
    gateway.say("hello", session="other")
    gateway.until(lambda: len(said(state_of(gateway))) == 4)
    assert "rosebud" in everything(gateway)
    done = gateway.cli("sessions", "delete", "agent:main:terminal:dm:main", "--yes")
    assert done.returncode == 0, done.stderr
    gateway.until(lambda: said(state_of(gateway)) == ["hello", "y" * 1200])
    assert rows(state_of(gateway), "SELECT session_key FROM sessions") == [("agent:main:terminal:dm:other",)]
    gateway.until(lambda: "rosebud" not in everything(gateway))
    gateway.say("/undo", session="other")
    gateway.until(lambda: said(state_of(gateway)) == [])


async def test_what_its_author_took_back_is_gone_from_it(tmp_path: Path) -> None:
    name, path = MessageName("slack", "D1", "5.5"), tmp_path / "state.db"
    entries = (Entry("user", "the word is rosebud"), Entry("assistant", "well"))
    done = records.TurnEnded(upto=1, entries=entries, pieces=(MessagePiece(name=name, by="slack:U1"),))
    async with MemoryEngine() as engine, anyio.create_task_group() as tasks:
        sessions = SessionRepository(engine)
        session = await sessions.open("agent:main:slack:dm:D1")
        session = await sessions.append(session, begin_session(session, 0.0), done)
        tasks.start_soon(StateFollower(path, engine, "on").run, anyio.lowlevel.checkpoint)
        await until(lambda: said(path) == ["the word is rosebud", "well"], "what was said")
        await sessions.append(session, records.MessageDeleted(session_key=session.key, name=name))
        await until(lambda: said(path) == [DELETED, "well"], "the deletion")
        await until(lambda: not any(b"rosebud" in one.read_bytes() for one in tmp_path.glob("state.db*")), "the file")
        for number in range(8):
            other = await sessions.open(f"agent:main:slack:dm:{number}")
            again = records.TurnEnded(upto=1, entries=(Entry("user", "hello"),))
            await sessions.append(other, begin_session(other, 0.0), again)
        await until(lambda: said(path).count("hello") == 8, "each of them, once")
        tasks.cancel_scope.cancel()
    async with MemoryEngine() as engine, anyio.create_task_group() as tasks:  # another journal
        tasks.start_soon(StateFollower(path, engine, "on").run, anyio.lowlevel.checkpoint)
        await until(lambda: said(path) == [], "none of it")
        tasks.cancel_scope.cancel()


async def test_a_file_of_a_journal_in_shards_is_made_anew(tmp_path: Path) -> None:
    """0.1.0 kept a list there, a number for each shard."""
    path, entries = tmp_path / "state.db", (Entry("user", "hello"), Entry("assistant", "well"))

    def is_made() -> bool:
        with suppress(sqlite3.OperationalError):
            return rows(path, "SELECT typeof(upto) FROM hermes_gateway") == [("integer",)]
        return False

    async with MemoryEngine() as engine:
        sessions = SessionRepository(engine)
        session = await sessions.open("agent:main:slack:dm:D1")
        await sessions.append(session, begin_session(session, 0.0), records.TurnEnded(upto=1, entries=entries))
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(StateFollower(path, engine, "on").run, anyio.lowlevel.checkpoint)
                await until(is_made, "the file")
                await until(lambda: said(path) == ["hello", "well"], "what was said, once")
                tasks.cancel_scope.cancel()
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("UPDATE hermes_gateway SET upto = '[2,1099511627783]'")


def everything(gateway: GatewayProcess) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in gateway.home.root.glob("state.db*"))


def test_a_reset_and_a_title_are_in_it_and_a_restart_goes_on_where_it_was(gateway: GatewayProcess) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    gateway.start()
    for text in ("hello", "/title Greetings", "/new", "secret"):
        gateway.say(text)
    path = state_of(gateway)
    gateway.until(lambda: len(said(path)) == 4)
    sql = "SELECT id, title, ended_at IS NOT NULL, end_reason, source, user_id FROM sessions ORDER BY started_at"
    first, second = rows(path, sql)
    assert first[1:] == ("Greetings", 1, "session_reset", "terminal", "owner")
    assert second[1:] == (None, 0, None, "terminal", "owner")
    before = rows(path, "SELECT id, timestamp, content FROM messages ORDER BY id")
    gateway.kill()
    gateway.start()
    gateway.say("hello")
    gateway.until(lambda: len(said(path)) == 6)
    assert rows(path, "SELECT id, timestamp, content FROM messages ORDER BY id")[:4] == before


@pytest.mark.parametrize("content", [b"", b"not a database", None, "link"])
def test_what_is_not_ours_is_never_written(gateway: GatewayProcess, tmp_path: Path, content: Any) -> None:
    path, there = state_of(gateway), tmp_path / "elsewhere.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        at = there if content else path
        with sqlite3.connect(at) as db:
            db.execute("CREATE TABLE sessions(id TEXT)")
        if content:
            path.symlink_to(there)
    before = path.read_bytes(), path.stat().st_mtime_ns
    furnish(gateway.home.root, "recap")
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    gateway.start()
    wait_loaded(gateway, "recap")
    gateway.say("hello")
    if content == b"":  # nobody's: sqlite3 makes such a file when somebody only looks
        gateway.until(lambda: len(said(path)) == 2)
        return
    time.sleep(1)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert "never written" in gateway.cli("hooks", "info", "recap").stdout
    assert not list(gateway.home.root.glob("state.db-*"))
    assert not gateway.home.hermes_sessions.exists()


@pytest.mark.parametrize(
    ("sql", "verdict"),
    [
        ("INSERT INTO sessions(id, source, started_at) VALUES ('theirs', 'cli', 1)", "degrades"),
        ("UPDATE messages SET content = 'theirs'", "degrades"),
        ("CREATE TABLE theirs(id TEXT)", "off"),
        ("PRAGMA application_id = 7", "off"),
    ],
)
def test_as_soon_as_anybody_else_has_written_to_ours_it_is_left(
    gateway: GatewayProcess, sql: str, verdict: str
) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    furnish(gateway.home.root, "recap")
    gateway.start()
    gateway.say("hello")
    path = state_of(gateway)
    gateway.until(lambda: len(said(path)) == 2)
    with sqlite3.connect(path) as db:
        db.execute(sql)
    for _ in range(2):
        gateway.say("secret")
        gateway.until(lambda: "never written" in gateway.cli("hooks", "info", "recap").stdout)
        assert len(said(path)) == 2
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 0)
        assert verdict_on_state(gateway) == verdict
        gateway.stop()
        assert verdict_on_state(gateway) == verdict
        gateway.start()


def test_a_program_that_writes_to_ours_does_not_stop_the_list_of_sessions(gateway: GatewayProcess) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    furnish(gateway.home.root, "recap")
    gateway.start()
    gateway.say("hello")
    gateway.until(lambda: len(said(state_of(gateway))) == 2)
    with sqlite3.connect(state_of(gateway)) as db:
        db.execute("UPDATE messages SET content = 'theirs'")
    gateway.say("hello", session="second")
    gateway.until(lambda: "to get a new one" in gateway.cli("hooks", "info", "recap").stdout)
    gateway.say("hello", session="third")
    listed = gateway.home.hermes_sessions
    gateway.until(lambda: listed.exists() and "third" in listed.read_text())


def verdict_on_state(gateway: GatewayProcess) -> str:
    rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
    (verdict,) = [row["verdict"] for row in rows if row["name"] == "state.db"]
    return str(verdict)


def test_one_that_was_thrown_away_or_is_of_another_journal_is_made_anew(gateway: GatewayProcess) -> None:
    gateway.script(*SCRIPT, settings="sessions: {state_db: on}\n")
    gateway.start()
    gateway.say("hello")
    path = state_of(gateway)
    gateway.until(lambda: len(said(path)) == 2)
    for file in gateway.home.root.glob("state.db*"):
        file.unlink()
    gateway.say("secret")
    gateway.until(lambda: len(said(path)) == 4)
    gateway.stop()
    for file in gateway.home.own_folder.glob("journal.db*"):
        file.unlink()
    gateway.start()
    gateway.until(lambda: path.exists() and said(path) == [])


COUNTS = """
import os, sqlite3


def handle(event_type, context):
    home = os.environ["HERMES_HOME"]
    with sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True) as db:
        found = db.execute("SELECT count(*) FROM sessions WHERE id = ?", (context["session_id"],)).fetchone()[0]
    with open(f"{home}/counted", "a") as file:
        file.write(f"{found}\\n")
"""


def test_a_session_is_in_it_when_a_hook_hears_that_it_starts(gateway: GatewayProcess) -> None:
    gateway.add_hook("counts", {"HOOK.yaml": "events: ['session:start']\n", "handler.py": COUNTS})
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "counts"})["state"] == "loaded")
    for session in ("first", "second"):
        gateway.say("hello", session)
    counted = gateway.home.root / "counted"
    gateway.until(lambda: counted.exists() and counted.read_text() == "1\n1\n")
