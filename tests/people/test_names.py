"""Names of people and chats: as their networks say them, wherever one is shown, and for no other purpose."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.dispatcher.chat_names import ChatNames
from gateway.engine.interface import Engine
from gateway.engine.sqlite.backup import read_in
from gateway.logs.signs import as_shown_name
from gateway.messages.message import Address, Message
from gateway.messages.roles import Role
from gateway.records import names as records_names
from gateway.records import subjects
from gateway.records.names import KnownNames
from gateway.records.records import KnownName
from gateway.sessions.answers import sessions_list
from gateway.sessions.search import SessionSearch
from gateway.sessions.search_index import SearchIndex
from gateway.sessions.verbs import SessionListParams
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.engine.memory_engine import MemoryEngine
from tests.spine import engine, until
from tests.waits import Stopwatch

__all__ = ["engine"]

SHARED = "1003"
SETTINGS = f"""
access:
  owners: {{telegram: ["{ANN}"]}}
  users: {{telegram: ["{BEN}", "{SHARED}"]}}
  tools: {{user: all}}
  chats: {{telegram: ["{GROUP}"]}}
  groups: {{ops: {{people: [telegram:1009], role: operator}}}}
sessions: {{per_user_in_groups: false}}
budgets: {{each_person: {{day: {{tokens: 1000000}}}}}}
platforms: {{telegram: {{require_mention: false}}}}
tools: {{approvers: [owner], shell: ask}}
"""
TURNS = (
    {"user": "run", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "true"}}]}, {"text": "Done."}]},
    *({"text": "I heard you."},) * 20,
)


def said(name: str, user: str = "1", chat: str = "", chat_name: str = "", **more: Any) -> Message:
    address = Address("net", chat, "group", **more) if chat else Address("net", user, **more)
    return Message("m", address, user, "hi", user_name=name, extra={"chat_name": chat_name} if chat_name else {})


def note(names: KnownNames, *messages: Message, role: Role = "user") -> None:
    for message in messages:
        names.note(message, role)


async def count(engine: Engine) -> int:
    return len(await engine.read(subjects.NAME_SUBJECTS))


async def test_a_name_is_written_when_it_is_new_or_has_changed(engine: Engine) -> None:
    names, other = KnownNames(engine), KnownNames(engine)
    await names.load()
    note(names, *[said("Ann")] * 2, *[said("Ann", chat="-7", chat_name="Ops")] * 2)
    await names.flush()
    written = await engine.read(subjects.NAME_SUBJECTS)
    assert len(written) == 2, "a person and a chat, each once"
    note(names, *[said("Ann")] * 20)
    await names.flush()
    assert await engine.read(subjects.NAME_SUBJECTS) == written
    note(names, said("Anna"), said("", user="2"), said("3", user="3"), said("web:5", user="web:5"))
    await names.flush()
    await other.load()
    for table in (names, other):
        assert table.describe(["net:1", "net:-7", "net:2", "net:3", "web:net:1"]) == {
            "net:1": {"name": "Anna", "is_shared": False},
            "net:-7": {"name": "Ops", "is_shared": False},
            "web:net:1": {"name": "Anna", "is_shared": False},
        }
    assert await count(engine) == 2, "the old name is gone"


async def test_a_forgotten_name_is_in_no_gateway_and_not_in_the_journal(engine: Engine) -> None:
    names, other = KnownNames(engine), KnownNames(engine)
    note(names, said("Ann"), said("Ben", user="2"))
    await names.flush()
    note(names, said("Annika"))  # not yet written
    for record in await engine.read(subjects.NAME_SUBJECTS):
        await other.take(record)
    assert set(other.people.known) == {"net:1", "net:2"}
    for table in (names, other):
        await table.forget("net:1")
        await table.flush()
        assert set(table.people.known) == {"net:2"}
    assert [json.loads(one.data)["name"] for one in await engine.read(subjects.NAME_SUBJECTS)] == ["Ben"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        (" Ann \n\t Lee ", "Ann Lee"),
        ("Ann\u202egpj.exe", "Anngpj.exe"),
        ("\u2066A\u200bn\u200dn\u2069\ufeff", "Ann"),
        ("\x1b[31mAnn\x07\r", "[31mAnn"),
        ("A\u0301\u0301\u0301\u0301\u0301nn", "\u00c1\u0301\u0301nn"),
        ("\u05d0\u05d1\u05d2", "\u05d0\u05d1\u05d2"),
        ("\U000e0041\u3164\u2800Ann", "Ann"),
        ("\ud800Ann", "Ann"),
        ("x" * 100_000, "x" * 60),
        ("\u200b\u2060", ""),
    ],
)
def test_a_name_is_one_line_of_signs_that_are_seen(name: str, shown: str) -> None:
    assert as_shown_name(name) == shown
    assert as_shown_name(shown) == shown
    assert shown.isprintable(), "so an operator sees it"


def test_a_name_that_does_not_say_who_it_is_needs_the_id() -> None:
    names = KnownNames(MemoryEngine())
    called = ("Ann", "\uff21nn", "A NN", "Ben", "net:1", "Owner", "1001", "terminal")
    note(names, *(said(name, user=f"u{at}") for at, name in enumerate(called)))
    shared = [name for at, name in enumerate(called) if names.people.is_shared(f"net:u{at}")]
    assert shared == [name for name in called if name != "Ben"]
    note(names, said("Annabel", user="u0"), said("Anton", user="u1"))
    assert not names.people.is_shared("net:u2"), "the others have other names now"


def test_no_crowd_and_no_renaming_fills_the_memory() -> None:
    names = KnownNames(MemoryEngine())
    most = records_names.MOST_NAMES
    for at in range(most + 10):
        names.note(said(f"Name {at}", user=str(at)), "guest")
    assert len(names.people.known) == most
    assert "net:0" not in names.people.known
    for at in range(most):
        names.note(said(f"Other {at}", user="0"), "guest")
    assert len(names.people.known) == most
    assert len(names._said) <= most


@pytest.mark.parametrize(
    ("key", "chat"),
    [
        ("agent:main:net:group:-7", "net:-7"),
        ("agent:main:net:group:-7:12:1001", "net:-7"),
        ("agent:main:net:work:forum:-7:12", "net:work:-7"),
        ("agent:main:net:group:!a:b.org:1001", "net:!a:b.org"),
        ("agent:main:net:group:-8", ""),
        ("agent:main:net:dm:-7", ""),
        ("agent:main:net:dm:group:-7", ""),
        ("anything", ""),
        ("", ""),
    ],
)
def test_the_chat_of_a_session_is_found_by_its_key(key: str, chat: str) -> None:
    names = KnownNames(MemoryEngine())
    for known in ("net:-7", "net:work:-7", "net:!a:b.org"):
        names.learn(KnownName(of=known, name="Ops", is_chat=True))
    assert names.find_chat(key) == chat


def test_a_chat_is_found_by_its_name_and_knows_who_has_written_there() -> None:
    names = KnownNames(MemoryEngine())
    for guild, chat in (("Home", "1"), ("Work", "2")):
        message = said("Ann", chat=chat, chat_name="general")
        message.extra["guild_name"] = guild
        names.note(message, "guest")
    note(names, said("Ann", chat="3", chat_name="Ops"), role="admin")
    note(names, said("Ben", chat="3", chat_name="Ops"), role="guest")
    thread = said("Ann", chat="4", chat_name="a thread")
    thread.extra["parent_chat"] = "4"
    note(names, thread)
    chats = ChatNames(names, dict, dict)
    assert [one.of for one in chats.list_known("net", "#General")] == ["net:1", "net:2"]
    assert [one.of for one in chats.list_known("net", "#general", "work")] == ["net:2"]
    assert [one.is_trusted for one in chats.list_known("net", "ops")] == [True]
    assert chats.list_known("other", "ops") == chats.list_known("net", "a thread") == []


async def test_ten_thousand_sessions_are_searched_and_sorted_at_once(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "search.db")
    columns = "conv, id, key, platform, user_id, reason, origin, title, began, last_active, turns"
    rows = [
        (at, f"s{at:05}", f"agent:main:net:dm:{at % 1000}", "net", str(at % 1000), "", "", f"T {at}", at, at, at % 7)
        for at in range(10_000)
    ]
    with index.db:
        index.db.executemany(f"INSERT INTO session({columns}) VALUES ({', '.join('?' * 11)})", rows)
    index.db.close()
    engine = MemoryEngine()
    names, search = KnownNames(engine), SessionSearch(engine, tmp_path / "search.db")
    for at in range(1000):
        names.learn(KnownName(of=f"net:{at}", name=f"Person {at:03}"))
    ask = partial(sessions_list, search, names)
    await ask(SessionListParams())
    with Stopwatch() as watch:
        found = await ask(SessionListParams(search="person 042", sort="name", limit=4))
        more = await ask(SessionListParams(search="person 042", sort="name", limit=100, after=found["next"]))
        by_name = await ask(SessionListParams(sort="name", limit=12))
        longest = await ask(SessionListParams(sort="turns", person="net:3"))
    assert watch.seconds < 1.2, "four of them"
    assert (len(found["sessions"]), len(more["sessions"])) == (4, 6)
    assert {one["user_id"] for one in (*found["sessions"], *more["sessions"])} == {"42"}
    assert found["names"] == {"net:42": {"name": "Person 042", "is_shared": False}}
    assert [one["user_id"] for one in by_name["sessions"]] == ["0"] * 10 + ["1"] * 2
    turns = [one["turns"] for one in longest["sessions"]]
    assert (turns, len(turns)) == (sorted(turns, reverse=True), 10)
    assert [one["title"] for one in (await ask(SessionListParams(search="t 777")))["sessions"]][-1] == "T 777"
    await search.close()


def test_no_code_that_decides_about_rights_knows_names() -> None:
    house = Path(records_names.__file__).parents[1]
    deciding = [*(house / "access").glob("*.py"), *(house / "questions").glob("*.py"), *(house / "chats").glob("*.py")]
    assert len(deciding) > 15
    assert not [path.name for path in deciding if "records.names" in path.read_text("utf-8")]


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*TURNS, settings=SETTINGS)
        gateway.environ |= wire.environ
        gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        await to_thread.run_sync(gateway.start)
        yield gateway


async def write(wire: TelegramWire, text: str, by: str, name: str, chat: str = "") -> None:
    message = wire.message(by, chat or by, text=text)
    message["from"] = {**message["from"], "first_name": name}
    if chat:
        message["chat"] = {**message["chat"], "title": "Ops\u202e room"}
    before = len(wire.shown)
    wire.told(message)
    await until(lambda: len(wire.shown) > before, f"the answer to {text}")


async def cli(gateway: GatewayProcess, *args: str) -> str:
    done = await to_thread.run_sync(partial(gateway.cli, *args))
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


async def call(gateway: GatewayProcess, verb: str, **params: Any) -> Any:
    return await to_thread.run_sync(gateway.call, verb, params)


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_people_and_chats_are_shown_by_name_everywhere(wire: TelegramWire, gateway: GatewayProcess) -> None:
    await write(wire, "hello", ANN, "Ann\u200b Lee")
    await write(wire, "hello", BEN, "Ben")
    await write(wire, "hello", SHARED, "ben")
    await write(wire, "hello all", BEN, "Ben", chat=GROUP)
    await write(wire, "/platform", ANN, "Ann Lee")
    listed = await cli(gateway, "people", "list")
    assert f"Ann Lee telegram:{ANN} owner 1" in listed
    assert f"Ben telegram:{BEN} user" in await cli(gateway, "people", "list", "--search", "BEN", "--sort", "sessions")
    assert ANN not in await cli(gateway, "people", "list", "--search", "ben")
    assert (await call(gateway, "people.list", role="operator"))["people"][0]["person"] == "telegram:1009"
    used = await cli(gateway, "usage")
    assert "Ann Lee 1" in used
    assert f"Ben (telegram:{BEN}) 2" in used
    assert "each_person Ann Lee 2" in used
    assert "Ann Lee 1" not in await cli(gateway, "usage", "--search", "ben")
    sessions = await cli(gateway, "sessions", "list")
    assert "Ann Lee 1" in sessions
    assert "Ops room" in sessions
    assert "Ops room" in await cli(gateway, "sessions", "list", "--search", "ops")
    assert "Ann" not in await cli(gateway, "sessions", "list", "--search", "ops")
    assert "Ann Lee" in await cli(gateway, "status")
    wire.told(wire.message(BEN, BEN, text="run"))  # by his usual name, Person 1002
    await until(lambda: any("Person 1002" in one.text for one in wire.shown if one.chat == ANN), "the question")
    assert "Person 1002 (telegram 1002)" in await cli(gateway, "approvals")
    assert "allowed by access.owners" in await cli(gateway, "people", "show", f"telegram:{ANN}")
    assert "people.show Ann Lee" in await cli(gateway, "activity", "list", "--what", "people.*")


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_a_name_opens_no_door_and_goes_with_its_person(wire: TelegramWire, gateway: GatewayProcess) -> None:
    await write(wire, "hello", ANN, "canaryname")
    taken = wire.message(STRANGER, STRANGER, text="let me in")
    taken["from"] = {**taken["from"], "first_name": "canaryname", "username": f"telegram:{ANN}"}
    before = len(wire.shown)
    wire.told(taken)
    await until(lambda: len(wire.shown) > before, "the pairing code")
    assert f"telegram:{STRANGER}" not in await cli(gateway, "people", "list")
    for named in ("canaryname", "telegram:canaryname"):
        done = await to_thread.run_sync(partial(gateway.cli, "pairing", "revoke", "telegram", named.rpartition(":")[2]))
        assert done.returncode != 0
        shown = await to_thread.run_sync(partial(gateway.cli, "people", "show", named))
        assert ANN not in shown.stdout
    assert "canaryname" in await cli(gateway, "people", "list")
    await cli(gateway, "people", "forget", f"telegram:{ANN}", "--yes")
    assert "canaryname" not in await cli(gateway, "people", "list")
    asking = (await call(gateway, "pairing.list"))["asking"]
    assert [one["user_id"] for one in asking] == [STRANGER], "who has not been let in, and has the same name"
    kept = await to_thread.run_sync(read_in, gateway.home.journal, subjects.NAME_SUBJECTS, 100)
    assert not [one for one in kept if b"canaryname" in one.data]
