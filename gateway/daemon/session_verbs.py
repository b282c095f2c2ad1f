"""What the control socket answers about sessions: lists, contents, search, export, removal."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gateway.control_socket.server import AnswerParams, Verb, as_verb
from gateway.engine import Engine
from gateway.errors import SessionError
from gateway.sessions import Session, SessionRepository
from gateway.sessions.export import as_json, as_markdown
from gateway.sessions.removal import forget_sessions
from gateway.sessions.search import SessionSearch


class SessionVerbs:
    """Answers from the sessions and from the projection that searches them."""

    def __init__(self, engine: Engine, sessions: SessionRepository, search: SessionSearch) -> None:
        self._engine = engine
        self._sessions = sessions
        self._search = search

    def verbs(self) -> Mapping[str, Verb]:
        answers: Mapping[str, AnswerParams] = {
            "list": self._list,
            "show": self._show,
            "search": self._find,
            "export": self._export,
            "delete": self._delete,
            "rebuild": self._rebuild,
            "statistics": self._statistics,
        }
        return {f"sessions.{name}": as_verb(one) for name, one in answers.items()}

    async def _list(self, params: dict[str, Any]) -> Any:
        rows = await self._search.list_sessions(platform=params.get("platform", ""), limit=params.get("limit", 50))
        return {"sessions": [asdict(row) for row in rows]}

    async def _show(self, params: dict[str, Any]) -> Any:
        return json.loads(as_json(await self._session(params["session"])))

    async def _find(self, params: dict[str, Any]) -> Any:
        hits = await self._search.find(params["query"], limit=params.get("limit", 20))
        return {"hits": [asdict(hit) for hit in hits]}

    async def _export(self, params: dict[str, Any]) -> Any:
        session = await self._session(params["session"])
        return {"text": as_json(session) if params.get("format") == "json" else as_markdown(session)}

    async def _delete(self, params: dict[str, Any]) -> Any:
        name = params["session"]
        if name.startswith("agent:"):
            gone = await forget_sessions(self._engine, self._sessions, name)
        else:
            session = await self._session(name)
            gone = await forget_sessions(self._engine, self._sessions, session.key, session.session_id)
        if not gone:
            raise SessionError(f"there is no session {name}")
        return {"deleted": name}

    async def _rebuild(self, _params: dict[str, Any]) -> Any:
        return {"records": await self._search.rebuild()}

    async def _statistics(self, params: dict[str, Any]) -> Any:
        return asdict(await self._search.statistics(params.get("days", 30)))

    async def _session(self, name: str) -> Session:
        """The session of this id, or of an id that begins so, or the current one of a key."""
        if name.startswith("agent:"):
            session = await self._sessions.open(name)
            if not session.session_id:
                raise SessionError(f"there is no session under {name}")
            return session
        rows = await self._search.find_by_id_prefix(name) if name else []
        if len(rows) != 1:
            raise SessionError(
                f"{'no' if not rows else 'more than one'} session begins with {name!r}; see: sessions list"
            )
        past = await self._sessions.read_all(rows[0].session_key)
        return past[rows[0].session_id]
