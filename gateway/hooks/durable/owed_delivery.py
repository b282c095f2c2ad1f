"""A pending event of a durable hook, as the journal records it: the gateway decodes only the fields that it needs.

The gateway decodes the other fields for display, or for a filter. The hook gets the bytes of the record, and the hook's
own process decodes them.
"""

from collections.abc import Sequence
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


_decode_heads = msgspec.json.Decoder(list[_EventHead]).decode


class OwedDelivery(msgspec.Struct, frozen=True):
    """A delivery whose bytes can go to the hook unchanged; `read_plain_deliveries` finds these."""

    delivery: Delivery
    name: str
    owner: EventOwner
    depth: int

    def read_fields(self) -> dict[str, Any]:
        """Return all fields, as the hook gets them."""
        event = records.decode(self.delivery.record.data)
        assert isinstance(event, records.EmittedEvent)
        key = event.fields.get("delivery", {}).get("key", self.delivery.record.seq)
        return {**event.fields, "delivery": {"key": key, "attempt": 1}}


def read_plain_deliveries(deliveries: Sequence[Delivery]) -> list[OwedDelivery]:
    """Return the deliveries before the first that is unreadable, or names files that may have to be fetched first."""
    try:
        heads = _decode_heads(b"[%b]" % b",".join([one.record.data for one in deliveries]))
    except msgspec.MsgspecError:
        half = len(deliveries) // 2
        found = read_plain_deliveries(deliveries[:half])
        return found if not half or len(found) < half else found + read_plain_deliveries(deliveries[half:])
    found = []
    for one, head in zip(deliveries, heads, strict=True):
        fields = head.fields
        if head.kind != EVENT_KIND or head.v > VERSION or fields.get("attachments") or fields.get("file"):
            break
        found.append(OwedDelivery(one, head.name, fields, head.depth))
    return found


def encode_batch(batch: Sequence[OwedDelivery]) -> bytes:
    """Encode deliveries for a worker (`EventBatch`)."""
    events = b",".join([one.delivery.record.data for one in batch])
    keys = b",".join([b"%d" % one.delivery.record.seq for one in batch])
    return b'{"events":[%b],"keys":[%b]}' % (events, keys)
