"""A message as callbacks of `pre_gateway_dispatch` expect it: Hermes's `MessageEvent`, as far as we know its facts."""

from datetime import UTC, datetime
from enum import Enum
from types import SimpleNamespace
from typing import Any

from gateway.events import Event

KINDS = ("text", "location", "photo", "video", "audio", "voice", "document", "sticker", "command")
MessageType = Enum("MessageType", {kind.upper(): kind for kind in KINDS})  # type: ignore[misc]  # made of the tuple
_MEANT = {"image": "photo", "file": "document"}


class Platform(str):
    """A platform's name, which is also the `value` and `name` of itself, as an enum's member is."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)

    @property
    def name(self) -> str:
        return self.upper()


class Said(SimpleNamespace):
    """A message; who changes its `text` changes nothing: `{"action": "rewrite", "text": ...}` does."""

    text: str

    def is_command(self) -> bool:
        return self.text.startswith("/")

    def get_command(self) -> str | None:
        words = self.text[1:].split(maxsplit=1) if self.is_command() else []
        return words[0].partition("@")[0].lower() if words else None

    def get_command_args(self) -> str:
        words = self.text.split(maxsplit=1)
        return words[1] if self.is_command() and len(words) > 1 else "" if self.is_command() else self.text


def message_event(event: Event) -> Said:
    files = [one for one in event.get("attachments") or () if isinstance(one, dict)]
    kind = str(files[0].get("kind") or "") if files else "text"
    kind = _MEANT.get(kind, kind)
    text = str(event.get("text") or "")
    kind = "command" if text.startswith("/") else kind if kind in KINDS else "document"
    return Said(
        text=text,
        message_type=MessageType(kind),
        source=_source(event),
        raw_message=None,
        message_id=event.get("message_id"),
        platform_update_id=None,
        media_urls=[str(one.get("path") or "") for one in files],
        media_types=[str(one.get("media_type") or "") for one in files],
        reply_to_message_id=None,
        reply_to_text=None,
        reply_to_author_id=None,
        reply_to_author_name=None,
        reply_to_is_own_message=False,
        auto_skill=None,
        channel_prompt=None,
        channel_context=None,
        internal=False,
        metadata={},
        timestamp=datetime.fromtimestamp(event.get("time") or 0, UTC),
    )


def _source(event: Event) -> Any:
    return SimpleNamespace(
        platform=Platform(event.get("platform") or ""),
        chat_id=event.get("chat_id") or "",
        chat_name=None,
        chat_type=event.get("chat_type") or "dm",
        user_id=event.get("user_id"),
        user_name=event.get("user_name"),
        thread_id=event.get("thread_id") or None,
        chat_topic=None,
        user_id_alt=None,
        chat_id_alt=None,
        is_bot=False,
        message_id=event.get("message_id"),
        profile=None,
    )
