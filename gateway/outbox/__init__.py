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
from gateway.outbox.stream_writer import REPEAT, StreamWriter

__all__ = [
    "REPEAT",
    "DeliveryReport",
    "DoubtPolicy",
    "LiveCapability",
    "LiveTransport",
    "Outbox",
    "OutboxSettings",
    "ReplyWithheld",
    "StreamWriter",
    "Transport",
    "nonce_of",
]
