"""A pending event of a durable hook, as the journal records it: the gateway decodes only the fields that it needs.

The gateway decodes the other fields for display, or for a filter. The hook gets the bytes of the record, and the hook's
own process decodes them.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypedDict

import msgspec

from gateway.engine.interface import Delivery
from gateway.messages.steps import VERSION
from gateway.records import records

EVENT_KIND = "event"


class EventOwner(TypedDict, total=False):
    """The fields that identify an event, its person, and its files."""

    id: Any
    hook: Any
    role: Any
    rights: Any
    agent: Any
    platform: Any
    account: Any
    chat_id: Any
    user_id: Any
    person: Any
    attachments: Any
    file: Any


class _EventHead(msgspec.Struct, frozen=True):
    kind: str
    name: str
    fields: EventOwner
    v: int = 1
    depth: int = 0


_decode_head = msgspec.json.Decoder(_EventHead).decode


class OwedDelivery:
    """A delivery that can go to the hook unchanged, from `read_plain_delivery`."""

    def __init__(self, delivery: Delivery, head: _EventHead) -> None:
        self.delivery = delivery
        self.name, self.owner, self.depth = head.name, head.fields, head.depth

    @cached_property
    def _fields(self) -> dict[str, Any]:
        event = records.decode(self.delivery.record.data)
        assert isinstance(event, records.EmittedEvent)
        return event.fields

    def read_fields(self) -> dict[str, Any]:
        """Return all fields, as the hook gets them."""
        key = self._fields.get("delivery", {}).get("key", self.delivery.record.seq)
        return {**self._fields, "delivery": {"key": key, "attempt": 1}}


def read_plain_delivery(delivery: Delivery) -> OwedDelivery | None:
    """Return the delivery, or None if the event is unreadable, or names files that may have to be fetched first."""
    try:
        head = _decode_head(delivery.record.data)
    except msgspec.MsgspecError:
        return None
    is_plain = head.kind == EVENT_KIND and head.v <= VERSION
    is_plain = is_plain and not head.fields.get("attachments") and not head.fields.get("file")
    return OwedDelivery(delivery, head) if is_plain else None


def encode_batch(batch: Sequence[OwedDelivery]) -> bytes:
    """Encode deliveries for a worker (`EventBatch`)."""
    events = b",".join([one.delivery.record.data for one in batch])
    keys = b",".join([b"%d" % one.delivery.record.seq for one in batch])
    return b'{"events":[%b],"keys":[%b]}' % (events, keys)
