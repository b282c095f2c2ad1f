"""The projection: found is what was said, as new as the journal, and rebuilt whenever it is lost."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Literal

import anyio
import pytest

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.messages.message import Address, Message
from gateway.messages.transcript import Entry, Role, Usage
from gateway.records import records, subjects
from gateway.sessions import transitions
from gateway.sessions.removal import forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import MOST_GATHERED, SessionSearch
from gateway.sessions.search_index import CHANGES as INDEXED
from gateway.sessions.search_index import SearchIndex, make_snippet, parse_query
from gateway.sessions.session import CHANGES as FOLDED
from gateway.sessions.session import Session
from tests.spine import until

DAY = 86400.0


@pytest.fixture
async def search(engine: Engine, tmp_path: Path) -> AsyncIterator[SessionSearch]:
    search = SessionSearch(engine, tmp_path / "search.db")
    yield search
    await search.close()


class Talk:
    """Writes sessions into the journal."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.sessions = SessionRepository(engine)

    async def begin(self, key: str = "agent:main:net:dm:1", at: float = DAY) -> Session:
        session = await self.sessions.open(key)
        said = Message("1", Address(key.split(":")[2], "1"), "ann", "")
        return await self.sessions.append(session, transitions.begin_session(session, at, "new", message=said))

    async def say(
        self, *texts: str, key: str = "agent:main:net:dm:1", at: float = DAY, status: Literal["ok", "failed"] = "ok"
    ) -> Session:
        roles: tuple[Role, Role] = ("user", "assistant")
        entries = tuple(Entry(roles[n % 2], text) for n, text in enumerate(texts))
        done = records.TurnEnded(upto=0, status=status, entries=entries, usage=Usage(100, 10, 1, 0.5), at=at)
        return await self.sessions.append(await self.sessions.open(key), done)


async def found(search: SessionSearch, query: str, key: str = "") -> list[str]:
    return [hit.snippet for hit in await search.find(query, key=key)]


async def test_words_are_found_in_any_order_case_and_with_accents(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    await talk.begin()
    await talk.say("Where is the Café in Zürich?", "Behind the station.")
    assert await found(search, "cafe zurich") == ["Where is the Café in Zürich?"]
    assert await found(search, "STATION behind") == ["Behind the station."]
    assert await found(search, "stat") == ["Behind the station."], "the last word may be unfinished"
    assert await found(search, '"behind the"') == ["Behind the station."]
    assert await found(search, '"the behind"') == []
    assert await found(search, "behind\0station") == ["Behind the station."], "a NUL parts words, as a space does"
    assert await found(search, "station café") == [], "all words must stand in one message"


async def test_a_session_without_a_title_is_known_by_its_first_words(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    session = await talk.begin()
    assert [one.first_words for one in await search.list_sessions()] == [session.first_words] == [""]
    await talk.say("  Where is\n the \tCafé? " + "x" * 1000, "Behind the station.")
    session = await talk.say("and where do I park?", "There is no place.")
    (row,), (hit,) = await search.list_sessions(), await search.find("park")
    assert row.first_words == hit.first_words == session.first_words
    assert (len(row.first_words), row.first_words[:20]) == (60, "Where is the Café? x")


@pytest.mark.parametrize(
    "query", ["", "   ", '"', "*", "AND OR NOT", "a:b", "(", "NEAR(a b)", "-x", '"" ""', "^x", "a\0b"]
)
async def test_no_query_is_an_error(engine: Engine, search: SessionSearch, query: str) -> None:
    talk = Talk(engine)
    await talk.begin()
    await talk.say("something else")
    assert await found(search, query) == []


async def test_scripts_without_spaces_are_found_within_a_text(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    await talk.begin()
    await talk.say("東京都の天気を教えてください", "今日は晴れ、Tokyo is sunny")
    assert len(await found(search, "天気を教")) == 1
    assert len(await found(search, "天気")) == 1, "two characters are a word there"
    assert len(await found(search, "晴れ tokyo")) == 1
    assert await found(search, "大阪市内") == []


async def test_what_is_undone_or_forgotten_is_not_found(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    session = await talk.begin()
    await talk.say("apples")
    session = await talk.say("pears")
    await talk.sessions.append(session, transitions.undo_turns(session))
    assert (await found(search, "apples"), await found(search, "pears")) == (["apples"], [])
    (row,) = await search.list_sessions()
    assert (row.turns, row.entries) == (1, 1)
    await forget_sessions(engine, talk.sessions, session.key)
    assert await found(search, "apples") == []
    assert await search.list_sessions() == []


def traces(folder: Path, *words: str) -> list[tuple[str, str]]:
    files = list(folder.glob("search.db*"))
    assert files
    return [(file.name, word) for file in files for word in words if word.encode() in file.read_bytes()]


async def test_what_is_forgotten_leaves_no_trace_in_the_file(
    engine: Engine, search: SessionSearch, tmp_path: Path
) -> None:
    talk = Talk(engine)
    session = await talk.begin()
    await talk.say("swordfish 秘密の言葉")
    assert await found(search, "swordfish") != []
    assert traces(tmp_path, "swordfish") != []
    await forget_sessions(engine, talk.sessions, session.key)
    assert await search.list_sessions() == []
    assert traces(tmp_path, "swordfish", "秘密") == []


def test_what_is_forgotten_in_a_large_index_goes_bit_by_bit(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "search.db")
    opened = records.SessionOpened(session_id="s", session_key="k", at=1.0)
    dice = Random(1)
    seq = 0
    for number in range(40):
        texts = [" ".join(str(dice.randrange(10**9)) for _ in range(300)) for _ in range(50)]
        entries = (Entry("user", f"sword{number}fish"), *(Entry("user", text) for text in texts))
        page = [opened, records.TurnEnded(upto=1, entries=entries, at=1.0)]
        conv = f"gw.turn.c{number}"
        index.fold([Record(seq + n, conv, records.encode(one), 1.0) for n, one in enumerate(page, 1)], seq + 2)
        seq += 2
    end = records.encode(records.TurnEnded(upto=99, status="forgotten", at=1.0))
    index.fold([Record(seq + 1, "gw.turn.c7", end, 1.0)], seq + 1)
    slices = 1
    while index.tidy():
        slices += 1
    assert slices > 1  # each of some hundredths of a second
    assert traces(tmp_path, "sword7fish") == []
    assert traces(tmp_path, "sword8fish") != []
    index.db.close()


async def test_a_branch_is_found_beside_its_origin_and_a_resumed_session_once(
    engine: Engine, search: SessionSearch
) -> None:
    talk = Talk(engine)
    first = await talk.begin()
    first = await talk.say("apples")
    branch = await talk.sessions.append(first, transitions.branch_session(first, first, DAY))
    assert {hit.session_id for hit in await search.find("apples")} == {first.session_id, branch.session_id}
    back = await talk.sessions.append(branch, transitions.resume_session(branch, first))
    assert len(await found(search, "apples")) == 2
    rows = {row.session_id: row for row in await search.list_sessions()}
    assert [row.session_id for row in rows.values() if row.is_current] == [back.session_id]
    assert {row.entries for row in rows.values()} == {1}


async def test_a_search_stays_within_a_session_key_when_told(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    for key in ("agent:main:net:dm:1", "agent:main:other:dm:2"):
        await talk.begin(key)
        await talk.say(f"apples in {key}", key=key)
    assert len(await found(search, "apples")) == 2
    assert await found(search, "apples", key="agent:main:other:dm:2") == ["apples in agent:main:other:dm:2"]
    assert [row.platform for row in await search.list_sessions(platform="other")] == ["other"]


async def test_titles_and_models_follow(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    session = await talk.begin()
    await talk.sessions.append(session, transitions.change_title("fruit"), transitions.change_model("big"))
    (row,) = await search.list_sessions(begins=session.session_id[:10])
    assert (row.title, row.model, row.user_id) == ("fruit", "big", "ann")
    assert await search.list_sessions(begins="nothing") == []


async def test_statistics_count_turns_by_platform_and_day(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    await talk.begin(at=DAY)
    await talk.say("a", at=DAY)
    await talk.say("b", at=2 * DAY, status="failed")
    await talk.begin("agent:main:other:dm:2")
    await talk.say("c", key="agent:main:other:dm:2", at=2 * DAY)
    statistics = await search.statistics()
    total = statistics.total
    assert (total.sessions, total.turns, total.failed, total.input_tokens, total.cost) == (2, 3, 1, 300, 1.5)
    assert [(one.name, one.turns) for one in statistics.platforms] == [("net", 2), ("other", 1)]
    assert [(one.name, one.turns) for one in statistics.days] == [("1970-01-03", 2), ("1970-01-02", 1)]


async def test_nothing_counts_in_an_empty_journal(search: SessionSearch) -> None:
    assert (await search.statistics()).total.turns == 0


async def test_a_rebuilt_index_says_the_same(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    await talk.begin()
    for number in range(20):
        await talk.say(f"apples {number}", "pears")
    before = (await search.find("apples", limit=50), await search.list_sessions(), await search.statistics())
    assert await search.rebuild() > 20
    assert (await search.find("apples", limit=50), await search.list_sessions(), await search.statistics()) == before


@pytest.mark.parametrize("harm", ["garbage", "shape"])
async def test_a_damaged_or_foreign_file_is_built_anew(engine: Engine, tmp_path: Path, harm: str) -> None:
    path = tmp_path / "search.db"
    if harm == "garbage":
        path.write_bytes(b"this is not a database" * 100)
    else:
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version=99")
        db.close()
    talk, search = Talk(engine), SessionSearch(engine, path)
    await talk.begin()
    await talk.say("apples")
    assert await found(search, "apples") == ["apples"]
    assert path.stat().st_mode & 0o777 == 0o600
    await search.close()


async def test_an_index_that_runs_follows_the_journal_by_itself_when_much_has_come_or_words_are_to_go(
    engine: Engine, search: SessionSearch, tmp_path: Path
) -> None:
    talk = Talk(engine)

    def count_indexed() -> int:
        with closing(sqlite3.connect(tmp_path / "search.db")) as db:
            (is_there,) = db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'entry'").fetchone()
            return int(db.execute("SELECT COUNT(*) FROM entry").fetchone()[0]) if is_there else 0

    async with anyio.create_task_group() as tasks:
        await tasks.start(search.run)
        session = await talk.begin()
        for number in range(MOST_GATHERED // 2):
            await talk.say(f"apples {number}")
        assert count_indexed() < MOST_GATHERED // 2, "nobody asks, and there is not much"
        for number in range(MOST_GATHERED):
            await talk.say(f"pears {number}")
        await until(lambda: count_indexed() >= MOST_GATHERED)
        await forget_sessions(engine, talk.sessions, session.key)
        await until(lambda: count_indexed() == 0)
        tasks.cancel_scope.cancel()


def test_an_index_of_a_journal_in_shards_is_made_anew(tmp_path: Path) -> None:
    """0.1.0 kept a list there, a number for each shard."""
    index = SearchIndex(tmp_path / "search.db")
    with index.db:
        index.db.execute("UPDATE progress SET upto = '[7,1099511627783]'")
        index.db.execute("INSERT INTO untidy VALUES (1)")
    index.db.close()
    made = SearchIndex(tmp_path / "search.db")
    assert made.upto == 0
    assert made.db.execute("SELECT count(*) FROM untidy").fetchone() == (0,)
    made.db.close()


async def test_a_removal_that_a_crash_interrupted_is_finished(engine: Engine, search: SessionSearch) -> None:
    talk = Talk(engine)
    session = await talk.begin()
    session = await talk.say("swordfish")
    inbound = records.encode(
        records.InboundMessage(session_key=session.key, message=Message("1", Address("net", "1"), "a", ""))
    )
    (waiting,) = await engine.append(NewRecord(subjects.session_subject_of("in", session.key), inbound))
    end = records.TurnEnded(upto=waiting, status="forgotten")
    await talk.sessions.append(session, end)
    assert await found(search, "swordfish") == []
    assert len(await engine.read(subjects.session_subject_of("turn", session.key))) == 1
    assert await engine.read(subjects.session_subject_of("in", session.key)) == []


def test_a_snippet_shows_the_place() -> None:
    text = "x " * 100 + "here is the needle\nin the hay " + "y " * 100
    shown = make_snippet(text, ("NEEDLE",))
    assert shown.startswith("…")
    assert "here is the needle in the hay" in shown
    assert len(shown) < 170


def test_a_query_is_split_by_who_answers_it() -> None:
    wanted = parse_query('red "green apple" 天気予報 晴れ')
    assert (wanted.words, wanted.grams, wanted.short) == ('"red" AND "green apple"', '"天気予報"', ("晴れ",))


def test_every_record_of_a_chain_is_folded_or_is_none_that_a_search_looks_at() -> None:
    """A session is folded twice, as a value and as rows: a new kind of record must be thought of in both."""
    kinds = {kind for kind in records.RECORD_KINDS if issubclass(kind, records.TurnRecord)}
    within_a_turn = {records.LlmStep, records.ToolStarted, records.ToolFinished, records.InterimReply}
    within_a_turn |= {records.ClaimReleased, records.QuestionsAsked, records.QuestionAnswered, records.DecisionRecord}
    assert set(FOLDED) == kinds
    assert set(INDEXED) == kinds - within_a_turn
