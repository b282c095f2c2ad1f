"""Answers about sessions: lists, contents, search, export and removal."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.errors import SessionError
from gateway.sessions.export import as_fields, as_json, as_markdown
from gateway.sessions.removal import forget_sessions
from gateway.sessions.search import SearchHit, SessionInfo
from gateway.sessions.session import Session
from gateway.sessions.verbs import (
    SessionExportParams,
    SessionListParams,
    SessionParams,
    SessionSearchParams,
    SessionShowParams,
    StatisticsParams,
)

Mark = TypeVar("Mark")


async def sessions_list(storage: Storage, params: SessionListParams) -> Any:
    after = parse_cursor(params.after, str)
    rows = await storage.search.list_sessions(platform=params.platform, limit=params.limit, after=after)
    return {"sessions": [msgspec.to_builtins(row) for row in rows], "next": make_cursor(rows, params.limit)}


async def sessions_show(storage: Storage, params: SessionShowParams) -> Any:
    session = await _find_session(storage, params.session)
    count = len(session.entries)
    end = count if params.before < 0 else min(params.before, count)
    first = 0 if params.limit < 0 else max(0, end - params.limit)
    part = msgspec.structs.replace(session, entries=session.entries[first:end])
    said = msgspec.to_builtins(as_fields(part))
    if params.longest >= 0:
        said["entries"] = [cut_entry(entry, params.longest) for entry in said["entries"]]
    last = end if end < count else count + 1  # behind the last entry stand those of turns that said nothing
    said["decisions"] = [one for one in said["decisions"] if first <= one["entry"] < last]
    return {**said, "first_words": session.first_words, "first": first, "count": count}


async def sessions_search(storage: Storage, params: SessionSearchParams) -> Any:
    after = parse_cursor(params.after, int)
    hits = await storage.search.find(params.query, limit=params.limit, after=after)
    return {"hits": [msgspec.to_builtins(hit) for hit in hits], "next": make_cursor(hits, params.limit)}


async def sessions_export(storage: Storage, params: SessionExportParams) -> Any:
    session = await _find_session(storage, params.session)
    return {"text": as_json(session) if params.format == "json" else as_markdown(session)}


async def sessions_delete(base: Base, storage: Storage, params: SessionParams) -> Any:
    name = params.session
    if name.startswith("agent:"):
        gone = await forget_sessions(base.engine, storage.sessions, name)
    else:
        session = await _find_session(storage, name)
        gone = await forget_sessions(base.engine, storage.sessions, session.key, session.session_id)
    if not gone:
        raise SessionError(f"there is no session {name}")
    return {"deleted": name}


async def sessions_stop(storage: Storage, turns: Turns, params: SessionParams) -> Any:
    session = await _find_session(storage, params.session)
    return {"stopped": await turns.lanes.interrupt(session.key)}


async def sessions_rebuild(storage: Storage) -> Any:
    return {"records": await storage.search.rebuild()}


async def sessions_statistics(storage: Storage, params: StatisticsParams) -> Any:
    return msgspec.to_builtins(await storage.search.statistics(params.days))


async def _find_session(storage: Storage, name: str) -> Session:
    """The session of this id, or of an id that begins so, or the current one of a key."""
    if name.startswith("agent:"):
        session = await storage.sessions.open(name)
        if not session.session_id:
            raise SessionError(f"there is no session under {name}")
        return session
    rows = await storage.search.list_sessions(begins=name, limit=2) if name else []
    if len(rows) != 1:
        raise SessionError(f"{'no' if not rows else 'more than one'} session begins with {name!r}; see: sessions list")
    (row,) = rows
    if row.is_current and (now := await storage.sessions.open(row.session_key)).session_id == row.session_id:
        return now
    past = await storage.sessions.read_all(row.session_key)
    return past[row.session_id]


def make_cursor(rows: Sequence[SessionInfo | SearchHit], limit: int) -> str:
    """Where the next page begins; "" where this one is not full, and so the last."""
    if not rows or len(rows) != limit:
        return ""
    at, mark = rows[-1].cursor
    return f"{at!r} {mark}"


def parse_cursor(text: str, mark: Callable[[str], Mark]) -> tuple[float, Mark] | None:
    """What `make_cursor` wrote."""
    if not text:
        return None
    try:
        at, _, last = text.partition(" ")
        return float(at), mark(last)
    except ValueError:
        raise SessionError(f"no page begins at {text[:60]!r}: take the one that the page before it names") from None


def cut_entry(entry: dict[str, Any], longest: int) -> dict[str, Any]:
    """An entry with texts of this length at the most; `cut` says how long its own was, where it was longer."""
    length = len(entry["content"])
    cut = {"content": entry["content"][:longest], "cut": length} if length > longest else {}
    calls = [{**call, "args": cut_args(call["args"], longest)} for call in entry["tool_calls"]]
    return {**entry, **cut, "tool_calls": calls}


def cut_args(args: Any, longest: int) -> Any:
    """Arguments, or where they are longer the beginning of how they are written."""
    written = msgspec.json.encode(args).decode()
    return args if len(written) <= longest else f"{written[:longest]}…"
