"""Encode records as messages: one message for a record, or several for a large record.

The pieces of a large record come right before the record, under subjects of their own, in the same batch.
"""

import json
import math
from collections.abc import Mapping, Sequence

import msgspec

from gateway.cluster.nats.names import Names, digest_of
from gateway.engine.interface import NewRecord

APPEND, BODY, ID, WRITTEN = "Append-Id", "Body", "Record-Id", "Written-At"
EXPECTED, EXPECTED_UNDER = "Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"
MESSAGE_ID, LIFETIME = "Nats-Msg-Id", "Nats-TTL"
BATCH, BATCH_END = "Nats-Batch-Id", "Nats-Batch-Commit"
ROOM = 8192  # bytes of a message that its headers may take


class StoredMessage(msgspec.Struct, frozen=True):
    """A message to store; `is_record` is False for a piece."""

    subject: str
    data: bytes
    headers: dict[str, str]
    is_record: bool = True


def encode_records(names: Names, puts: Sequence[NewRecord], append_id: str, largest: int) -> list[StoredMessage]:
    """Return the messages of an append, in order; `largest` is the limit of a message in bytes."""
    messages: list[StoredMessage] = []
    for place, put in enumerate(puts):
        messages += _encode_record(names, put, f"{append_id}-{place}", largest - ROOM)
    if MESSAGE_ID not in messages[0].headers:
        messages[0].headers[MESSAGE_ID] = append_id
    for message in messages:
        message.headers[APPEND] = append_id
    return messages


def _encode_record(names: Names, put: NewRecord, piece_id: str, room: int) -> list[StoredMessage]:
    headers: dict[str, str] = {}
    if put.msg_id is not None:
        headers |= {MESSAGE_ID: digest_of(put.msg_id), ID: json.dumps(put.msg_id)}
    if put.expect is not None:
        headers[EXPECTED] = str(put.expect)
        headers[EXPECTED_UNDER] = names.stored_filter(put.subject)
    elif put.msg_id is not None:
        headers[EXPECTED] = "0"
    limit = {} if put.ttl is None else {LIFETIME: str(math.ceil(put.ttl))}
    stored = names.stored(put.subject, put.msg_id)
    if len(put.data) <= room:
        return [StoredMessage(stored, put.data, {**headers, **limit})]
    pieces = split_body(names.piece(stored, piece_id), put.data, room, limit)
    return [*pieces, StoredMessage(stored, b"", {**headers, **limit, BODY: f"{piece_id} {len(pieces)}"})]


def split_body(where: str, data: bytes, room: int, limit: Mapping[str, str]) -> list[StoredMessage]:
    """Split large data into messages whose subjects start with `where`."""
    pieces = [data[at : at + room] for at in range(0, len(data), room)]
    return [StoredMessage(f"{where}.{number}", piece, dict(limit), False) for number, piece in enumerate(pieces)]


def read_time(headers: Mapping[str, str], stored: float) -> float:
    """Return when a record was written: for a migrated record this is earlier than `stored`, its time on the server."""
    return float(headers.get(WRITTEN, stored))
