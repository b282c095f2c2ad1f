"""The consumers that a server keeps on a stream: create them, and read their progress and backlog."""

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gateway.backoff import Attempts, Backoff
from gateway.cluster.nats.connection import NO_CONSUMER, Connection, NoAnswer, ServerRefusal
from gateway.cluster.nats.names import Names, consumer_name_of, merge_patterns
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.streams import NANOSECONDS
from gateway.engine.interface import ConsumerSpec, Record
from gateway.errors import EngineError

BEHIND, BEHIND_SECONDS = Backoff(0.01, 0.2), 2.0  # our view may still have records that another gateway removed
BEGINNING = ("deliver_policy", "opt_start_seq")  # the settings that an existing consumer cannot change


def describe_consumer(names: Names, spec: ConsumerSpec) -> dict[str, Any]:
    """Return the consumer's configuration for the server."""
    name = consumer_name_of(spec.name)
    return {
        "durable_name": name,
        "name": name,
        "metadata": {"name": spec.name},
        "filter_subjects": [names.stored_filter(pattern) for pattern in merge_patterns(spec.patterns)],
        "ack_policy": "explicit",
        "ack_wait": int(spec.ack_wait * NANOSECONDS),
        "max_ack_pending": spec.max_inflight,
        "max_deliver": -1,
        "deliver_policy": "new" if spec.new_only else "all",
    }


def has_config(kept: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Return True if the server has this configuration. The server keeps a single filter under another name."""
    kept = {**kept, "filter_subjects": kept.get("filter_subjects") or [kept.get("filter_subject")]}
    metadata = config["metadata"].items() <= kept.get("metadata", {}).items()
    return metadata and all(kept.get(key) == value for key, value in config.items() if key != "metadata")


async def make_consumer(connection: Connection, reader: RecordReader, spec: ConsumerSpec) -> None:
    """Create the consumer or update its settings; raises EngineError."""
    names = reader.names
    config = describe_consumer(names, spec)
    found = await read_consumer(connection, reader, spec.name)
    if found is not None:
        config |= {key: found["config"][key] for key in BEGINNING if key in found["config"]}
        if has_config(found["config"], config):
            return
    where = f"CONSUMER.CREATE.{names.stream}.{config['name']}"
    try:
        await connection.call(where, stream_name=names.stream, config=config)
    except ServerRefusal as refusal:
        raise EngineError(f"the NATS server refuses the consumer {spec.name!r}: {refusal}") from refusal


async def read_consumer(connection: Connection, reader: RecordReader, name: str) -> dict[str, Any] | None:
    """Return the consumer's state; None if it does not exist. Raises EngineError.

    In a cluster, a server that does not yet know the leader of a new consumer reports an empty consumer: then retry.
    """

    async def look() -> dict[str, Any]:
        found = await connection.ask_stored(where, b"{}")
        if reader.copies > 1 and not found.get("cluster", {}).get("leader"):
            raise NoAnswer("no server leads the consumer yet")
        return found

    where = f"$JS.API.CONSUMER.INFO.{reader.names.stream}.{consumer_name_of(name)}"
    try:
        return await connection.insist(look)
    except ServerRefusal as refusal:
        if refusal.number == NO_CONSUMER:
            return None
        raise EngineError(f"the NATS server cannot say how far a consumer is: {refusal}") from refusal


def list_patterns(names: Names, state: Mapping[str, Any]) -> tuple[str, ...]:
    config = state["config"]
    return tuple(map(names.pattern_of_filter, config.get("filter_subjects") or [config["filter_subject"]]))


async def count_owed(connection: Connection, reader: RecordReader, name: str) -> int:
    """Count the consumer's backlog.

    The consumer's server learns of appends through other servers a moment later: wait for the appends that we know of.
    """
    attempts, end = Attempts(BEHIND), time.monotonic() + BEHIND_SECONDS
    while True:
        found = await read_consumer(connection, reader, name)
        if found is None:
            return 0
        await reader.known.catch_up()
        known = reader.known.count(list_patterns(reader.names, found), int(found["delivered"]["stream_seq"]))
        pending, is_late = int(found["num_pending"]), time.monotonic() > end
        if is_late or (known <= pending and not reader.known.is_behind):
            return pending + int(found["num_ack_pending"])
        await asyncio.sleep(attempts.pause())


async def list_owed(
    connection: Connection, reader: RecordReader, name: str, until: float, after: int, limit: int
) -> list[Record]:
    """List the consumer's pending records, as `Engine.list_owed` describes."""
    found = await read_consumer(connection, reader, name)
    if found is None:
        return []
    after = max(after, int(found["ack_floor"]["stream_seq"]))
    filters = found["config"].get("filter_subjects") or [found["config"]["filter_subject"]]
    owed: list[Record] = []
    for where in filters:
        owed += await reader.read_stored(where, after, limit)
    return [record for record in sorted(owed, key=lambda record: record.seq) if record.ts < until][:limit]


async def restore_deliveries(connection: Connection, reader: RecordReader, name: str) -> None:
    """Make the unacknowledged deliveries of a consumer due again, if their gateway is gone."""
    found = await read_consumer(connection, reader, name)
    if found and found["num_ack_pending"]:
        delivery, seq = found["delivered"]["consumer_seq"], int(found["delivered"]["stream_seq"])
        for record in await list_owed(connection, reader, name, math.inf, 0, seq):
            await _restore_delivery(connection, reader.names, name, record.seq, delivery)


async def _restore_delivery(connection: Connection, names: Names, consumer: str, seq: int, delivery: int) -> None:
    """Return a record in the name of a gateway that is gone; no effect if the record is not in flight.

    `delivery` is the number of the consumer's last delivery: the server only checks that this delivery existed.
    """
    attempt, at, pending = 1, 0, 0  # unused by the server
    where = f"$JS.ACK.{names.stream}.{consumer_name_of(consumer)}.{attempt}.{seq}.{delivery}.{at}.{pending}"
    with suppress(NoAnswer):
        await connection.publish(where, b"-NAK")
