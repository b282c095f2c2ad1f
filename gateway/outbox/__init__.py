"""The outbox: what is owed to people goes out, once, in order, whatever happens in between."""

from gateway.outbox.interface import (
    DeliveryReport,
    DoubtPolicy,
    LiveCapability,
    LiveTransport,
    OutboxSettings,
    ReplyWithheld,
    Transport,
    nonce_of,
)
from gateway.outbox.outbox import Outbox
from gateway.outbox.stream import Stream

__all__ = [
    "DeliveryReport",
    "DoubtPolicy",
    "LiveCapability",
    "LiveTransport",
    "Outbox",
    "OutboxSettings",
    "ReplyWithheld",
    "Stream",
    "Transport",
    "nonce_of",
]
