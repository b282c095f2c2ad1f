"""Answers about sessions: lists, contents, search, export and removal."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec

from gateway.engine.interface import Engine
from gateway.errors import SessionError
from gateway.records.names import KnownNames, fold_name
from gateway.sessions.export import as_fields, as_json, as_markdown
from gateway.sessions.removal import forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import ORDERS, SessionInfo, SessionNames, SessionSearch, find_session
from gateway.sessions.verbs import (
    SessionExportParams,
    SessionListParams,
    SessionOrder,
    SessionParams,
    SessionSearchParams,
    SessionShowParams,
    StatisticsParams,
)

At = TypeVar("At")
Mark = TypeVar("Mark")
Row = TypeVar("Row")


async def sessions_list(search: SessionSearch, names: KnownNames, params: SessionListParams) -> Any:
    platform, _, user_id = params.person.partition(":")
    rows = await search.list_sessions(
        platform=platform or params.platform,
        user_id=user_id,
        limit=params.limit,
        after=parse_cursor(params.after, str, unquote if params.sort == "name" else float),
        order=params.sort,
        called=SessionNames(partial(find_session_name, names), make_filter(names, params.search)),
    )
    listed = [{**msgspec.to_builtins(row), "chat": names.find_chat(row.session_key)} for row in rows]
    return {
        "sessions": listed,
        "next": make_cursor(rows, params.limit, lambda row: (find_sort_key(names, params.sort, row), row.session_id)),
        "names": names.describe([*(row.whose for row in rows), *(one["chat"] for one in listed)]),
    }


def find_session_name(names: KnownNames, platform: str, user_id: str, key: str) -> str:
    """Return the name by which a session is sorted: that of its chat, else of its person, else its key."""
    return fold_name(names.chats.find(names.find_chat(key)) or names.people.find(f"{platform}:{user_id}") or key)


def find_sort_key(names: KnownNames, order: SessionOrder, row: SessionInfo) -> float | str:
    """Return the value by which the search sorts a row."""
    if order == "name":
        return find_session_name(names, row.platform, row.user_id, row.session_key)
    return float(getattr(row, ORDERS[order][0]))


def make_filter(names: KnownNames, text: str) -> Callable[[str, str, str, str], bool] | None:
    """Return the test for sessions with this text in their title or key, or in a name or id of their chat or person."""
    if not text:
        return None
    people, chats, wanted = names.people.search(text), names.chats.search(text), text.casefold()

    def is_meant(platform: str, user_id: str, key: str, title: str) -> bool:
        said = f"{platform}:{user_id}\n{key}\n{title}".casefold()
        return wanted in said or f"{platform}:{user_id}" in people or (bool(chats) and names.find_chat(key) in chats)

    return is_meant


async def sessions_show(
    search: SessionSearch, sessions: SessionRepository, names: KnownNames, params: SessionShowParams
) -> Any:
    session = await find_session(search, sessions, params.session)
    count = len(session.entries)
    end = count if params.before < 0 else min(params.before, count)
    first = 0 if params.limit < 0 else max(0, end - params.limit)
    part = msgspec.structs.replace(session, entries=session.entries[first:end])
    said = msgspec.to_builtins(as_fields(part))
    if params.longest >= 0:
        said["entries"] = [cut_entry(entry, params.longest) for entry in said["entries"]]
    last = end if end < count else count + 1  # decisions of turns without an entry come behind the last entry
    said["decisions"] = [one for one in said["decisions"] if first <= one["entry"] < last]
    chat = names.find_chat(session.key)
    called = names.describe((f"{session.platform}:{session.user_id}", chat))
    return {**said, "first_words": session.first_words, "first": first, "count": count, "chat": chat, "names": called}


async def sessions_search(search: SessionSearch, names: KnownNames, params: SessionSearchParams) -> Any:
    after = parse_cursor(params.after, int, float)
    found = await search.find(params.query, limit=params.limit, after=after)
    hits = [{**msgspec.to_builtins(hit), "chat": names.find_chat(hit.session_key)} for hit in found]
    next_page = make_cursor(found, params.limit, lambda hit: hit.cursor)
    return {"hits": hits, "next": next_page, "names": names.describe(hit["chat"] for hit in hits)}


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


def make_cursor(rows: Sequence[Row], limit: int, find_end: Callable[[Row], tuple[float | str, str | int]]) -> str:
    """Return where the next page begins; "" if this page is not full, and so the last."""
    if not rows or len(rows) != limit:
        return ""
    at, mark = find_end(rows[-1])
    return f"{quote(at) if isinstance(at, str) else repr(at)} {mark}"


def parse_cursor(text: str, mark: Callable[[str], Mark], at: Callable[[str], At]) -> tuple[At, Mark] | None:
    """Parse a cursor that `make_cursor` made."""
    if not text:
        return None
    try:
        first, _, last = text.partition(" ")
        return at(first), mark(last)
    except ValueError:
        raise SessionError(f"no page begins at {text[:60]!r}: take the one that the page before it names") from None


def cut_entry(entry: dict[str, Any], longest: int) -> dict[str, Any]:
    """Return the entry with texts of at most this length; `cut` has the original length of a longer text."""
    length = len(entry["content"])
    cut = {"content": entry["content"][:longest], "cut": length} if length > longest else {}
    calls = [{**call, "args": cut_args(call["args"], longest)} for call in entry["tool_calls"]]
    return {**entry, **cut, "tool_calls": calls}


def cut_args(args: Any, longest: int) -> Any:
    """Return the arguments or, if their JSON is longer than `longest`, the beginning of the JSON."""
    written = msgspec.json.encode(args).decode()
    return args if len(written) <= longest else f"{written[:longest]}…"
