"""`gateway.platforms.base`, as a handler sees it."""

from gateway.hermes.shim.config_shapes import Platform, PlatformConfig
from gateway.hermes.shim.placeholders import make_placeholder_getattr
from gateway.hermes.shim.platform_shapes import (
    MessageEvent,
    MessageType,
    PlatformAdapter,
    ProcessingOutcome,
    SendResult,
)
from gateway.hermes.shim.session_shapes import SessionSource

BasePlatformAdapter = PlatformAdapter
__getattr__ = make_placeholder_getattr(__name__)

__all__ = [
    "BasePlatformAdapter",
    "MessageEvent",
    "MessageType",
    "Platform",
    "PlatformConfig",
    "ProcessingOutcome",
    "SendResult",
    "SessionSource",
]
