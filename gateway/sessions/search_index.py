"""The search index: a SQLite file of its own, made from the chains in the journal; it can be made again at any time.

The progress of the index is in the same file and changes in the same transaction as the data, so no record is indexed
twice or left out, whenever the process ends. A file of another version, or a damaged file, is deleted and made again.
Words are found by `unicode61`; texts in scripts without spaces also by trigrams.

All functions of this module are synchronous and run in a thread.
"""

import json
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from gateway.engine.interface import Record
from gateway.messages.pieces import MessageName, MessagePiece, delete_pieces
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions.keys import platform_of
from gateway.sessions.session import Session

log = logging.getLogger(__name__)

# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul (whose words carry endings), and
# their compatibility forms.
NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
TRIGRAM_LENGTH = 3
BEFORE, AFTER = 40, 120
SCHEMA_VERSION = 2
INDEXED_LENGTH = 100_000
SCHEMA = """
CREATE TABLE progress(upto INTEGER NOT NULL);
INSERT INTO progress VALUES (0);
CREATE TABLE session(
    conv TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL, platform TEXT NOT NULL, user_id TEXT NOT NULL,
    reason TEXT NOT NULL, origin TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '',
    began REAL NOT NULL, last_active REAL NOT NULL, is_current INTEGER NOT NULL DEFAULT 1,
    sizes TEXT NOT NULL DEFAULT '[]', turns INTEGER NOT NULL DEFAULT 0, entries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (conv, id)
);
CREATE INDEX session_by_activity ON session(last_active);
CREATE TABLE turn(
    conv TEXT NOT NULL, session TEXT NOT NULL, at REAL NOT NULL, status TEXT NOT NULL, entries INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, calls INTEGER NOT NULL, cost REAL NOT NULL
);
CREATE INDEX turn_by_session ON turn(conv, session);
CREATE TABLE entry(
    id INTEGER PRIMARY KEY, conv TEXT NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, role TEXT NOT NULL,
    at REAL NOT NULL, content TEXT NOT NULL, grams INTEGER NOT NULL
);
CREATE INDEX entry_by_session ON entry(conv, session, turn);
CREATE TABLE piece(
    platform TEXT NOT NULL, chat TEXT NOT NULL, message TEXT NOT NULL,
    conv TEXT NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL
);
CREATE INDEX piece_by_message ON piece(message);
CREATE INDEX piece_by_session ON piece(conv, session, turn);
CREATE VIRTUAL TABLE words USING fts5(content, content='entry', content_rowid='id', tokenize='unicode61');
CREATE VIRTUAL TABLE grams USING fts5(content, content='entry', content_rowid='id', tokenize='trigram');
CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
    INSERT INTO words(rowid, content) VALUES (new.id, new.content);
    INSERT INTO grams(rowid, content) SELECT new.id, new.content WHERE new.grams;
END;
CREATE TRIGGER entry_gone AFTER DELETE ON entry BEGIN
    INSERT INTO words(words, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO grams(grams, rowid, content) SELECT 'delete', old.id, old.content WHERE old.grams;
END;
"""
DELETED_TABLE = (
    "CREATE TABLE IF NOT EXISTS deleted(conv, platform, chat, message, UNIQUE(conv, platform, chat, message))"
)
UNTIDY_TABLE = "CREATE TABLE IF NOT EXISTS untidy(since INTEGER)"
TIDY_SECONDS, TIDY_PAGES = 0.05, 64
MERGED_CHANGES = 4  # in two tables; a merge without work makes less than two changes in each table
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON")


def read_index_end(path: Path) -> tuple[int, float]:
    """Return the sequence and the time up to which the index has read the journal of this host; zeros if unknown."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            (upto,) = db.execute("SELECT upto FROM progress").fetchone()
        return int(upto), max(one.stat().st_mtime for one in path.parent.glob(f"{path.name}*"))
    except (sqlite3.Error, OSError, ValueError):
        return 0, 0.0


class SearchIndex:
    """The file of the index: records change it through `fold`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = _open_or_rebuild(path)

    @property
    def upto(self) -> int:
        """The sequence up to which the index has the records."""
        return int(self.db.execute("SELECT upto FROM progress").fetchone()[0])

    def fold(self, page: Sequence[Record], upto: int, now: Iterable[Session] = ()) -> list[Record]:
        """Add records in one transaction. Return the records that ended a chain to forget it.

        After this the index is at `upto`. `now` are sessions with deleted messages, in their current state.
        """
        forgotten = []
        with self.db:
            for record in page:
                kept = records.decode(record.data)
                if change := CHANGES.get(type(kept)):
                    change(self.db, subjects.token_of_subject(record.subject), kept, kept.at or record.ts)
                if isinstance(kept, records.TurnEnded) and kept.status == "forgotten":
                    forgotten.append(record)
            is_untidy = [_rewrite_turns(self.db, one) for one in now]
            self.db.execute("UPDATE progress SET upto = ?", (upto,))
            if forgotten or any(is_untidy):
                self.db.execute("INSERT INTO untidy VALUES (1)")
        if forgotten or any(is_untidy):
            self.tidy()
        return forgotten

    def tidy(self) -> bool:
        """Remove a slice of forgotten texts from the file; return True if some are left.

        Forgotten texts stay in the full-text tables until their segments are merged, and then in SQLite's write-ahead
        log. To merge all segments at once takes longer the larger the index is.
        """
        until = time.monotonic() + TIDY_SECONDS
        while (is_untidy := _is_untidy(self.db)) and time.monotonic() < until:
            with self.db:
                before = self.db.total_changes
                for table in ("words", "grams"):
                    self.db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (-TIDY_PAGES,))  # noqa: S608 - our own names
                if self.db.total_changes - before < MERGED_CHANGES:
                    self.db.execute("DELETE FROM untidy")
            if not _is_untidy(self.db):
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return is_untidy

    def clear(self) -> None:
        """Start again with an empty index."""
        self.db.close()
        _remove_files(self.path)
        self.db = _open_or_rebuild(self.path)


def _is_untidy(db: sqlite3.Connection) -> bool:
    """Return True if forgotten texts may still be in the file."""
    return db.execute("SELECT 1 FROM untidy LIMIT 1").fetchone() is not None


def _open_or_rebuild(path: Path) -> sqlite3.Connection:
    try:
        return _open_database(path)
    except sqlite3.DatabaseError as error:
        log.warning("the search index %s is built again: %s", path, error)
        _remove_files(path)
        return _open_database(path)


def _open_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, isolation_level="IMMEDIATE")
    try:
        (shape,) = db.execute("PRAGMA user_version").fetchone()
        if shape not in (0, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"its shape is {shape}, ours {SCHEMA_VERSION}")
        for pragma in PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        if not shape:
            db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
        if db.execute("SELECT 1 FROM progress WHERE typeof(upto) != 'integer'").fetchone():
            raise sqlite3.DatabaseError("it is of a journal in shards")
        db.execute(UNTIDY_TABLE)
        db.execute(DELETED_TABLE)
        db.commit()
    except BaseException:
        db.close()
        raise
    path.chmod(0o600)
    return db


def _remove_files(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _find_current(db: sqlite3.Connection, conv: str) -> tuple[str, list[int]] | None:
    """Return the id of a chain's current session, and the number of entries of each turn."""
    found = db.execute("SELECT id, sizes FROM session WHERE conv = ? AND is_current", (conv,)).fetchone()
    return (found[0], json.loads(found[1])) if found else None


def _resize(db: sqlite3.Connection, conv: str, session: str, sizes: Sequence[int], at: float) -> None:
    db.execute(
        "UPDATE session SET last_active = ?, sizes = ?, turns = ?, entries = ? WHERE conv = ? AND id = ?",
        (at, json.dumps(sizes), len(sizes), sum(sizes), conv, session),
    )


def _apply_opened(db: sqlite3.Connection, conv: str, kept: records.SessionOpened, at: float) -> None:
    start = kept.carried or records.InitialState()
    platform = kept.platform or platform_of(kept.session_key)
    db.execute("UPDATE session SET is_current = 0 WHERE conv = ?", (conv,))
    added = db.execute(
        "INSERT OR IGNORE INTO session(conv, id, key, platform, user_id, reason, origin, began, last_active)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(conv, kept.session_id, kept.session_key, platform, kept.user_id),
            *(kept.reason, kept.origin, kept.began or at, at),
        ),
    )
    settings = (str(start.settings.get("title") or ""), str(start.settings.get("model") or ""))
    db.execute(
        "UPDATE session SET is_current = 1, title = ?, model = ? WHERE conv = ? AND id = ?",
        (*settings, conv, kept.session_id),
    )
    _resize(db, conv, kept.session_id, start.turns, at)
    if added.rowcount:
        first = 0
        for number, size in enumerate(start.turns, 1):
            _add_entries(db, (conv, kept.session_id, number), start.entries[first : first + size], at)
            first += size
        for number, pieces in enumerate(start.pieces, 1):
            _add_pieces(db, (conv, kept.session_id, number), pieces)


def _apply_claim(db: sqlite3.Connection, conv: str, _kept: records.Claim, at: float) -> None:
    db.execute("UPDATE session SET last_active = ? WHERE conv = ? AND is_current", (at, conv))


def _apply_done(db: sqlite3.Connection, conv: str, kept: records.TurnEnded, at: float) -> None:
    if kept.status == "shortened":
        return  # the index already has the content of the records that follow
    if kept.status == "forgotten":
        for table in ("entry", "piece", "turn", "session", "deleted"):
            db.execute(f"DELETE FROM {table} WHERE conv = ?", (conv,))  # noqa: S608 - our own names
        return
    if not (current := _find_current(db, conv)):
        return
    (session, sizes), used = current, kept.usage
    sums = used.input_tokens, used.output_tokens, used.calls, used.cost
    db.execute(
        "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (conv, session, at, kept.status, len(kept.entries), *sums),
    )
    if kept.entries:
        sizes.append(len(kept.entries))
        gone = {one.name for one in kept.pieces if _is_deleted(db, conv, one.name)}  # deleted while the turn ran
        entries, _ = delete_pieces(kept.entries, kept.pieces, gone)
        _add_entries(db, (conv, session, len(sizes)), entries, at)
    number = len(sizes) if kept.entries else len(sizes) + 1  # without entries, the number of the next turn
    _add_pieces(db, (conv, session, number), kept.pieces)
    _resize(db, conv, session, sizes, at)


def _apply_deleted(db: sqlite3.Connection, conv: str, kept: records.MessageDeleted, _at: float) -> None:
    name = kept.name
    db.execute("INSERT OR IGNORE INTO deleted VALUES (?, ?, ?, ?)", (conv, name.platform, name.chat, name.id))


def _is_deleted(db: sqlite3.Connection, conv: str, name: MessageName) -> bool:
    where = "SELECT 1 FROM deleted WHERE conv = ? AND platform = ? AND chat = ? AND message = ?"
    return db.execute(where, (conv, name.platform, name.chat, name.id)).fetchone() is not None


def _apply_undone(db: sqlite3.Connection, conv: str, kept: records.TurnsUndone, at: float) -> None:
    if not (current := _find_current(db, conv)):
        return
    session, sizes = current
    left = sizes[: max(0, len(sizes) - kept.turns)]
    # The messages stay known: their inbound records exist, and may be deleted.
    db.execute("DELETE FROM entry WHERE conv = ? AND session = ? AND turn > ?", (conv, session, len(left)))
    _resize(db, conv, session, left, at)


def _apply_changed(db: sqlite3.Connection, conv: str, kept: records.SettingChanged, _at: float) -> None:
    if kept.name in ("title", "model"):
        db.execute(
            f"UPDATE session SET {kept.name} = ? WHERE conv = ? AND is_current",  # noqa: S608 - one of two names
            (str(kept.value or ""), conv),
        )


def _add_entries(db: sqlite3.Connection, where: tuple[str, str, int], entries: Sequence[Entry], at: float) -> None:
    """Add the texts of people and the agent. Tool results are left out: people do not read them, and they are long."""
    texts = [(entry.role, entry.content[:INDEXED_LENGTH]) for entry in entries if entry.role in ("user", "assistant")]
    db.executemany(
        "INSERT INTO entry(conv, session, turn, role, at, content, grams) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*where, role, at, text, has_no_spaces(text)) for role, text in texts if text.strip()],
    )


def _add_pieces(db: sqlite3.Connection, where: tuple[str, str, int], pieces: Sequence[MessagePiece]) -> None:
    rows = {(one.name.platform, one.name.chat, one.name.id, *where) for one in pieces}
    db.executemany("INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?)", rows)


def _rewrite_turns(db: sqlite3.Connection, session: Session) -> bool:
    """Replace turns that lost deleted messages by their current text; return True if the session has such turns."""
    conv, gone = subjects.token_of(session.key), set[int]()
    for name in session.deleted:
        which = (conv, session.session_id, name.platform, name.chat, name.id)
        found = db.execute(f"SELECT turn {OF_PIECE}", which).fetchall()
        gone |= {turn for (turn,) in found if turn <= len(session.turns)}
        db.execute(f"DELETE {OF_PIECE}", which)
    for turn in gone:
        where, first = (conv, session.session_id, turn), sum(session.turns[: turn - 1])
        at = db.execute(f"SELECT at {OF_TURN}", where).fetchone()
        db.execute(f"DELETE {OF_TURN}", where)
        entries = session.entries[first : first + session.turns[turn - 1]]
        _add_entries(db, where, entries, at[0] if at else session.last_active)
    return bool(gone)


OF_PIECE = "FROM piece WHERE conv = ? AND session = ? AND platform = ? AND chat = ? AND message = ?"
OF_TURN = "FROM entry WHERE conv = ? AND session = ? AND turn = ?"
CHANGES: Mapping[type, Callable[[sqlite3.Connection, str, Any, float], None]] = {
    records.SessionOpened: _apply_opened,
    records.Claim: _apply_claim,
    records.TurnEnded: _apply_done,
    records.MessageDeleted: _apply_deleted,
    records.TurnsUndone: _apply_undone,
    records.SettingChanged: _apply_changed,
}


class SearchTerms(msgspec.Struct, frozen=True):
    """A parsed query: `words` and `grams` are expressions for their FTS5 tables, `short` are plain substrings."""

    words: str = ""
    grams: str = ""
    short: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


def has_no_spaces(text: str) -> bool:
    return NO_SPACES.search(text) is not None


def parse_query(query: str) -> SearchTerms:
    """Parse a query: all terms must match; a term in double quotes is a phrase; the last word may be unfinished."""
    query = query.replace("\0", " ")  # no word contains a zero byte, and FTS5 stops reading at it
    plain = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|([^\s"]+)', query)]
    spaced = [term for term in plain if not has_no_spaces(term) and re.search(r"\w", term)]
    dense = [term for term in plain if has_no_spaces(term)]
    words = [_quote_term(term) for term in spaced]
    if words and plain[-1] == spaced[-1] and not query.rstrip().endswith('"'):
        words[-1] += "*"
    return SearchTerms(
        words=" AND ".join(words),
        grams=" AND ".join(_quote_term(term) for term in dense if len(term) >= TRIGRAM_LENGTH),
        short=tuple(term for term in dense if len(term) < TRIGRAM_LENGTH),
        plain=tuple(plain),
    )


def _quote_term(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def make_snippet(text: str, plain: tuple[str, ...]) -> str:
    """Return the text around the first matching term, on one line."""
    flat = " ".join(text.split())
    low = flat.lower()
    found = [at for term in plain if (at := low.find(term.lower())) >= 0]
    start = max(0, min(found, default=0) - BEFORE)
    end = min(len(flat), start + BEFORE + AFTER)
    return ("…" if start else "") + flat[start:end] + ("…" if end < len(flat) else "")
