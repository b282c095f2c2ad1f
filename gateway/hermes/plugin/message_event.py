"""A message as callbacks of `pre_gateway_dispatch` expect it."""

from datetime import UTC, datetime
from typing import Any

from gateway.events import Event
from gateway.hermes.shim.config_shapes import Platform
from gateway.hermes.shim.platform_shapes import MessageEvent, MessageType
from gateway.hermes.shim.session_shapes import SessionSource, SessionStore

DISPATCH = "pre_gateway_dispatch"
_HERMES_KINDS = {"image": "photo", "file": "document"}
_MESSAGE_KINDS = frozenset(kind.value for kind in MessageType)


def to_hermes_arguments(name: str, told: dict[str, Any], event: Event) -> dict[str, Any]:
    """The arguments of this hook name, with objects where Hermes has some."""
    if name != DISPATCH:
        return told
    return {**told, "event": build_message_event(event), "session_store": SessionStore()}


def build_message_event(event: Event) -> MessageEvent:
    """Who changes it changes nothing: `{"action": "rewrite", "text": ...}` does."""
    files = [one for one in event.get("attachments") or () if isinstance(one, dict)]
    text = str(event.get("text") or "")
    return MessageEvent(
        text,
        MessageType(_kind_of(text, files)),
        _source_of(event),
        message_id=event.get("message_id"),
        media_urls=[str(one.get("path") or "") for one in files],
        media_types=[str(one.get("media_type") or "") for one in files],
        timestamp=datetime.fromtimestamp(event.get("time") or 0, UTC),
    )


def _kind_of(text: str, files: list[dict[str, Any]]) -> str:
    if text.startswith("/"):
        return "command"
    kind = str(files[0].get("kind") or "document") if files else "text"
    kind = _HERMES_KINDS.get(kind, kind)
    return kind if kind in _MESSAGE_KINDS else "document"


def _source_of(event: Event) -> SessionSource:
    return SessionSource(
        Platform(event.get("platform") or "local"),
        event.get("chat_id") or "",
        chat_type=event.get("chat_type") or "dm",
        user_id=event.get("user_id"),
        user_name=event.get("user_name"),
        thread_id=event.get("thread_id") or None,
        message_id=event.get("message_id"),
    )
