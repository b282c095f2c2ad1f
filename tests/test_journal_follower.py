"""Two gateways and one journal: what one changes the other knows within a second, once, also after it was cut off.

Nothing is looked for from time to time: what one is not told, one waits for in vain.

On NATS each has a connection of its own, and one of them is cut and comes back; the file of one machine says the same.
"""

import json
import os
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.access.access_control import AccessControl
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules
from gateway.agent import Skill
from gateway.agent.toolbox.memory import FileMemory
from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.cluster.nats.engine import open_nats
from gateway.cluster.removals import ForgottenPeople
from gateway.config.home import Home
from gateway.daemon.shared_memory import SharedMemory
from gateway.daemon.skill_hooks import SkillHooks
from gateway.engine.interface import Engine, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import AccessError, SessionError
from gateway.hooks import HookRegistry
from gateway.hooks.folders.shared_switches import SharedSwitches
from gateway.hooks.places.switches import HookSwitches
from gateway.messages.message import Address, Message
from gateway.messages.pieces import MessageName
from gateway.messages.steps import VERSION
from gateway.messages.transcript import Usage
from gateway.people.person import Person, find_pseudonym
from gateway.records import records, subjects
from gateway.records.follower import JournalFollower, LastRecord, RecordCopy
from gateway.records.names import KnownNames
from gateway.records.records import KnownName, ProgramKeyState
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.totals import RunningTotals
from gateway.usage.turn_usage import TurnUsage, UsageOrigin
from gateway.usage.usage_journal import UsageJournal
from gateway.web.logins import Logins
from gateway.web.program_keys import ProgramKeys
from tests.engine.cut_line import CutLine, open_line
from tests.engine.nats_servers import run_servers
from tests.spine import until

BY = "whoever tries codes"
HOOKS = HookRegistry().scope({})


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_servers(tmp_path_factory.mktemp("nats"), 1) as (server,):
        yield server.url


@dataclass
class Journals:
    """The same journal as two gateways have it; `line` leads the second one to it, where it is not at hand."""

    one: Engine
    other: Engine
    line: CutLine | None

    async def cut(self) -> None:
        if self.line:
            await self.line.cut()

    async def mend(self) -> None:
        if self.line:
            await self.line.mend()


@pytest.fixture(params=["sqlite", "nats"])
async def journals(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journals]:
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            engine = await stack.enter_async_context(await open_sqlite(tmp_path / "journal.db"))
            yield Journals(engine, engine, None)
            return
        url, name = request.getfixturevalue("nats_server"), uuid.uuid4().hex[:12]
        line = await stack.enter_async_context(open_line(url))
        one = await stack.enter_async_context(await open_nats(f"{url}/{name}"))
        other = await stack.enter_async_context(await open_nats(f"{line.url}/{name}"))
        yield Journals(one, other, line)


@asynccontextmanager
async def following(engine: Engine, *copies: RecordCopy) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        follower = JournalFollower(engine, *copies)
        await follower.load()
        tasks.start_soon(follower.run)
        yield
        tasks.cancel_scope.cancel()


def asked(user: str) -> Message:
    return Message("1", Address("net", f"chat{user}", "dm"), user, "hello")


async def test_people_are_let_in_and_shut_out_everywhere(journals: Journals) -> None:
    one, other = (AccessControl(AccessRules("pair", 30), Pairings(at)) for at in (journals.one, journals.other))
    async with following(journals.one, one.pairings.last), following(journals.other, other.pairings.last):
        code = await one.invite(asked("3"))
        await until(lambda: other.pairings.asking)
        await other.pairings.approve(code, BY)
        await until(lambda: one.find_role(asked("3")) == "user")
        await one.pairings.revoke("net", "3")
        await until(lambda: other.find_role(asked("3")) is None)
        await one.pairings.keep_owners({"net": "7"})
        await until(lambda: other.pairings.owners)
        assert other.owners == {}, "no list names them there"


async def test_who_owns_the_home_is_known_to_all_and_written_once(journals: Journals) -> None:
    rules = AccessRules("pair", 30, users={"net": frozenset({"7"})})
    one, other = (AccessControl(rules, Pairings(at)) for at in (journals.one, journals.other))
    async with following(journals.one, one.pairings.last), following(journals.other, other.pairings.last):
        await one.apply_rules(rules)
        await until(lambda: other.pairings.owners)
        (before,) = await journals.one.read(subjects.ACCESS_SUBJECT)
        await other.apply_rules(rules)
        assert await journals.one.read(subjects.ACCESS_SUBJECT) == [before]
        await one.pairings.approve(await one.invite(asked("3")), BY, "admin")
        await until(lambda: other.find_role(asked("3")) == "admin")
        assert one.owners == other.owners == {"net": "7"}, "whoever is let in takes nothing from them"


async def test_what_holds_in_a_chat_holds_on_each_gateway(journals: Journals) -> None:
    one, other = ChatJournal(journals.one), ChatJournal(journals.other)
    async with following(journals.one, one), following(journals.other, other):
        changed = other.news
        await one.write("net:-2", {"answer": "quiet"})
        await until(lambda: other.chats == {"net:-2": {"answer": "quiet"}})
        assert changed.is_set()
        await other.write("net:-2", {})
        await until(lambda: one.chats["net:-2"] == {})
        results = [await outcome_of(each.write, "net:-2", {"model": "a"}) for each in (one, other)]
        assert results[0] == "done"
        await until(lambda: one.chats == other.chats == {"net:-2": {"model": "a"}})
        await journals.one.purge(subjects.CHAT_SUBJECTS)
        await other.load()
        assert other.chats == {}


async def outcome_of(call: Callable[..., Awaitable[object]], *given: object) -> str:
    try:
        await call(*given)
    except (AccessError, SessionError) as error:
        return str(error)
    return "done"


async def test_a_key_that_was_revoked_is_good_nowhere(journals: Journals) -> None:
    one, other = ProgramKeys(journals.one), ProgramKeys(journals.other)
    async with following(journals.one, one.last), following(journals.other, other.last):
        key = await one.create("grafana", "user")
        await until(lambda: other.find(key))
        assert "already" in await outcome_of(other.create, "grafana", "user")
        (made,) = other.keys
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.wait_revoked, made)  # it ends, or the test does not
            await one.revoke("grafana")
            await until(lambda: other.find(key) is None)


async def test_a_link_of_one_gateway_lets_one_person_in_at_any(journals: Journals) -> None:
    one, other = Logins(journals.one), Logins(journals.other)
    async with following(journals.one, one.last), following(journals.other, other.last):
        code = await one.open_link("operator", "net:7")
        await until(lambda: other.last.value.links)
        async with anyio.create_task_group() as tasks:
            secrets = list[str]()

            async def redeem(at: Logins) -> None:
                secrets.append(await at.redeem(code))

            tasks.start_soon(redeem, one)
            tasks.start_soon(redeem, other)
        (secret,) = filter(None, secrets)
        await until(lambda: len(one.logins) == len(other.logins) == 1)
        found = [await at.find(secret) for at in (one, other)]
        assert [login.person for login in found if login] == ["net:7", "net:7"]
        with other.watch():
            assert await one.end() == 1
            await anyio.sleep_forever()
        assert await other.find(secret) is None


async def test_many_logins_at_once_are_all_kept(journals: Journals) -> None:
    one, other = Logins(journals.one), Logins(journals.other)
    async with following(journals.one, one.last), following(journals.other, other.last):

        async def log_in(at: Logins) -> None:
            assert await at.redeem(await at.open_link())

        async with anyio.create_task_group() as tasks:
            for at in (one, other) * 5:
                tasks.start_soon(log_in, at)
        await until(lambda: len(one.logins) == len(other.logins) == 10)


def note_newest(told: list[str], _before: ProgramKeyState, now: ProgramKeyState) -> None:
    told.append(now.keys[-1].name)


async def test_each_change_is_told_once_and_the_last_after_a_cut(journals: Journals) -> None:
    told: dict[str, list[str]] = {"one": [], "other": []}
    copies = {
        name: LastRecord(
            engine,
            subjects.KEYS_SUBJECT,
            ProgramKeyState(),
            partial(note_newest, told[name]),
        )
        for name, engine in (("one", journals.one), ("other", journals.other))
    }
    one, other = copies.values()

    async def write(copy: LastRecord[ProgramKeyState], name: str) -> None:
        await copy.replace(ProgramKeyState(keys=(records.ProgramKey(name, "mark"),)))

    async with following(journals.one, one), following(journals.other, other):
        for number in range(6):
            await write((one, other)[number % 2], f"{number}")
            await until(lambda: one.value == other.value)
        assert told == {"one": list("012345"), "other": list("012345")}
        await journals.cut()
        for number in range(6, 10):
            await write(one, f"{number}")
        await journals.mend()
        await until(lambda: other.value == one.value)
        assert told["one"] == list("0123456789")
        assert told["other"][-1] == "9"
        assert len(told["other"]) == len(set(told["other"]))


async def test_too_much_at_once_is_loaded_anew(journals: Journals) -> None:
    journal = ChatJournal(journals.other)
    await journals.one.append(chat_put("net:first"))
    follower = JournalFollower(journals.other, journal)
    await follower.load()
    await journals.one.append(chat_put("net:second"))
    for _ in range(5):
        await journals.one.append(*(chat_put(f"net:{number}") for number in range(400)))
    await journals.one.purge(subjects.chat_subject_of("net:first"))
    await until(lambda: follower._tail and follower._tail.dropped, "more than is kept for who does not read")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follower.run)
        await until(lambda: len(journal.chats) == 401)
        await until(lambda: "net:second" in journal.chats and "net:first" not in journal.chats)
        tasks.cancel_scope.cancel()


def chat_put(chat: str) -> NewRecord:
    kept = records.ChatRuleRecord(chat=chat, values={"answer": "always"})
    return NewRecord(subjects.chat_subject_of(chat), records.encode(kept))


async def test_what_a_newer_gateway_wrote_is_said_and_the_rest_followed(
    journals: Journals, caplog: pytest.LogCaptureFixture
) -> None:
    journal = ChatJournal(journals.other)
    newer = records.encode(records.ChatRuleRecord(chat="net:1", values={}, v=VERSION + 1))
    async with following(journals.other, journal):
        await journals.one.append(NewRecord(subjects.chat_subject_of("net:1"), newer))
        await journals.one.append(chat_put("net:2"))
        await until(lambda: "net:2" in journal.chats)
        assert "does not count here" in caplog.text
        assert "net:1" not in journal.chats


def put_call(turn: TurnUsage, totals: RunningTotals, tokens: int) -> None:
    calls = CallUsage(totals, turn, BudgetPort("user", HOOKS.run, HOOKS.emit))
    calls.count(Usage(tokens, 0, calls=1, model="m"), "m", 0)


def used(usage: UsageJournal, *people: str) -> float:
    day, _ = usage.totals.windows()
    return usage.totals.get(day, people or ("",)).tokens


async def test_what_models_used_is_summed_up_once_on_each_gateway(journals: Journals) -> None:
    one, other = (UsageJournal(at, RunningTotals(time.time)) for at in (journals.one, journals.other))
    async with following(journals.one, one), following(journals.other, other):
        turns = {at: TurnUsage(UsageOrigin("net:7")) for at in (one, other)}
        for at, tokens in ((one, 1), (other, 20), (one, 300)):
            put_call(turns[at], at.totals, tokens)
            await at.write(turns[at])
        await until(lambda: used(one) == used(other) == 321)
        put_call(turns[one], one.totals, 4000)  # what is not written yet stays when the sums are read again
        await one.load()
        assert (used(one), used(other)) == (4321, 321)
        await one.write(turns[one])
        await until(lambda: used(other) == 4321)
        assert sorted([await each.fold(settled=0.0, most=1) for each in (one, other)]) == [0, 4]
        assert [row.usage.calls async for day in other.read_days() for row in day.rows] == [4]
        await journals.cut()
        put_call(turns[one], one.totals, 50_000)
        await one.write(turns[one])
        await one.fold(settled=0.0, most=1)  # the other one never hears of the call itself
        await journals.mend()
        await until(lambda: used(other) == 54_321)
        put_call(turns[one], one.totals, 600_000)
        await one.write(turns[one])
        await until(lambda: used(other) >= 654_321)
        assert (used(one), used(other), used(other, "net:7")) == (654_321,) * 3


async def test_two_that_fold_at_once_count_nothing_twice(journals: Journals) -> None:
    one, other = (UsageJournal(at, RunningTotals(time.time)) for at in (journals.one, journals.other))
    turn = TurnUsage(UsageOrigin("net:7"))
    for _ in range(10):
        put_call(turn, one.totals, 1)
    await one.write(turn)
    async with anyio.create_task_group() as tasks:
        for each in (one, other):
            tasks.start_soon(partial(each.fold, settled=0.0, most=1))
    assert [row.usage.calls async for day in one.read_days() for row in day.rows] == [10]


async def test_what_was_said_in_quiet_chats_is_known_to_all_until_it_is_taken_back(journals: Journals) -> None:
    one, other = (HeardMessages(at, lambda _place: True) for at in (journals.one, journals.other))
    group = Address("net", "-1", "group")

    def list_texts(heard: HeardMessages) -> list[str]:
        return [each.text for each in heard.list_before(Message("99", group, "1", "", sent_at=99.0))]

    async with following(journals.one, one), following(journals.other, other):
        for number in range(4):
            one.add(Message(f"{number}", group, f"{number}", f"word {number}", sent_at=float(number + 1)))
        await one.flush()
        await until(lambda: list_texts(other) == ["word 0", "word 1", "word 2", "word 3"])
        one.add(Message("e", group, "1", "another word", extra={"edits": "1"}, kind="edit"))
        assert await other.delete(MessageName("net", "-1", "2"))
        await until(lambda: "word 2" not in list_texts(one))
        await journals.cut()
        await one.forget("net:3")
        await journals.mend()
        await until(lambda: list_texts(other)[-1] != "word 3")
        await until(lambda: list_texts(one) == list_texts(other))
        kept = [each async for _, each in records.read_all(journals.one, "gw.quiet.*", records.HeardMessage)]
        assert sorted(each.message.text for each in kept) == sorted(list_texts(one))


async def test_somebody_who_is_forgotten_is_in_nobody_s_memory(journals: Journals, tmp_path: Path) -> None:
    usage = {at: UsageJournal(engine, RunningTotals(time.time)) for at, engine in list_both(journals)}
    heard = {at: HeardMessages(engine, lambda _place: True) for at, engine in list_both(journals)}
    names = {at: KnownNames(engine) for at, engine in list_both(journals)}
    people = {
        at: ForgottenPeople(engine, usage[at].totals, heard[at], ChatJournal(engine), names[at], tmp_path / at)
        for at, engine in list_both(journals)
    }
    person = Person("net", "7")
    async with (
        following(journals.one, usage["one"], heard["one"], people["one"]),
        following(journals.other, usage["other"], heard["other"], people["other"]),
    ):
        turn = TurnUsage(UsageOrigin("net:7"))  # it goes on
        theirs, anew, chat = (tmp_path / "other" / "net" / name for name in ("7/notes/a.md", "7/b.md", "chat.7/c.md"))
        for path in (theirs, anew, chat):
            await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
            await anyio.Path(path).touch()
        os.utime(anew, (time.time() + 60,) * 2)
        put_call(turn, usage["other"].totals, 1)
        heard["other"].add(Message("1", Address("net", "-1", "group"), "7", "not written yet", sent_at=1.0))
        names["other"].learn(KnownName(of="net:7", name="not written yet"))
        pseudonym = await find_pseudonym(journals.one, person)
        await usage["one"].rename(person.payers, pseudonym)
        await people["one"].tell(pseudonym)
        await until(lambda: used(usage["other"], pseudonym) == 1)
        await until(lambda: not theirs.parent.exists())
        assert (anew.exists(), chat.exists()) == (True, True)
        assert turn.origin.person == pseudonym
        await until(lambda: not names["other"].people.known)  # the last that is forgotten
        assert not heard["other"].list_senders()
        await usage["other"].write(turn)
        await heard["other"].flush()
        await names["other"].flush()
        held = [record.data for record in await journals.one.read("gw.>", limit=1000)]
        assert not any(b"net:7" in data or b"not written" in data for data in held)


def list_both(journals: Journals) -> list[tuple[str, Engine]]:
    return [("one", journals.one), ("other", journals.other)]


async def test_a_skill_that_one_loads_has_its_hooks_on_each_gateway(journals: Journals, tmp_path: Path) -> None:
    homes = {at: Home(tmp_path / at) for at, _ in list_both(journals)}
    followed: dict[str, list[int]] = {"one": [], "other": []}
    skills: dict[str, SkillHooks] = {}
    for at, engine in list_both(journals):
        (homes[at].skills / "coffee" / "hooks").mkdir(parents=True)
        skills[at] = SkillHooks(engine, homes[at])
        skills[at].attend(HookRegistry(), partial(note_sources, skills, followed, at))
    one, other = skills.values()
    coffee = Skill("coffee", "", homes["one"].skills / "coffee")
    async with following(journals.one, one), following(journals.other, other):
        await one.changed("s1", "load", coffee)
        await one.changed("s2", "load", coffee)
        await until(lambda: followed == {"one": [1, 1], "other": [1, 1]})
        assert other.list_loaded("s1") == [homes["other"].skills / "coffee"]
        await journals.cut()
        for session in ("s1", "s2"):
            await one.changed(session, "unload", coffee)
        await journals.mend()
        await until(lambda: not other.list_loaded("s1") and not other.list_loaded("s2"))
        assert followed["one"][-1] == followed["other"][-1] == 0
        again = SkillHooks(journals.other, homes["other"])
        await again.load()
        assert not again.sources


async def note_sources(skills: dict[str, SkillHooks], followed: dict[str, list[int]], at: str) -> None:
    followed[at].append(len(skills[at].sources))


async def test_hooks_that_one_switches_or_trusts_are_so_on_each_gateway(journals: Journals, tmp_path: Path) -> None:
    files = {at: HookSwitches(tmp_path / at) for at, _ in list_both(journals)}
    shared = {at: SharedSwitches(engine) for at, engine in list_both(journals)}
    touched: dict[str, list[str]] = {"one": [], "other": []}
    files["one"].enable("early", False)  # before the journal held it
    files["other"].trust("early", "00")
    async with following(journals.one, shared["one"].last), following(journals.other, shared["other"].last):
        for at in files:
            await shared[at].join(files[at], touched[at].extend)
        await until(lambda: files["one"].is_trusted("early", "00") and files["other"].is_enabled("early") is False)
        await shared["one"].write({"loud": False}, {})
        await until(lambda: files["other"].is_enabled("loud") is False)
        await journals.cut()
        await shared["one"].write({"loud": True}, {"loud": "ff"})
        await journals.mend()
        await until(lambda: files["other"].is_trusted("loud", "ff"))
        assert HookSwitches(tmp_path / "other").is_enabled("loud")
        assert touched["other"].count("loud") == 2
        async with anyio.create_task_group() as tasks:
            for number, at in enumerate([*shared] * 3):
                tasks.start_soon(shared[at].write, {f"hook{number}": True}, {})
        await until(lambda: all(one.is_enabled(f"hook{number}") for number in range(6) for one in files.values()))
    lost = HookSwitches(tmp_path / "new")
    after = SharedSwitches(journals.one)
    await after.last.load()
    await after.join(lost, touched["one"].extend)
    assert lost.is_trusted("loud", "ff"), "a home that has no file goes by the journal"


def read_notes(folder: Path) -> list[str]:
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line)["text"] for line in lines]


async def test_what_somebody_had_remembered_is_known_to_each_gateway_once(journals: Journals, tmp_path: Path) -> None:
    folders = {at: tmp_path / at for at, _ in list_both(journals)}
    await FileMemory(folders["one"]).remember("net:7", "from before")
    one, other = (SharedMemory(engine, folders[at]) for at, engine in list_both(journals))
    async with following(journals.one, one), following(journals.other, other):
        assert not await journals.one.read("gw.>"), "nothing is written before it is asked for"
        for each in (one, other):
            await each.take_along()
        await until(lambda: read_notes(folders["other"]) == ["from before"])
        await one.remember("net:7", "tea")
        await other.remember("net:7", "no sugar")
        await other.remember("net:8", "coffee")
        assert await other.recall("net:8", "") == ["coffee"], "at once, where it was said"
        await until(lambda: [len(read_notes(folder)) for folder in folders.values()] == [4, 4])
        assert await one.recall("net:7", "") == await other.recall("net:7", "") == ["no sugar", "tea", "from before"]
        await journals.cut()
        await one.remember("net:7", "milk")
        assert await one.forget("net:8") == 1
        await journals.mend()
        await until(lambda: "milk" in read_notes(folders["other"]))
        await until(lambda: "coffee" not in read_notes(folders["other"]))
        await one.remember("net:7", "bread")
        await until(lambda: "bread" in read_notes(folders["other"]))
        assert [sorted(read_notes(folder)) for folder in folders.values()] == [
            ["bread", "from before", "milk", "no sugar", "tea"]
        ] * 2
        assert not any(b"net:" in record.data for record in await journals.one.read("gw.notes.>", limit=100))


async def test_a_home_that_was_away_or_is_new_has_what_is_remembered(journals: Journals, tmp_path: Path) -> None:
    one = SharedMemory(journals.one, tmp_path / "one")
    await one.remember("net:7", "tea")
    await one.remember("net:8", "gone")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "one", copy)
    await one.forget("net:8")
    await FileMemory(copy).remember("net:7", "of the copy alone")
    for folder, notes in ((copy, {"tea", "of the copy alone"}), (tmp_path / "new", {"tea", "of the copy alone"})):
        for _start in range(2):
            again = SharedMemory(journals.other, folder)
            async with following(journals.other, again):
                await again.take_along()
                await until(lambda: set(read_notes(folder)) == notes)  # noqa: B023 - used now
    await one.load()
    await one.take_along()
    assert await one.recall("net:7", "") == ["of the copy alone", "tea"]
    assert await one.recall("net:8", "") == []
