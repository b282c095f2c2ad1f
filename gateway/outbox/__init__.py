"""The outbox: what is owed to people goes out, once, in order, whatever happens in between."""

from gateway.outbox.interface import DoubtPolicy, Transport
from gateway.outbox.outbox import Outbox
from gateway.outbox.settings import DeliveryReport, OutboxSettings, ReplyWithheld
from gateway.outbox.stream import Stream

__all__ = ["DeliveryReport", "DoubtPolicy", "Outbox", "OutboxSettings", "ReplyWithheld", "Stream", "Transport"]
