"""The streams of a journal on the server: create missing streams, check their settings, and read them.

A stream that keeps less than a journal needs, for a shorter time, or on fewer servers, would lose acknowledged records.
So the gateway refuses such a stream at the start, instead of noticing a loss later.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any

import msgspec

from gateway.cluster.nats.connection import NO_MESSAGE, NO_STREAM, Connection, ServerRefusal
from gateway.cluster.nats.names import Names
from gateway.engine.interface import make_shards_error
from gateway.errors import EngineError

COPIES = 3
NO_CLUSTER = 10074
NO_PLACE = 10005  # too few servers for the copies
PLACE_SECONDS, GLANCE = 5.0, 0.1
FIXED = {"storage", "retention"}  # the settings that an existing stream cannot change
NANOSECONDS = 1_000_000_000
MARK = "hermes-gateway"
SHARDS = "hermes-gateway-shards"  # marks a journal of 0.1.0 that has several streams
DELETION_SECONDS = 15.0


class JournalState(msgspec.Struct, frozen=True):
    """The state of a journal: `copies` servers keep it, and `mark` is the mark of a migration, or ""."""

    copies: int
    mark: str


async def open_streams(connection: Connection, names: Names, window: float) -> JournalState:
    """Open the streams; the server remembers message ids for `window` seconds across subjects.

    Raises:
        EngineError: the settings of a stream do not fit, or the journal is in shards.
    """
    records, keys, files = _describe_streams(connection, names, window)
    log = await _open_stream(connection, names.stream, records)
    if SHARDS in log.get("metadata", {}):
        raise make_shards_error(f"the journal {names.journal!r} on the NATS server")
    beside = await _open_stream(connection, names.keys, keys)
    await _open_stream(connection, names.files, files)
    return JournalState(int(log["num_replicas"]), _read_mark(log) or _read_mark(beside))


def _read_mark(config: dict[str, Any]) -> str:
    return str(config.get("metadata", {}).get(MARK, ""))


async def replace_stream(connection: Connection, names: Names, window: float, first_seq: int, mark: str) -> None:
    """Replace the stream of records by an empty stream, even if another gateway creates a stream first."""
    wanted = _describe_records(connection, names, window) | {"first_seq": first_seq, "metadata": {MARK: mark}}
    end = time.monotonic() + DELETION_SECONDS
    while True:
        with suppress(ServerRefusal):
            await connection.call(f"STREAM.DELETE.{names.stream}")
        try:
            await _make(connection, names.stream, wanted)
            break
        except ServerRefusal as refusal:  # not deleted everywhere yet, or another gateway was faster
            if time.monotonic() > end:
                raise EngineError(f"the NATS server makes no stream {names.stream!r}: {refusal}") from refusal
            await asyncio.sleep(0.2)


async def set_mark(connection: Connection, names: Names, mark: str) -> None:
    """Mark the journal, so that only a migration opens it; "" removes the mark.

    The stream of keys is marked too, because a migration removes and recreates the stream of records.
    """
    for stream in (names.stream, names.keys):
        config = (await connection.call(f"STREAM.INFO.{stream}"))["config"]
        metadata = {key: value for key, value in config.get("metadata", {}).items() if key != MARK}
        config["metadata"] = metadata | ({MARK: mark} if mark else {})
        await connection.call(f"STREAM.UPDATE.{stream}", **config)


async def read_message(connection: Connection, stream: str, **which: Any) -> dict[str, Any] | None:
    """Read a stream's message from the leader of the stream; None if the message is missing.

    Raises:
        EngineError: no server answers, or the server refuses.
    """
    try:
        message: dict[str, Any] = (await connection.call(f"STREAM.MSG.GET.{stream}", **which))["message"]
    except ServerRefusal as refusal:
        if refusal.number == NO_MESSAGE:
            return None
        raise EngineError(f"the NATS server cannot read from the stream {stream!r}: {refusal}") from refusal
    return message


async def list_subjects(connection: Connection, stream: str, where: str) -> list[str]:
    """List the subjects of the pattern `where` under which a stream has messages.

    Raises:
        EngineError: no server answers, or the server refuses.
    """
    found = list[str]()
    while True:
        try:
            answer = await connection.call(f"STREAM.INFO.{stream}", subjects_filter=where, offset=len(found))
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server cannot list the stream {stream!r}: {refusal}") from refusal
        found += answer["state"].get("subjects") or ()
        if len(found) >= answer.get("total", 0):
            return found


def _describe_streams(connection: Connection, names: Names, window: float) -> tuple[dict[str, Any], ...]:
    """Return the required configurations of the streams of records, of keys and of files."""
    keys = {"subjects": [f"{names.journal}.k.>", f"{names.journal}.d.>"], "max_msgs_per_subject": 1}
    files = {"subjects": [f"{names.journal}.f.>"], "max_msgs_per_subject": -1}
    common = _describe_common(connection)
    return _describe_records(connection, names, window), common | keys, common | files


def _describe_records(connection: Connection, names: Names, window: float) -> dict[str, Any]:
    return _describe_common(connection) | {
        "subjects": [names.all_records, names.all_pieces],
        "max_msgs_per_subject": -1,
        "allow_atomic": True,
        "allow_direct": True,
        "duplicate_window": int(window * NANOSECONDS),
        "republish": {"src": names.all_records, "dest": names.shown},
    }


def _describe_common(connection: Connection) -> dict[str, Any]:
    return {
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": COPIES if len(connection.client.servers) >= COPIES else 1,
        "allow_msg_ttl": True,
        "max_msg_size": -1,
        "max_age": 0,
        "max_msgs": -1,
    }


async def _open_stream(connection: Connection, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    try:
        found = await _read_or_make(connection, name, wanted)
    except ServerRefusal as refusal:
        raise EngineError(f"the NATS server does not keep the stream {name!r}: {refusal}") from refusal
    config: dict[str, Any] = found["config"]
    is_alone = "name" not in found.get("cluster", {})  # a single server may have several addresses
    copies = 1 if is_alone else wanted["num_replicas"]
    for setting, value in (wanted | {"num_replicas": copies}).items():
        _check_setting(name, setting, value, config.get(setting))
    return config


async def _read_or_make(connection: Connection, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    try:
        return await connection.call(f"STREAM.INFO.{name}")
    except ServerRefusal as refusal:
        if refusal.number != NO_STREAM:
            raise
    return await _make(connection, name, wanted)


async def _make(connection: Connection, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Create a stream with three copies if the cluster has three servers, even if the address names fewer.

    Some servers may be away or just starting. The other servers do not yet see a server that just started, so the call
    retries for PLACE_SECONDS.
    """
    end, wanted = time.monotonic() + PLACE_SECONDS, {**wanted, "num_replicas": COPIES}
    while True:
        try:
            return await connection.call(f"STREAM.CREATE.{name}", name=name, **wanted)
        except ServerRefusal as refusal:
            if refusal.number == NO_CLUSTER:
                break
            if refusal.number != NO_PLACE:
                raise
            if time.monotonic() > end:
                if len(connection.client.servers) >= COPIES:
                    raise
                break  # a cluster of two
        await asyncio.sleep(GLANCE)
    return await connection.call(f"STREAM.CREATE.{name}", name=name, **{**wanted, "num_replicas": 1})


def _check_setting(name: str, setting: str, wanted: Any, found: Any) -> None:
    if setting in ("num_replicas", "duplicate_window"):
        is_well = isinstance(found, int) and found >= wanted
    else:
        is_well = found == wanted
    if is_well:
        return
    remedy = "remove it" if setting in FIXED else "change it with `nats stream edit`"
    raise EngineError(
        f"the stream {name!r} of the NATS server has {setting} {found!r}, where a journal needs {wanted!r}: "
        f"{remedy}, or name another journal behind the address"
    )
