"""The shapes of chat messages and of network adapters in Hermes."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from gateway.hermes.shim.config_shapes import Platform, PlatformConfig
from gateway.hermes.shim.placeholders import PatchWarningType
from gateway.hermes.shim.session_shapes import SessionSource

NOT_HERE = "an adapter made by a hook is connected to nothing here"


class MessageType(Enum):
    TEXT = "text"
    LOCATION = "location"
    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"
    COMMAND = "command"


class ProcessingOutcome(Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"


@dataclass
class MessageEvent:
    """One received message."""

    text: str
    message_type: MessageType = MessageType.TEXT
    source: SessionSource | None = None
    raw_message: Any = None
    message_id: str | None = None
    platform_update_id: int | None = None
    media_urls: list[str] = field(default_factory=list)
    media_types: list[str] = field(default_factory=list)
    reply_to_message_id: str | None = None
    reply_to_text: str | None = None
    reply_to_author_id: str | None = None
    reply_to_author_name: str | None = None
    reply_to_is_own_message: bool = False
    auto_skill: str | list[str] | None = None
    channel_prompt: str | None = None
    channel_context: str | None = None
    internal: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    timestamp: datetime = field(default_factory=datetime.now)

    def is_command(self) -> bool:
        return self.text.startswith("/")

    def get_command(self) -> str | None:
        """Return the command's name, without the slash and without the name of the addressed bot."""
        if not self.is_command():
            return None
        name = self.text[1:].split(maxsplit=1)[0] if self.text[1:].strip() else ""
        name = name.lower().partition("@")[0]
        return None if "/" in name else name

    def get_command_args(self) -> str:
        if not self.is_command():
            return self.text
        _, _, rest = self.text.partition(" ")
        return rest.strip()


@dataclass
class SendResult:
    success: bool
    message_id: str | None = None
    error: str | None = None
    raw_response: Any = None
    retryable: bool = False
    retry_after: float | None = None
    continuation_message_ids: tuple[str, ...] = ()
    error_kind: str | None = None


class PatchWarningABCMeta(PatchWarningType, ABCMeta):
    """The metaclass of abstract classes that warn when they are patched."""


class PlatformAdapter(metaclass=PatchWarningABCMeta):
    """The base class of Hermes's adapters.

    A hook can make one and use it by hand; the gateway has adapters of its own.
    """

    def __init__(self, config: PlatformConfig, platform: Platform) -> None:
        self.config = config
        self.platform = platform
        self.name = platform.value
        self._handler: Callable[..., Any] | None = None

    @abstractmethod
    async def connect(self, *, is_reconnect: bool = False) -> bool: ...

    @abstractmethod
    async def disconnect(self) -> None: ...

    @abstractmethod
    async def send(
        self, chat_id: str, content: str, reply_to: str | None = None, metadata: dict[str, Any] | None = None
    ) -> SendResult: ...

    @abstractmethod
    async def get_chat_info(self, chat_id: str) -> dict[str, Any]: ...

    async def edit_message(self, chat_id: str, message_id: str, content: str, **_: Any) -> SendResult:  # noqa: ARG002
        return SendResult(False, error=NOT_HERE)

    async def send_typing(self, chat_id: str, metadata: dict[str, Any] | None = None) -> None:
        """Do nothing: no sign is shown."""

    async def stop_typing(self, chat_id: str) -> None:
        """Do nothing: no sign was shown."""

    def set_message_handler(self, handler: Callable[..., Any]) -> None:
        self._handler = handler

    async def handle_message(self, event: MessageEvent) -> None:
        """Pass the message to the handler, if one is set."""
        if self._handler:
            await self._handler(event)

    def build_source(self, chat_id: str, **facts: Any) -> SessionSource:
        return SessionSource(self.platform, str(chat_id), **facts)
