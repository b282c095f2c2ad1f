"""The outbox: what is owed to people goes out, once, in order, whatever happens in between."""

from gateway.outbox.carrier import Carrier, Doubt
from gateway.outbox.outbox import Outbox
from gateway.outbox.settings import Delivery, OutboxSettings, Withheld
from gateway.outbox.stream import Stream

__all__ = ["Carrier", "Delivery", "Doubt", "Outbox", "OutboxSettings", "Stream", "Withheld"]
