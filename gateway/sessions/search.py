"""Search sessions: lists, full text and statistics, from an index that follows the journal."""

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, Record, Tail
from gateway.errors import EngineError, SessionError
from gateway.messages.pieces import MessageName
from gateway.records import records, subjects
from gateway.sessions.deleted_messages import purge_deleted
from gateway.sessions.removal import purge_forgotten, purge_turns
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search_index import SearchIndex, SearchTerms, make_snippet, parse_query
from gateway.sessions.session import READ_FOR_THEM, Session, cut_words
from gateway.sessions.verbs import SessionOrder
from gateway.threads import run_in_thread

log = logging.getLogger(__name__)

PAGE = 500
GATHER_SECONDS, MOST_GATHERED = 60.0, 250  # the index reads these changes together, unless a query comes first
ERROR_PAUSE = 5.0
BEHIND = 5000  # fewer missing records are read in a moment
REST_SECONDS = 0.06  # between two slices of long work
REST_SHARE, LONGEST_REST = 1.3, 1.0
SEARCH_CURSOR = "search"
DELETED_KIND, LONGEST_KIND = b'"kind":"deleted"', 50
FORGOTTEN_STATUS = b'"status":"forgotten"'

T = TypeVar("T")
ListCursor: TypeAlias = tuple[float | str, str]
SearchCursor: TypeAlias = tuple[float, int]
"""The sort key of a page's last row: the next page starts after it."""
IndexQuery: TypeAlias = Callable[[Callable[[SearchIndex], Any]], Awaitable[Any]]


class SearchHit(msgspec.Struct, frozen=True):
    """One match of a search in one session."""

    session_id: str
    session_key: str
    title: str
    first_words: str
    role: str
    at: float
    snippet: str
    number: int  # the position of the entry in the index

    @property
    def cursor(self) -> SearchCursor:
        return self.at, self.number


class SessionInfo(msgspec.Struct, frozen=True):
    """A session in a list."""

    session_id: str
    session_key: str
    platform: str
    user_id: str
    title: str
    model: str
    began: float
    last_active: float
    is_current: bool
    turns: int
    entries: int
    first_words: str = ""

    @property
    def whose(self) -> str:
        """The person who began the session, as `telegram:1002`."""
        return f"{self.platform}:{self.user_id}"


class SessionNames(msgspec.Struct, frozen=True):
    """The names of sessions, by platform, person and key, and a test which sessions to list, with their title too."""

    name_of: Callable[[str, str, str], str]
    is_meant: Callable[[str, str, str, str], bool] | None = None


class Speaker(msgspec.Struct, frozen=True):
    """A person who started conversations."""

    platform: str
    user_id: str
    sessions: int
    last_active: float


class UsageTotals(msgspec.Struct, frozen=True):
    """The sums of a platform, of a day, or of all sessions."""

    name: str
    sessions: int
    turns: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost: float


class SessionStatistics(msgspec.Struct, frozen=True):
    total: UsageTotals
    platforms: tuple[UsageTotals, ...]
    days: tuple[UsageTotals, ...]  # newest first


class IndexProgress(msgspec.Struct):
    """The progress of the index: it has the records up to `reached`. `end` was the end of the journal at the start."""

    reached: int = 0
    end: int = 0

    def describe(self) -> str:
        """Describe the progress while more than BEHIND records are missing; "" otherwise."""
        return f"{self.reached} of {self.end} records are read" if self.end - self.reached > BEHIND else ""


class ForgottenWords(msgspec.Struct, eq=False):
    """Removes forgotten texts from the file of the index, in slices with pauses."""

    _query: Callable[[Callable[[SearchIndex], bool]], Awaitable[bool]]
    _news: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def notify(self) -> None:
        """Note that texts were forgotten, so that `run` removes them."""
        self._news.set()

    async def run(self) -> None:
        """Remove forgotten texts until cancelled."""
        while True:
            self._news = anyio.Event()
            try:
                while await self._query(SearchIndex.tidy):  # noqa: ASYNC110 - each turn does a slice of work
                    await anyio.sleep(REST_SECONDS)
            except (sqlite3.Error, OSError) as error:
                log.warning("what was forgotten is still in the search index: %s", error)
                await anyio.sleep(ERROR_PAUSE)
            await self._news.wait()


class SessionSearch:
    """The search in all sessions; every query first reads new records, so its result is as new as the journal."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._sessions = SessionRepository(engine, budget=0)
        self._path = path
        self._index: SearchIndex | None = None
        self.progress = IndexProgress()
        self._forgotten = ForgottenWords(self._query)
        self._one_at_a_time = anyio.Lock(fast_acquire=True)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the journal until cancelled."""
        changes = await self._engine.tail(subjects.TURN_SUBJECTS)
        task_status.started()
        try:
            self.progress.end = await check_journal(self._engine, self._query)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._forgotten.run)
                await self._keep_up()
                async for record in changes:
                    if record.seq == 0 or record.seq > self.progress.reached:
                        await gather(changes, record)
                        await self._keep_up()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.close()

    async def rebuild(self) -> int:
        """Rebuild the index from the whole journal. Return the number of records."""
        await self._query(SearchIndex.clear)
        return await self._read_on()

    async def find(
        self, query: str, *, key: str = "", limit: int = 20, after: SearchCursor | None = None
    ) -> list[SearchHit]:
        """Return the entries with all words of a query, newest first, of one session key or of all keys."""
        await self._read_on()
        wanted = parse_query(query)
        if not wanted.plain:
            return []
        return await self._query(lambda index: _find_hits(index.db, wanted, key, limit, after))

    async def list_sessions(
        self,
        *,
        platform: str = "",
        user_id: str = "",
        begins: str = "",
        limit: int = 50,
        after: ListCursor | None = None,
        order: SessionOrder = "latest",
        called: SessionNames | None = None,
    ) -> list[SessionInfo]:
        """List sessions, last used first or in another order; `called` gives them names and selects among them.

        `begins` is the start of the session ids.
        """
        by, goes, less = ORDERS[order]
        whose = "substr(id, 1, length(?1)) = ?1 AND ?2 IN ('', platform) AND ?3 IN ('', user_id)"
        meant = "AND is_meant(platform, user_id, key, title)" if called and called.is_meant else ""
        behind = f"AND ({by}, id) {less} (?5, ?6)" if after else ""
        ordered = f"ORDER BY {by} {goes}, id {goes}"
        # Only for the rows of this page the query reads the first words of the session.
        chosen = f"SELECT rowid FROM session WHERE {whose} {meant} {behind} {ordered} LIMIT ?4"  # noqa: S608 - our own words
        values = begins, platform, user_id, limit, *(after or ())
        return await self._find_sessions(f"WHERE rowid IN ({chosen}) {ordered}", *values, called=called)

    async def list_speakers(self) -> list[Speaker]:
        """List the people who started conversations, latest first."""
        await self._read_on()
        return await self._query(lambda index: [Speaker(*row) for row in index.db.execute(SPEAKERS_SQL)])

    async def find_message(self, name: MessageName) -> list[str]:
        """Return the keys of the conversations that contain a piece of this message."""
        await self._read_on()
        where = "SELECT DISTINCT key FROM piece JOIN session USING (conv) WHERE message = ? AND piece.platform = ?"
        asked = (name.id, name.platform, name.chat)
        return await self._query(lambda index: [key for (key,) in index.db.execute(f"{where} AND chat = ?", asked)])

    async def list_silent(self, before: float, limit: int = 100) -> list[SessionInfo]:
        """List the sessions last used before the time `before`, longest silent first."""
        return await self._find_sessions("WHERE last_active < ? ORDER BY last_active, id LIMIT ?", before, limit)

    async def _find_sessions(self, where: str, *values: Any, called: SessionNames | None = None) -> list[SessionInfo]:
        await self._read_on()
        return await self._query(lambda index: _read_sessions(index.db, where, values, called))

    async def statistics(self, days: int = 30) -> SessionStatistics:
        await self._read_on()
        return await self._query(lambda index: _count_usage(index.db, days))

    async def close(self) -> None:
        async with self._one_at_a_time:
            if self._index:
                await run_in_thread(self._index.db.close)
                self._index = None

    async def _keep_up(self) -> None:
        try:
            await self._read_on(is_hurried=False)
        except (EngineError, sqlite3.Error, OSError) as error:
            log.warning("the search index does not keep up now: %s", error)
            await anyio.sleep(ERROR_PAUSE)

    async def _read_on(self, *, is_hurried: bool = True) -> int:
        """Read all new records and return their number. Unless `is_hurried`, pause after each page."""
        count = 0
        while True:
            began = time.monotonic()
            after = self.progress.reached = await self._query(lambda index: index.upto)
            page = await records.read_readable(self._engine, subjects.TURN_SUBJECTS, after, PAGE, fresh=False)
            if not page:
                return count
            await self._fold(after, page)
            count += len(page)
            if len(page) < PAGE:
                return count
            if not is_hurried:
                await anyio.sleep(min(time.monotonic() - began, LONGEST_REST) * REST_SHARE)

    async def _fold(self, after: int, page: Sequence[Record]) -> None:
        deleted = [kept for one in page if isinstance(kept := _decode_deleted(one), records.MessageDeleted)]
        keys = {one.session_key for one in deleted}
        now = [one for key in keys for one in (await self._sessions.read_all(key)).values()]
        forgotten = await self._query(lambda index: index.fold(page, page[-1].seq, now) if index.upto == after else [])
        for one in deleted:  # a crash may have come before this removal, as below
            await purge_deleted(self._engine, one)
        if forgotten:
            self._forgotten.notify()
        for record in forgotten:
            # A crash may have come between the end of a chain and the purge of its records: purge them again.
            kept = records.decode(record.data)
            assert isinstance(kept, records.TurnEnded)
            conv = subjects.token_of_subject(record.subject)
            if kept.is_partial:
                await purge_turns(self._engine, conv, record.seq)
            else:
                await purge_forgotten(self._engine, conv, record.seq, kept.upto)

    async def _query(self, query: Callable[[SearchIndex], T]) -> T:
        """Run a query in a thread, one at a time, so that no query blocks the event loop."""
        async with self._one_at_a_time:
            return await run_in_thread(self._run_query, query)

    def _run_query(self, query: Callable[[SearchIndex], T]) -> T:
        self._index = self._index or SearchIndex(self._path)
        try:
            return query(self._index)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            log.warning("the search index %s is damaged and built again: %s", self._path, error)
            self._index.clear()
            return query(self._index)


async def find_session(search: SessionSearch, sessions: SessionRepository, name: str) -> Session:
    """Find a session by its id, the beginning of its id, or its session key (then the current session of the key).

    Raises:
        SessionError: no session has this name, or more than one has it.
    """
    if name.startswith("agent:"):
        session = await sessions.open(name)
        if not session.session_id:
            raise SessionError(f"session {name} not found")
        return session
    rows = await search.list_sessions(begins=name, limit=2) if name else []
    if len(rows) != 1:
        raise SessionError(f"{'no' if not rows else 'more than one'} session begins with {name!r}; see: sessions list")
    (row,) = rows
    if row.is_current and (now := await sessions.open(row.session_key)).session_id == row.session_id:
        return now
    past = await sessions.read_all(row.session_key)
    return past[row.session_id]


async def gather(changes: Tail, record: Record) -> None:
    """Wait for more changes, since a page of few changes costs as much as a full page. Removals do not wait."""
    if _takes_away(record):
        return
    left = MOST_GATHERED
    with anyio.move_on_after(GATHER_SECONDS):
        async for newer in changes:
            left -= 1
            if not left or _takes_away(newer):
                return


async def check_journal(engine: Engine, query: IndexQuery) -> int:
    """Clear an index that is ahead of the journal: then the journal is an older copy, or a new journal.

    Return the end of the journal, or 0 if it is unknown.
    """
    mark = records.CursorRecord(platform=SEARCH_CURSOR, value={})
    seq = 0
    try:
        subject = subjects.cursor_subject_of(SEARCH_CURSOR)
        (seq,) = await engine.append(NewRecord(subject, records.encode(mark)))
        await engine.purge(subject, seq - 1)
        if await query(lambda index: index.upto) >= seq:
            log.warning("the journal is older than the search index, which is built again")
            await query(SearchIndex.clear)
    except (EngineError, sqlite3.Error, OSError) as error:
        log.warning("whether the search index belongs to this journal is not known: %s", error)
    return seq


def _takes_away(record: Record) -> bool:
    """Return True if texts may leave the journal by this record, or if it is a live message (sequence 0)."""
    return record.seq == 0 or FORGOTTEN_STATUS in record.data or DELETED_KIND in record.data[:LONGEST_KIND]


def _decode_deleted(record: Record) -> records.JournalRecord | None:
    """Decode the record of a deletion; return None for other records, without decoding them."""
    return records.decode(record.data) if DELETED_KIND in record.data[:LONGEST_KIND] else None


def _find_hits(
    db: sqlite3.Connection, wanted: SearchTerms, key: str, limit: int, after: SearchCursor | None
) -> list[SearchHit]:
    possible: list[tuple[str, Any]] = [
        ("entry.id IN (SELECT rowid FROM words WHERE words MATCH ?)", wanted.words),
        ("entry.id IN (SELECT rowid FROM grams WHERE grams MATCH ?)", wanted.grams),
        *(("entry.grams AND instr(entry.content, ?) > 0", term) for term in wanted.short),
        ("session.key = ?", key),
    ]
    used = [(condition, value) for condition, value in possible if value]
    where = " AND ".join(condition for condition, _ in used) or "0"
    where += " AND (entry.at, entry.id) < (?, ?)" if after else ""
    found = db.execute(
        f"SELECT session.id, key, title, {FIRST_SQL}, role, entry.at, content, entry.id FROM entry"  # noqa: S608 - the conditions are ours
        " JOIN session ON session.conv = entry.conv AND session.id = entry.session"
        f" WHERE {where} ORDER BY entry.at DESC, entry.id DESC LIMIT ?",
        (*(value for _, value in used), *(after or ()), limit),
    )
    return [
        SearchHit(session_id, key, title, cut_words(first or ""), role, at, make_snippet(text, wanted.plain), number)
        for session_id, key, title, first, role, at, text, number in found
    ]


def _read_sessions(
    db: sqlite3.Connection, where: str, values: tuple[Any, ...], called: SessionNames | None
) -> list[SessionInfo]:
    if called:
        db.create_function("name_of", 3, called.name_of)
        db.create_function("is_meant", 4, called.is_meant)
    columns = "id, key, platform, user_id, title, model, began, last_active, is_current, turns, entries"
    found = db.execute(f"SELECT {columns}, {FIRST_SQL} FROM session {where}", values)  # noqa: S608 - our own words
    rows = [SessionInfo(*row) for row in found]
    return [replace(row, is_current=bool(row.is_current), first_words=cut_words(row.first_words or "")) for row in rows]


def _count_usage(db: sqlite3.Connection, days: int) -> SessionStatistics:
    (total,) = _read_totals(db, "'all'", "")
    (sessions,) = db.execute("SELECT COUNT(*) FROM session").fetchone()
    platforms = _read_totals(db, "platform", "GROUP BY 1 ORDER BY 3 DESC")
    by_day = _read_totals(db, "date(turn.at, 'unixepoch')", f"GROUP BY 1 ORDER BY 1 DESC LIMIT {int(days)}")
    return SessionStatistics(replace(total, sessions=sessions), tuple(platforms), tuple(by_day))


ORDERS: Mapping[SessionOrder, tuple[str, str, str]] = {
    "latest": ("last_active", "DESC", "<"),
    "began": ("began", "DESC", "<"),
    "turns": ("turns", "DESC", "<"),
    "name": ("name_of(platform, user_id, key)", "ASC", ">"),
}
"""The expression of an order, its direction, and the operator for rows behind a given row."""
FIRST_SQL = f"""(
SELECT substr(content, 1, {READ_FOR_THEM}) FROM entry AS first
WHERE first.conv = session.conv AND first.session = session.id AND first.role = 'user' ORDER BY turn, first.id LIMIT 1
)"""  # noqa: S608 - our own number
SPEAKERS_SQL = """
SELECT platform, user_id, COUNT(*), MAX(last_active) FROM session WHERE platform != '' AND user_id != ''
GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2
"""
TOTALS_SQL = """
SELECT {name}, COUNT(DISTINCT turn.conv || turn.session), COUNT(turn.at), COALESCE(SUM(status = 'failed'), 0),
    COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0), COALESCE(SUM(cost), 0)
FROM turn JOIN session ON session.conv = turn.conv AND session.id = turn.session {group}
"""


def _read_totals(db: sqlite3.Connection, name: str, group: str) -> list[UsageTotals]:
    return [UsageTotals(*row) for row in db.execute(TOTALS_SQL.format(name=name, group=group))]
