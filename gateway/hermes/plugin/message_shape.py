"""The event `message:received` in Hermes's shapes: the message with all data of its network, and its place."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.events import Event
from gateway.hermes.shim.config_shapes import CALLED_BY_ID, Platform
from gateway.hermes.shim.network_message import NetworkMessage
from gateway.hermes.shim.platform_shapes import MessageEvent, MessageType
from gateway.hermes.shim.session_shapes import SessionSource

_HERMES_KINDS = {"image": "photo", "file": "document"}
_MESSAGE_KINDS = frozenset(kind.value for kind in MessageType)


def build_message_event(event: Event) -> MessageEvent:
    """Build the message. To change it has no effect: return `{"action": "rewrite", "text": ...}`."""
    files = [one for one in event.get("attachments") or () if isinstance(one, dict)]
    text, extra = str(event.get("text") or ""), event.get("extra") or {}
    replied = event.get("reply_to") or None
    return MessageEvent(
        text,
        MessageType(_kind_of(text, files, event.get("parts") or ())),
        build_source(event),
        NetworkMessage.view(extra.get("raw")),
        event.get("message_id"),
        extra.get("update_id"),
        media_urls=[str(one.get("path") or "") for one in files],
        media_types=[str(one.get("media_type") or "") for one in files],
        reply_to_message_id=None if replied == event.get("message_id") else replied,
        reply_to_text=extra.get("reply_to_text"),
        reply_to_author_id=extra.get("reply_to_author_id"),
        reply_to_author_name=extra.get("reply_to_author_name"),
        reply_to_is_own_message=bool(extra.get("reply_to_is_own")),
        timestamp=datetime.fromtimestamp(event.get("sent_at") or event.get("time") or 0, UTC),
    )


def build_source(event: Event) -> SessionSource:
    extra: dict[str, Any] = event.get("extra") or {}
    chat, person = _names_of(event)
    return SessionSource(
        Platform(event.get("platform") or "local"),
        event.get("chat_id") or "",
        f"{extra['guild_name']} / #{chat}" if extra.get("guild_name") else chat,
        event.get("chat_type") or "dm",
        event.get("user_id"),
        person,
        event.get("thread_id") or None,
        extra.get("chat_topic"),
        is_bot=bool(extra.get("is_bot")),
        scope_id=extra.get("guild") or extra.get("team"),
        parent_chat_id=extra.get("parent_chat"),
        message_id=event.get("message_id"),
    )


def _names_of(event: Event) -> tuple[str | None, str | None]:
    """Return the names of the chat and of the person, as Hermes has them."""
    if event.get("platform") in CALLED_BY_ID:
        return event.get("chat_id") or None, event.get("user_name") or event.get("user_id") or None
    return event.get("chat_name") or None, event.get("user_name") or None


def _kind_of(text: str, files: list[dict[str, Any]], parts: Sequence[Any]) -> str:
    if text.startswith("/"):
        return "command"
    for part in parts:
        if not files and part.get("kind") in ("sticker", "location"):
            return str(part["kind"])
    kind = str(files[0].get("kind") or "document") if files else "text"
    kind = _HERMES_KINDS.get(kind, kind)
    return kind if kind in _MESSAGE_KINDS else "document"
