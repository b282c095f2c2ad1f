"""Two gateways and one journal: what one changes the other knows within a second, once, also after it was cut off.

On NATS each has a connection of its own, and one of them is cut and comes back; the file of one machine says the same.
"""

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway import record_subjects, records
from gateway.access import AccessControl, AccessRules, Pairings
from gateway.chats import ChatJournal
from gateway.engine import Engine, NewRecord, open_sqlite
from gateway.engine.nats.engine import open_nats
from gateway.errors import AccessError, SessionError
from gateway.journal_follower import JournalFollower, LastRecord, RecordCopy
from gateway.messages import Address, Message
from gateway.records import ProgramKeyState
from gateway.steps import VERSION
from gateway.web.logins import Logins
from gateway.web.program_keys import ProgramKeys
from tests.engine.cut_line import CutLine, open_line
from tests.engine.nats_servers import run_servers
from tests.spine import until

SOON = 1.0
BY = "whoever tries codes"


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


async def seen(is_seen: Callable[[], object]) -> None:
    """It is so, and was before a second was over."""
    begun = time.monotonic()
    await until(is_seen)
    assert time.monotonic() - begun < SOON


def asked(user: str) -> Message:
    return Message("1", Address("net", f"chat{user}", "dm"), user, "hello")


async def test_people_are_let_in_and_shut_out_everywhere(journals: Journals) -> None:
    one, other = (AccessControl(AccessRules("pair", 30), Pairings(at)) for at in (journals.one, journals.other))
    async with following(journals.one, one.pairings.last), following(journals.other, other.pairings.last):
        code = await one.invite(asked("3"))
        await seen(lambda: other.pairings.asking)
        await other.pairings.approve(code, BY)
        await seen(lambda: one.find_role(asked("3")) == "user")
        await one.pairings.revoke("net", "3")
        await seen(lambda: other.find_role(asked("3")) is None)
        await one.pairings.keep_owners({"net": "7"})
        await seen(lambda: other.pairings.owners)
        assert other.owners == {}, "no list names them there"


async def test_who_owns_the_home_is_known_to_all_and_written_once(journals: Journals) -> None:
    rules = AccessRules("pair", 30, users={"net": frozenset({"7"})})
    one, other = (AccessControl(rules, Pairings(at)) for at in (journals.one, journals.other))
    async with following(journals.one, one.pairings.last), following(journals.other, other.pairings.last):
        await one.apply_rules(rules)
        await seen(lambda: other.pairings.owners)
        (before,) = await journals.one.read(record_subjects.ACCESS_SUBJECT)
        await other.apply_rules(rules)
        assert await journals.one.read(record_subjects.ACCESS_SUBJECT) == [before]
        await one.pairings.approve(await one.invite(asked("3")), BY, "admin")
        await seen(lambda: other.find_role(asked("3")) == "admin")
        assert one.owners == other.owners == {"net": "7"}, "whoever is let in takes nothing from them"


async def test_what_holds_in_a_chat_holds_on_each_gateway(journals: Journals) -> None:
    one, other = ChatJournal(journals.one), ChatJournal(journals.other)
    async with following(journals.one, one), following(journals.other, other):
        changed = other.news
        await one.write("net:-2", {"answer": "quiet"})
        await seen(lambda: other.chats == {"net:-2": {"answer": "quiet"}})
        assert changed.is_set()
        await other.write("net:-2", {})
        await seen(lambda: one.chats["net:-2"] == {})
        results = [await outcome_of(each.write, "net:-2", {"model": "a"}) for each in (one, other)]
        assert results[0] == "done"
        await seen(lambda: one.chats == other.chats == {"net:-2": {"model": "a"}})
        await journals.one.purge(record_subjects.CHAT_SUBJECTS)
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
        await seen(lambda: other.find(key))
        assert "already" in await outcome_of(other.create, "grafana", "user")
        (made,) = other.keys
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.wait_revoked, made)  # it ends, or the test does not
            await one.revoke("grafana")
            await seen(lambda: other.find(key) is None)


async def test_a_link_of_one_gateway_lets_one_person_in_at_any(journals: Journals) -> None:
    one, other = Logins(journals.one), Logins(journals.other)
    async with following(journals.one, one.last), following(journals.other, other.last):
        code = await one.open_link("operator", "net:7")
        await seen(lambda: other.last.value.links)
        async with anyio.create_task_group() as tasks:
            secrets = list[str]()

            async def redeem(at: Logins) -> None:
                secrets.append(await at.redeem(code))

            tasks.start_soon(redeem, one)
            tasks.start_soon(redeem, other)
        (secret,) = filter(None, secrets)
        await seen(lambda: len(one.logins) == len(other.logins) == 1)
        found = [await at.find(secret) for at in (one, other)]
        assert [login.person for login in found if login] == ["net:7", "net:7"]
        with anyio.fail_after(SOON), other.watch():
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
        await seen(lambda: len(one.logins) == len(other.logins) == 10)


def note_newest(told: list[str], _before: ProgramKeyState, now: ProgramKeyState) -> None:
    told.append(now.keys[-1].name)


async def test_each_change_is_told_once_and_the_last_after_a_cut(journals: Journals) -> None:
    told: dict[str, list[str]] = {"one": [], "other": []}
    copies = {
        name: LastRecord(
            engine,
            record_subjects.KEYS_SUBJECT,
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
            await seen(lambda: one.value == other.value)
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
    await journals.one.purge(record_subjects.chat_subject_of("net:first"))
    await anyio.sleep(0.5)  # while nobody reads
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follower.run)
        await until(lambda: len(journal.chats) == 401)
        await until(lambda: "net:second" in journal.chats and "net:first" not in journal.chats)
        tasks.cancel_scope.cancel()


def chat_put(chat: str) -> NewRecord:
    kept = records.ChatRuleRecord(chat=chat, values={"answer": "always"})
    return NewRecord(record_subjects.chat_subject_of(chat), records.encode(kept))


async def test_what_a_newer_gateway_wrote_is_said_and_the_rest_followed(
    journals: Journals, caplog: pytest.LogCaptureFixture
) -> None:
    journal = ChatJournal(journals.other)
    newer = records.encode(records.ChatRuleRecord(chat="net:1", values={}, v=VERSION + 1))
    async with following(journals.other, journal):
        await journals.one.append(NewRecord(record_subjects.chat_subject_of("net:1"), newer))
        await journals.one.append(chat_put("net:2"))
        await seen(lambda: "net:2" in journal.chats)
        assert "does not count here" in caplog.text
        assert "net:1" not in journal.chats
