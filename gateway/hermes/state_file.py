"""The file `state.db` for readers of Hermes's: its tables `sessions` and `messages`, folded from the turn journal.

The gateway does not read it, and it may be deleted at any time. A file is ours if its header has our `application_id`
and no other program has written to it: triggers in the file note such writes, and so does the version of its schema.
The transaction that writes checks both. After such a write, the file is left to the other program. The file also says
how far the journal was read, so that no record is in it twice or left out.

Everything here is synchronous and runs in a thread. The header is read only if this process has no connection to the
file: closing a file releases the locks that SQLite holds on it for the whole process.
"""

import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.engine.interface import Record
from gateway.hermes.plugin.arguments import as_openai_messages
from gateway.messages.pieces import DELETED, MessagePiece
from gateway.messages.transcript import Entry, Usage, as_message
from gateway.records import records, subjects
from gateway.sessions.keys import platform_of

StateOwner: TypeAlias = Literal["ours", "nobody", "theirs"]
StateContent: TypeAlias = Literal["ours", "shared", "rebuilt"]

APPLICATION_ID = 0x68677773
NOWHERE = -1
LEFT_TO_THEM = "left to them and never written here; to get a new one, delete it and restart the gateway"
MAGIC, ID_PLACE, HEADER_SIZE = b"SQLite format 3\0", 68, 72
BUSY_TIMEOUT = 2.0  # seconds to wait for another writer; a reader blocks no one
END_REASONS: Mapping[str, str] = MappingProxyType({"resumed": "session_switch", "branch": "session_switch"})

_TABLES = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
    thread_id TEXT, display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0, model TEXT,
    model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
    end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT,
    git_repo_root TEXT, billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL,
    actual_cost_usd REAL, cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT,
    api_call_count INTEGER DEFAULT 0, handoff_state TEXT, handoff_platform TEXT, handoff_error TEXT,
    compression_failure_cooldown_until REAL, compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0, profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,
    timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    reasoning_details TEXT, codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
    observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT
);
CREATE INDEX idx_sessions_source ON sessions(source);
CREATE INDEX idx_sessions_started ON sessions(started_at DESC);
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
CREATE TABLE hermes_gateway(schema INTEGER, upto INTEGER, mark TEXT, writing INTEGER, others INTEGER);
CREATE TABLE hermes_gateway_sessions(id TEXT PRIMARY KEY, conv TEXT, is_current INTEGER, claimed REAL);
CREATE TABLE hermes_gateway_turns(session_id TEXT, first INTEGER);
CREATE INDEX hermes_gateway_sessions_conv ON hermes_gateway_sessions(conv);
CREATE INDEX hermes_gateway_turns_session ON hermes_gateway_turns(session_id);
"""
_TRIGGER = """
CREATE TRIGGER hermes_gateway_{table}_{verb} AFTER {verb} ON {table} WHEN (SELECT NOT writing FROM hermes_gateway)
BEGIN UPDATE hermes_gateway SET others = 1; END;
"""
_TRIGGERS = "".join(
    _TRIGGER.format(table=table, verb=verb)
    for table in ("sessions", "messages")
    for verb in ("INSERT", "UPDATE", "DELETE")
)

log = logging.getLogger(__name__)


def find_owner(path: Path) -> StateOwner:
    """Find the owner of the file by its header; a file that is missing or empty has none."""
    try:
        if path.is_symlink():
            return "theirs"
        with path.open("rb") as file:
            header = file.read(HEADER_SIZE)
    except FileNotFoundError:
        return "nobody"
    except OSError:
        return "theirs"
    is_ours = header[:16] == MAGIC and header[ID_PLACE:] == APPLICATION_ID.to_bytes(4, "big")
    return "ours" if is_ours else "theirs" if header else "nobody"


def read_content(path: Path) -> StateContent:
    """Tell if others have changed a file of ours: not at all, in its rows, or into another file as Hermes does.

    It changes nothing, and does not disturb programs that have the file open.
    """
    is_closed = not path.with_name(f"{path.name}-wal").exists()
    try:
        db = _connect(path, "ro", "&immutable=1" if is_closed else "")
    except sqlite3.Error:
        return "rebuilt"
    try:
        if _is_untouched(db):
            return "ours"
        now = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "schema_version")]
        (kept,) = db.execute("SELECT schema FROM hermes_gateway").fetchone()
        return "shared" if now == [APPLICATION_ID, kept] else "rebuilt"
    except sqlite3.Error:
        return "rebuilt"
    finally:
        db.close()


class StateFile(msgspec.Struct, eq=False):
    """The file `state.db` and its connection.

    `is_unclean`: deleted words are still in SQLite's log, because a reader holds it.
    """

    path: Path
    is_unclean: bool = False
    _db: sqlite3.Connection | None = None
    _inode: tuple[int, int] = (0, 0)

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def open(self) -> bool:
        """Open the file, and tell if it is ours to write; make it if it is missing."""
        if self._db is not None and self._inode == _inode_of(self.path):
            return True
        self.close()
        owner = find_owner(self.path)
        if owner == "nobody":
            self._create()
        if owner == "theirs" or not self._was_ours_alone():
            self.close()
            return False
        self._inode = _inode_of(self.path)
        self.path.chmod(0o600)
        self._db = _connect(self.path, "rw")
        self._db.execute("PRAGMA synchronous=NORMAL")  # lost records can be folded in again
        self._db.execute("PRAGMA secure_delete=ON")
        return True

    def read_progress(self) -> tuple[int, str]:
        """Return the position in the journal up to which records were folded in, and the mark of the last one.

        The position is NOWHERE if the file is of a journal with several shards, as 0.1.0 wrote them.
        """
        assert self._db
        upto, mark = self._db.execute("SELECT upto, mark FROM hermes_gateway").fetchone()
        return upto if isinstance(upto, int) else NOWHERE, str(mark)

    def fold(self, page: Sequence[Record], upto: int, mark: str) -> bool:
        """Fold records in, in one transaction; they lead to `upto` and `mark`.

        Return False, and write nothing, if the file is no longer ours.
        """
        db = self._db
        if db is None or self._inode != _inode_of(self.path):
            return False
        db.execute("BEGIN IMMEDIATE")
        try:
            if not _is_untouched(db):
                return False
            db.execute("UPDATE hermes_gateway SET writing = 1")
            for record in page:
                kept = records.decode(record.data)
                if change := CHANGES.get(type(kept)):
                    change(db, subjects.token_of_subject(record.subject), kept, kept.at or record.ts)
                self.is_unclean |= getattr(kept, "status", "") == "forgotten" or isinstance(
                    kept, records.MessageDeleted
                )
            db.execute("UPDATE hermes_gateway SET writing = 0, upto = ?, mark = ?", (upto, mark))
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        return True

    def has_session(self, session: str) -> bool:
        """Tell if the file has a session with this id."""
        found = self._db and self._db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone()
        return found is not None

    def clean(self) -> None:
        """Remove deleted words from the file's log as well."""
        if self._db is not None and self.is_unclean:
            (is_busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.is_unclean = bool(is_busy)

    def remove(self) -> None:
        """Delete the file, if it is ours."""
        self.close()
        if find_owner(self.path) == "ours" and self._was_ours_alone():
            self.close()
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _was_ours_alone(self) -> bool:
        """Tell if no other program has written to the file; a damaged one of ours counts as ours."""
        try:
            db = _connect(self.path, "ro")
        except sqlite3.Error:
            return False
        try:
            return _is_untouched(db)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            return False  # it has another table, or none
        except sqlite3.DatabaseError:
            return True
        finally:
            db.close()

    def _create(self) -> None:
        """Make the file as a whole, or not at all; a file that another program has made meanwhile stays."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            db = _connect(beside, "rw")
            db.executescript(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA journal_mode=WAL; {_TABLES} {_TRIGGERS}")
            (schema,) = db.execute("PRAGMA schema_version").fetchone()
            db.execute("INSERT INTO hermes_gateway VALUES (?, 0, '', 0, 0)", (schema,))
            db.close()
            if _inode_of(self.path) == (0, 0):
                os.link(beside, self.path)
            elif find_owner(self.path) == "nobody":
                beside.replace(self.path)
        except FileExistsError:
            log.info("another program made %s just now", self.path)
        finally:
            beside.unlink(missing_ok=True)


def make_mark(record: Record) -> str:
    """Return the mark of a record: a journal with another mark at its place is another journal."""
    return hashlib.sha256(record.data).hexdigest()[:16]


def _inode_of(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _connect(path: Path, mode: Literal["ro", "rw"], more: str = "") -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}{more}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )


def _is_untouched(db: sqlite3.Connection) -> bool:
    (schema,) = db.execute("PRAGMA schema_version").fetchone()
    (identity,) = db.execute("PRAGMA application_id").fetchone()
    row = db.execute("SELECT schema, writing, others FROM hermes_gateway").fetchone()
    return bool(identity == APPLICATION_ID and row == (schema, 0, 0))


def _apply_opened(db: sqlite3.Connection, conv: str, kept: records.SessionOpened, at: float) -> None:
    start, name = kept.carried or records.InitialState(), kept.session_id
    is_known = db.execute("SELECT 1 FROM hermes_gateway_sessions WHERE id = ?", (name,)).fetchone()
    if not is_known or kept.reason != "kept":
        db.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE ended_at IS NULL AND id != ? AND id IN"
            " (SELECT id FROM hermes_gateway_sessions WHERE conv = ? AND is_current)",
            (at, END_REASONS.get(kept.reason, "session_reset"), name, conv),
        )
    db.execute("UPDATE hermes_gateway_sessions SET is_current = 0 WHERE conv = ?", (conv,))
    db.execute("INSERT OR REPLACE INTO hermes_gateway_sessions VALUES (?, ?, 1, NULL)", (name, conv))
    if is_known:
        if kept.reason != "kept":
            db.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", (name,))
        return
    _, _, _, chat_type, chat_id, thread_id = [*kept.session_key.split(":", 5), *[None] * 6][:6]
    db.execute(
        "INSERT INTO sessions(id, source, user_id, session_key, chat_type, chat_id, thread_id, parent_session_id,"
        " started_at, title) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(name, kept.platform or platform_of(kept.session_key), kept.user_id or None, kept.session_key),
            *(chat_type, chat_id, thread_id, kept.origin if kept.reason == "branch" else None),
            *(kept.began or at, str(start.settings.get("title") or "") or None),
        ),
    )
    first = 0
    for number, size in enumerate(start.turns):
        pieces = start.pieces[number] if start.pieces else ()
        _add_turn(db, name, start.entries[first : first + size], pieces, at, at)
        first += size
    _add_usage(db, name, start.usage)


def _apply_claim(db: sqlite3.Connection, conv: str, _kept: records.Claim, at: float) -> None:
    where = "WHERE conv = ? AND is_current"
    db.execute(f"UPDATE hermes_gateway_sessions SET claimed = COALESCE(claimed, ?) {where}", (at, conv))  # noqa: S608


def _apply_done(db: sqlite3.Connection, conv: str, kept: records.TurnEnded, at: float) -> None:
    if kept.status == "forgotten":
        gone = "SELECT id FROM hermes_gateway_sessions WHERE conv = ?"
        for table, column in (("messages", "session_id"), ("hermes_gateway_turns", "session_id"), ("sessions", "id")):
            db.execute(f"DELETE FROM {table} WHERE {column} IN ({gone})", (conv,))  # noqa: S608 - our own names
        db.execute("DELETE FROM hermes_gateway_sessions WHERE conv = ?", (conv,))
    if kept.status in ("forgotten", "shortened"):
        return  # the records that stay follow, or are here already
    current = "SELECT id, claimed FROM hermes_gateway_sessions WHERE conv = ? AND is_current"
    if found := db.execute(current, (conv,)).fetchone():
        name, claimed = found
        _add_turn(db, name, kept.entries, kept.pieces, claimed or at, at)
        _add_usage(db, name, kept.usage)
        db.execute("UPDATE hermes_gateway_sessions SET claimed = NULL WHERE id = ?", (name,))


def _apply_undone(db: sqlite3.Connection, conv: str, kept: records.TurnsUndone, _at: float) -> None:
    turns = (
        "SELECT turn.rowid, session_id, first FROM hermes_gateway_turns AS turn JOIN hermes_gateway_sessions"
        " ON id = session_id WHERE conv = ? AND is_current ORDER BY turn.rowid DESC LIMIT ?"
    )
    for row, name, first in db.execute(turns, (conv, kept.turns)).fetchall():
        db.execute("DELETE FROM messages WHERE session_id = ? AND id >= ?", (name, first))
        db.execute("DELETE FROM hermes_gateway_turns WHERE rowid = ?", (row,))
        _count_messages(db, name)


def _apply_deleted(db: sqlite3.Connection, conv: str, kept: records.MessageDeleted, _at: float) -> None:
    """Replace the content of each row that belongs to the message, also if it belongs to others, too.

    The row does not say which words are whose.
    """
    where = "session_id IN (SELECT id FROM hermes_gateway_sessions WHERE conv = ?)"
    is_theirs = "instr(' ' || platform_message_id || ' ', ?)"
    what = f"UPDATE messages SET content = ? WHERE {where} AND {is_theirs}"  # noqa: S608 - our own words
    db.execute(what, (DELETED, conv, f" {kept.name.id} "))


def _apply_changed(db: sqlite3.Connection, conv: str, kept: records.SettingChanged, _at: float) -> None:
    if kept.name == "title":
        where = "id IN (SELECT id FROM hermes_gateway_sessions WHERE conv = ? AND is_current)"
        db.execute(f"UPDATE sessions SET title = ? WHERE {where}", (kept.value or None, conv))  # noqa: S608 - our words


def _add_turn(
    db: sqlite3.Connection,
    session: str,
    entries: Sequence[Entry],
    pieces: Sequence[MessagePiece],
    began: float,
    ended: float,
) -> None:
    """Add the entries of a turn; the first has the time of its start, the others end with the turn, in order."""
    first = None
    told = as_openai_messages(map(as_message, entries))
    for place, (entry, said) in enumerate(zip(entries, told, strict=True)):
        calls = said.get("tool_calls")
        stop = ("tool_calls" if calls else "stop") if entry.role == "assistant" else None
        at = min(began, ended) if place == 0 else ended - (len(entries) - 1 - place) * 1e-6
        added = db.execute(
            "INSERT INTO messages(session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp,"
            " finish_reason, platform_message_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(session, entry.role, said["content"], said.get("tool_call_id"), _to_json(calls)),
                *(said.get("name"), at, stop, " ".join(one.name.id for one in pieces if one.entry == place) or None),
            ),
        )
        first = added.lastrowid if first is None else first
    if first is not None:
        db.execute("INSERT INTO hermes_gateway_turns VALUES (?, ?)", (session, first))
        _count_messages(db, session)


def _count_messages(db: sqlite3.Connection, session: str) -> None:
    counts = "COUNT(*), COALESCE(SUM(json_array_length(tool_calls)), 0)"
    found = db.execute(f"SELECT {counts} FROM messages WHERE session_id = ?", (session,)).fetchone()  # noqa: S608
    db.execute("UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (*found, session))


def _add_usage(db: sqlite3.Connection, session: str, used: Usage) -> None:
    """Add the usage; an endpoint without prices has no cost."""
    db.execute(
        "UPDATE sessions SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,"
        " api_call_count = api_call_count + ?, model = COALESCE(NULLIF(?, ''), model),"
        " estimated_cost_usd = NULLIF(COALESCE(estimated_cost_usd, 0) + ?, 0) WHERE id = ?",
        (used.input_tokens, used.output_tokens, used.calls, used.model, used.cost, session),
    )
    status = "CASE WHEN estimated_cost_usd IS NULL THEN 'unknown' ELSE 'estimated' END"
    db.execute(f"UPDATE sessions SET cost_status = {status} WHERE id = ?", (session,))  # noqa: S608 - our own words


def _to_json(calls: Any) -> str | None:
    return msgspec.json.encode(calls).decode() if calls else None


CHANGES: Mapping[type, Callable[[sqlite3.Connection, str, Any, float], None]] = MappingProxyType(
    {
        records.SessionOpened: _apply_opened,
        records.Claim: _apply_claim,
        records.TurnEnded: _apply_done,
        records.MessageDeleted: _apply_deleted,
        records.TurnsUndone: _apply_undone,
        records.SettingChanged: _apply_changed,
    }
)
