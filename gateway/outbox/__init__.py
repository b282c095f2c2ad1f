"""The outbox: what is owed to people goes out, once, in order, whatever happens in between."""

from gateway.outbox.interface import DeliveryReport, DoubtPolicy, OutboxSettings, ReplyWithheld, Transport
from gateway.outbox.outbox import Outbox
from gateway.outbox.stream import Stream

__all__ = ["DeliveryReport", "DoubtPolicy", "Outbox", "OutboxSettings", "ReplyWithheld", "Stream", "Transport"]
