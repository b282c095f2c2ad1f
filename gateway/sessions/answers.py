"""Answers about sessions: lists, contents, search, export and removal."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from gateway.engine.interface import Engine
from gateway.errors import SessionError
from gateway.sessions.export import as_fields, as_json, as_markdown
from gateway.sessions.removal import forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SearchHit, SessionInfo, SessionSearch, find_session
from gateway.sessions.verbs import (
    SessionExportParams,
    SessionListParams,
    SessionParams,
    SessionSearchParams,
    SessionShowParams,
    StatisticsParams,
)

Mark = TypeVar("Mark")


async def sessions_list(search: SessionSearch, params: SessionListParams) -> Any:
    after = parse_cursor(params.after, str)
    rows = await search.list_sessions(platform=params.platform, limit=params.limit, after=after)
    return {"sessions": [msgspec.to_builtins(row) for row in rows], "next": make_cursor(rows, params.limit)}


async def sessions_show(search: SessionSearch, sessions: SessionRepository, params: SessionShowParams) -> Any:
    session = await find_session(search, sessions, params.session)
    count = len(session.entries)
    end = count if params.before < 0 else min(params.before, count)
    first = 0 if params.limit < 0 else max(0, end - params.limit)
    part = msgspec.structs.replace(session, entries=session.entries[first:end])
    said = msgspec.to_builtins(as_fields(part))
    if params.longest >= 0:
        said["entries"] = [cut_entry(entry, params.longest) for entry in said["entries"]]
    last = end if end < count else count + 1  # behind the last entry come those of turns without an entry
    said["decisions"] = [one for one in said["decisions"] if first <= one["entry"] < last]
    return {**said, "first_words": session.first_words, "first": first, "count": count}


async def sessions_search(search: SessionSearch, params: SessionSearchParams) -> Any:
    after = parse_cursor(params.after, int)
    hits = await search.find(params.query, limit=params.limit, after=after)
    return {"hits": [msgspec.to_builtins(hit) for hit in hits], "next": make_cursor(hits, params.limit)}


async def sessions_export(search: SessionSearch, sessions: SessionRepository, params: SessionExportParams) -> Any:
    session = await find_session(search, sessions, params.session)
    return {"text": as_json(session) if params.format == "json" else as_markdown(session)}


async def sessions_delete(
    engine: Engine, search: SessionSearch, sessions: SessionRepository, params: SessionParams
) -> Any:
    name = params.session
    if name.startswith("agent:"):
        gone = await forget_sessions(engine, sessions, name)
    else:
        session = await find_session(search, sessions, name)
        gone = await forget_sessions(engine, sessions, session.key, session.session_id)
    if not gone:
        raise SessionError(f"no session {name} was found")
    return {"deleted": name}


async def sessions_rebuild(search: SessionSearch) -> Any:
    return {"records": await search.rebuild()}


async def sessions_statistics(search: SessionSearch, params: StatisticsParams) -> Any:
    return msgspec.to_builtins(await search.statistics(params.days))


def make_cursor(rows: Sequence[SessionInfo | SearchHit], limit: int) -> str:
    """Return where the next page begins; "" if this one is not full, and so the last."""
    if not rows or len(rows) != limit:
        return ""
    at, mark = rows[-1].cursor
    return f"{at!r} {mark}"


def parse_cursor(text: str, mark: Callable[[str], Mark]) -> tuple[float, Mark] | None:
    """Read what `make_cursor` wrote."""
    if not text:
        return None
    try:
        at, _, last = text.partition(" ")
        return float(at), mark(last)
    except ValueError:
        raise SessionError(f"no page begins at {text[:60]!r}: take the one that the page before it names") from None


def cut_entry(entry: dict[str, Any], longest: int) -> dict[str, Any]:
    """Return the entry with texts of at most this length; `cut` has the original length of a text that was longer."""
    length = len(entry["content"])
    cut = {"content": entry["content"][:longest], "cut": length} if length > longest else {}
    calls = [{**call, "args": cut_args(call["args"], longest)} for call in entry["tool_calls"]]
    return {**entry, **cut, "tool_calls": calls}


def cut_args(args: Any, longest: int) -> Any:
    """Return the arguments or, if their JSON is longer than this, its beginning."""
    written = msgspec.json.encode(args).decode()
    return args if len(written) <= longest else f"{written[:longest]}…"
