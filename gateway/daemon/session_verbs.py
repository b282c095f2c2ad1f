"""What the control socket answers about sessions: lists, contents, search, export, removal, and what waits for a yes.

Whoever reaches the socket is the owner, so their yes counts for everybody's call.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.daemon.gateway import AnswerVerb, Gateway
from gateway.dispatcher.question_places import describe_request
from gateway.errors import SessionError
from gateway.sessions import Session
from gateway.sessions.export import as_json, as_markdown
from gateway.sessions.removal import forget_sessions


async def _list(gateway: Gateway, params: dict[str, Any]) -> Any:
    rows = await gateway.search.list_sessions(platform=params.get("platform", ""), limit=params.get("limit", 50))
    return {"sessions": [asdict(row) for row in rows]}


async def _show(gateway: Gateway, params: dict[str, Any]) -> Any:
    return json.loads(as_json(await find_session(gateway, params["session"])))


async def _search(gateway: Gateway, params: dict[str, Any]) -> Any:
    hits = await gateway.search.find(params["query"], limit=params.get("limit", 20))
    return {"hits": [asdict(hit) for hit in hits]}


async def _export(gateway: Gateway, params: dict[str, Any]) -> Any:
    session = await find_session(gateway, params["session"])
    return {"text": as_json(session) if params.get("format") == "json" else as_markdown(session)}


async def _delete(gateway: Gateway, params: dict[str, Any]) -> Any:
    name = params["session"]
    if name.startswith("agent:"):
        gone = await forget_sessions(gateway.engine, gateway.sessions, name)
    else:
        session = await find_session(gateway, name)
        gone = await forget_sessions(gateway.engine, gateway.sessions, session.key, session.session_id)
    if not gone:
        raise SessionError(f"there is no session {name}")
    return {"deleted": name}


async def _rebuild(gateway: Gateway, _params: dict[str, Any]) -> Any:
    return {"records": await gateway.search.rebuild()}


async def _statistics(gateway: Gateway, params: dict[str, Any]) -> Any:
    return asdict(await gateway.search.statistics(params.get("days", 30)))


async def _list_approvals(gateway: Gateway, _params: dict[str, Any]) -> Any:
    found = await gateway.dispatcher.approvals.list_open()
    return {"approvals": [describe_request(request, turn) for request, turn in found]}


async def _answer_approval(gateway: Gateway, params: dict[str, Any]) -> Any:
    mark, allowed = str(params["id"]), params["allowed"] is True
    approvals = gateway.dispatcher.approvals
    request = await approvals.find(mark)
    by = f"{PLATFORM}:{OWNER}"
    if request is None or not await approvals.answer(request, "yes" if allowed else "deny", by):
        raise SessionError(f"no approval {mark[:60]!r} is open\nthose that are: hermes-gateway approvals list")
    return {"id": mark, "allowed": allowed}


async def find_session(gateway: Gateway, name: str) -> Session:
    """The session of this id, or of an id that begins so, or the current one of a key."""
    if name.startswith("agent:"):
        session = await gateway.sessions.open(name)
        if not session.session_id:
            raise SessionError(f"there is no session under {name}")
        return session
    rows = await gateway.search.find_by_id_prefix(name) if name else []
    if len(rows) != 1:
        raise SessionError(f"{'no' if not rows else 'more than one'} session begins with {name!r}; see: sessions list")
    past = await gateway.sessions.read_all(rows[0].session_key)
    return past[rows[0].session_id]


SESSION_VERBS: Mapping[str, AnswerVerb] = {
    "sessions.list": _list,
    "sessions.show": _show,
    "sessions.search": _search,
    "sessions.export": _export,
    "sessions.delete": _delete,
    "sessions.rebuild": _rebuild,
    "sessions.statistics": _statistics,
    "approvals.list": _list_approvals,
    "approvals.answer": _answer_approval,
}
