"""What the control socket answers about sessions: lists, contents, search, export, removal, and what waits for a yes.

Whoever reaches the socket is the owner, so their yes counts for everybody's call.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.control_socket.params import NoParams
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.dispatcher.question_places import describe_request
from gateway.errors import SessionError
from gateway.sessions import Session
from gateway.sessions.export import as_json, as_markdown
from gateway.sessions.removal import forget_sessions

RowCount: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)]
"""At most so many; -1: all."""


class SessionListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one platform, or of all."""

    platform: str = ""
    limit: RowCount = 50


class SessionParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session's id, how one begins, or a session key."""

    session: str


class SessionSearchParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words that are looked for."""

    query: str
    limit: RowCount = 20


class SessionExportParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session, and as what it is wanted."""

    session: str
    format: Literal["markdown", "json"] = "markdown"


class StatisticsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last days."""

    days: RowCount = 30


class ApprovalAnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the approval of this id is given."""

    id: str
    allowed: bool


async def _list(gateway: Gateway, params: SessionListParams) -> Any:
    rows = await gateway.search.list_sessions(platform=params.platform, limit=params.limit)
    return {"sessions": [asdict(row) for row in rows]}


async def _show(gateway: Gateway, params: SessionParams) -> Any:
    return json.loads(as_json(await find_session(gateway, params.session)))


async def _search(gateway: Gateway, params: SessionSearchParams) -> Any:
    hits = await gateway.search.find(params.query, limit=params.limit)
    return {"hits": [asdict(hit) for hit in hits]}


async def _export(gateway: Gateway, params: SessionExportParams) -> Any:
    session = await find_session(gateway, params.session)
    return {"text": as_json(session) if params.format == "json" else as_markdown(session)}


async def _delete(gateway: Gateway, params: SessionParams) -> Any:
    name = params.session
    if name.startswith("agent:"):
        gone = await forget_sessions(gateway.engine, gateway.sessions, name)
    else:
        session = await find_session(gateway, name)
        gone = await forget_sessions(gateway.engine, gateway.sessions, session.key, session.session_id)
    if not gone:
        raise SessionError(f"there is no session {name}")
    return {"deleted": name}


async def _rebuild(gateway: Gateway, _params: NoParams) -> Any:
    return {"records": await gateway.search.rebuild()}


async def _statistics(gateway: Gateway, params: StatisticsParams) -> Any:
    return asdict(await gateway.search.statistics(params.days))


async def _list_approvals(gateway: Gateway, _params: NoParams) -> Any:
    found = await gateway.dispatcher.approvals.list_open()
    ahead = time.time() - gateway.engine.clock.latest()
    return {"approvals": [describe_request(request, turn, turn.until + ahead) for request, turn in found]}


async def _answer_approval(gateway: Gateway, params: ApprovalAnswerParams) -> Any:
    mark, allowed = params.id, params.allowed
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


SESSION_VERBS: Mapping[str, GatewayVerb[Any]] = {
    "sessions.list": GatewayVerb(SessionListParams, _list),
    "sessions.show": GatewayVerb(SessionParams, _show),
    "sessions.search": GatewayVerb(SessionSearchParams, _search),
    "sessions.export": GatewayVerb(SessionExportParams, _export),
    "sessions.delete": GatewayVerb(SessionParams, _delete),
    "sessions.rebuild": GatewayVerb(NoParams, _rebuild),
    "sessions.statistics": GatewayVerb(StatisticsParams, _statistics),
    "approvals.list": GatewayVerb(NoParams, _list_approvals),
    "approvals.answer": GatewayVerb(ApprovalAnswerParams, _answer_approval),
}
