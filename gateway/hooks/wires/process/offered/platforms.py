"""`gateway.platforms.base`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.elsewhere import standing_in
from gateway.hooks.wires.process.hermes.networks import Platform, PlatformConfig
from gateway.hooks.wires.process.hermes.sessions import SessionSource
from gateway.hooks.wires.process.hermes.talk import (
    MessageEvent,
    MessageType,
    PlatformAdapter,
    ProcessingOutcome,
    SendResult,
)

BasePlatformAdapter = PlatformAdapter
__getattr__ = standing_in(__name__)

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
