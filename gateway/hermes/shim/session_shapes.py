"""The shapes of a conversation in Hermes: its place, its key, and its entry in `sessions/sessions.json`."""

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Self

from gateway.hermes.shim.config_shapes import Platform
from gateway.hermes.shim.gateway_calls import ask_gateway, refuse_attribute, warn_once
from gateway.hermes.shim.home import get_hermes_home
from gateway.hermes.shim.session_env import get_session_env
from gateway.hermes.shim.whatsapp_ids import canonical_whatsapp_identifier

GATEWAY_CHANGES = "conversations are changed by the gateway alone"
# The methods of Hermes's store that change a conversation, and the remedy here.
CHANGES = {
    "append_to_transcript": "the journal has all messages; ctx.inject_message adds one to a conversation",
    "reset_session": f"{GATEWAY_CHANGES}; a person says /new",
    "rewind_session": f"{GATEWAY_CHANGES}; a person says /undo",
    "rewrite_transcript": "the journal has all messages, and is not rewritten",
    "set_model_override": f"{GATEWAY_CHANGES}; a person says /model",
    "suspend_session": f"{GATEWAY_CHANGES}; a person says /new",
    "switch_session": f"{GATEWAY_CHANGES}; a person says /resume",
}
# The methods that note Hermes's restarts and limits, with their answers; here the journal has those.
BOOKKEEPING = {
    "clear_resume_pending": False,
    "is_session_finalizable": False,
    "mark_resume_pending": False,
    "prune_old_entries": 0,
    "set_expiry_finalized": None,
    "suspend_recently_active": 0,
    "update_session": None,
}
ALWAYS_WRITTEN = ("platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")


@dataclass
class SessionSource:
    """The place that a message came from."""

    platform: Platform
    chat_id: str
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    is_bot: bool = False
    scope_id: str | None = None
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    role_authorized: bool = False
    profile: str | None = None
    auto_thread_created: bool = False
    auto_thread_initial_name: str | None = None
    delivered_via_upstream_relay: bool = False

    def __post_init__(self) -> None:
        self.scope_id = self.guild_id = self.scope_id if self.scope_id is not None else self.guild_id

    @property
    def description(self) -> str:
        """Describe the place for people."""
        who = self.chat_name or self.user_name or self.user_id or self.chat_id
        place = "DM with" if self.chat_type == "dm" else f"{self.chat_type}:"
        return f"{place} {who}" + (f", thread: {self.thread_id}" if self.thread_id else "")

    def to_dict(self) -> dict[str, Any]:
        values = dict(vars(self))
        values["platform"] = self.platform.value
        return {name: value for name, value in values.items() if name in ALWAYS_WRITTEN or value}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        known = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        return cls(**{**known, "platform": Platform(data["platform"]), "chat_id": str(data["chat_id"])})


@dataclass
class SessionEntry:
    """One value of sessions.json."""

    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource | None = None
    display_name: str | None = None
    platform: Platform | None = None
    chat_type: str = "dm"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    total_tokens: int = 0
    estimated_cost_usd: float = 0.0
    cost_status: str = "unknown"
    last_prompt_tokens: int = 0
    was_auto_reset: bool = False
    auto_reset_reason: str | None = None
    reset_had_activity: bool = False
    is_fresh_reset: bool = False
    expiry_finalized: bool = False
    suspended: bool = False
    resume_pending: bool = False
    resume_reason: str | None = None
    last_resume_marked_at: datetime | None = None
    model_override: dict[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        values = dict(vars(self))
        for name in ("created_at", "updated_at", "last_resume_marked_at"):
            values[name] = values[name].isoformat() if values[name] else None
        values["platform"] = self.platform.value if self.platform else None
        values["origin"] = self.origin.to_dict() if self.origin else None
        return {name: value for name, value in values.items() if value or name not in ("origin", "model_override")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        known = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        for name in ("created_at", "updated_at", "last_resume_marked_at"):
            if isinstance(known.get(name), str):
                known[name] = datetime.fromisoformat(known[name])
        known["origin"] = SessionSource.from_dict(data["origin"]) if data.get("origin") else None
        known["platform"] = Platform(data["platform"]) if data.get("platform") else None
        return cls(**known)


class SessionStore:
    """The entries of `sessions/sessions.json`, read at each question; the gateway answers about one conversation."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.sessions_dir = get_hermes_home() / "sessions"

    def get_or_create_session(self, source: SessionSource, force_new: bool = False) -> SessionEntry:
        """Return the present conversation of this place; start one if it has none."""
        if force_new:
            warn_once("get_or_create_session: force_new is not offered here: a person says /new")
        key = self._generate_session_key(source)
        about = {"platform": source.platform.value, "user_id": source.user_id or ""}
        found, now = ask_gateway("session", key=key, begin=about), datetime.now(UTC)
        entry = SessionEntry.from_dict(found["entry"]) if found else SessionEntry(key, "", now, now)  # none: in a trial
        entry.origin, entry.platform, entry.chat_type = source, source.platform, source.chat_type
        return entry

    def load_transcript(self, session_id: str) -> list[dict[str, Any]]:
        """Return the messages, in Hermes's form, of the conversation that has this id now."""
        found = self.lookup_by_session_id(session_id)
        key = found.session_key if found else get_session_env("HERMES_SESSION_KEY")
        said = ask_gateway("session", key=key) if key else None
        return list(said["messages"]) if said and said["entry"]["session_id"] == session_id else []

    def get_model_override(self, session_key: str) -> dict[str, str] | None:
        found = ask_gateway("session", key=session_key) or {}
        return {"model": found["model"]} if found.get("model") else None

    def _generate_session_key(self, source: SessionSource) -> str:
        names = ("PLATFORM", "CHAT_ID", "THREAD_ID", "USER_ID", "KEY")
        *here, key = (get_session_env(f"HERMES_SESSION_{name}") for name in names)
        asked = [source.platform.value, source.chat_id, source.thread_id or "", source.user_id or ""]
        return key if key and here == asked else build_session_key(source)

    def __getattr__(self, name: str) -> Any:
        if name not in BOOKKEEPING:
            refuse_attribute("session_store", name, CHANGES.get(name, GATEWAY_CHANGES))
        warn_once(f"session_store.{name} does nothing here: the gateway itself keeps what it would note")
        return lambda *_, **__: BOOKKEEPING[name]

    def list_sessions(self, active_minutes: int | None = None) -> list[SessionEntry]:
        """List the conversations, the newest first."""
        found = sorted(self._entries(), key=lambda entry: entry.updated_at.timestamp(), reverse=True)
        since = 0 if active_minutes is None else datetime.now(UTC).timestamp() - active_minutes * 60
        return [entry for entry in found if entry.updated_at.timestamp() >= since]

    def lookup_by_session_id(self, session_id: str) -> SessionEntry | None:
        return next((entry for entry in self._entries() if entry.session_id == session_id), None)

    def peek_session_id(self, session_key: str) -> str | None:
        return next((entry.session_id for entry in self._entries() if entry.session_key == session_key), None)

    def has_any_sessions(self) -> bool:
        return bool(self._entries())

    def _entries(self) -> list[SessionEntry]:
        try:
            kept = json.loads((self.sessions_dir / "sessions.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [SessionEntry.from_dict(value) for key, value in kept.items() if not key.startswith("_")]


def build_session_key(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
    profile: str | None = None,
) -> str:
    """Build the key under which both gateways keep this conversation."""
    start = ["agent", profile if profile and profile != "default" else "main", source.platform.value]
    person = source.user_id_alt or source.user_id
    chat: str | None = source.chat_id
    if source.platform is Platform.WHATSAPP:
        person = person and (canonical_whatsapp_identifier(person) or person)
        chat = canonical_whatsapp_identifier(chat) if chat and source.chat_type == "dm" else chat
    if source.chat_type == "dm":
        return ":".join([*start, "dm", *(part for part in (chat or person, source.thread_id) if part)])
    isolate = group_sessions_per_user and (not source.thread_id or thread_sessions_per_user)
    rest = (chat, source.thread_id, person if isolate else None)
    return ":".join([*start, source.chat_type, *(str(part) for part in rest if part)])
