"""Files on the servers: each file has its pieces, and one message that lists the pieces, with a hash of the whole file.

The message with the list is written last, so a file exists only when it is complete. The subject of this message has
the key, the size and the time, so that a listing reads no file. Pieces of an interrupted or replaced file expire;
pieces without an expiry are found by the key in their names.
"""

import base64
import hashlib
import logging
import math
import os
import uuid
from contextlib import suppress
from typing import BinaryIO

import msgspec
from anyio import move_on_after

from gateway.cluster.nats.connection import Connection, ServerRefusal
from gateway.cluster.nats.file_names import FileNames, make_file_id
from gateway.cluster.nats.names import Names
from gateway.cluster.nats.stored_messages import LIFETIME, ROOM
from gateway.cluster.nats.streams import list_subjects, read_message
from gateway.engine.interface import KeyedFile
from gateway.errors import EngineError
from gateway.files.folders import is_key
from gateway.threads import run_in_thread

PIECE_BYTES = 256_000
CLEAN_SECONDS = 2.0  # how long the removal of an interrupted file may take
LATER = 60.0  # seconds by which the pieces outlive the message that lists them

log = logging.getLogger(__name__)


class _FilePieces(msgspec.Struct, frozen=True):
    """A file's description: its pieces and their hash."""

    id: str
    sequences: tuple[int, ...]
    sha256: str


class NatsFiles:
    """The `FileStore` of a journal on NATS servers."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self._connection = connection
        self._stream = names.files
        self._names = FileNames(names.journal)

    async def put(self, key: str, file: BinaryIO, ttl: float) -> None:
        where, before = self._names.file(check_key(key)), await self._find(key)
        file_id, sequences, digest = make_file_id(key, uuid.uuid4().hex), list[int](), hashlib.sha256()
        size, is_whole = 0, False
        try:
            while piece := await run_in_thread(file.read, self._room):
                sequences.append(await self._write(self._names.pieces(file_id), piece, ttl + LATER))
                digest.update(piece)
                size += len(piece)
            is_whole = True
        finally:
            if not is_whole:
                with move_on_after(CLEAN_SECONDS, shield=True), suppress(EngineError):
                    await self._purge(self._names.pieces(file_id))
        about = describe_file(key, os.fstat(file.fileno()))
        said = msgspec.json.encode(_FilePieces(file_id, tuple(sequences), digest.hexdigest()))
        seq = await self._write(f"{where}.{size}.{int(about.changed)}", said, ttl)
        if before:
            await self._purge(f"{where}.*.*", seq=seq)
            await self._purge(self._names.pieces(before[1].id))

    async def get(self, key: str, file: BinaryIO) -> KeyedFile | None:
        found = await self._find(key)
        while found:
            stored, pieces = found
            if await self._read(pieces, file):
                return stored
            found = await self._find(key)
            if found and found[1].id == pieces.id:
                log.warning("the file %s is not whole on the NATS servers", key)
                return None
        return None

    async def delete(self, key: str) -> None:
        if found := await self._find(key):
            await self._purge(f"{self._names.file(key)}.*.*")
            await self._purge(self._names.pieces(found[1].id))
        else:  # the write may have been interrupted
            await self._purge(self._names.pieces(make_file_id(key, "*")))

    async def list_cut_off(self, prefix: str) -> list[str]:
        where = self._names.pieces_below(check_key(prefix))
        begun = {*map(self._names.key_of_pieces, await list_subjects(self._connection, self._stream, where))}
        return sorted(begun - {one.key for one in await self.list(prefix)})

    async def list(self, prefix: str = "") -> list[KeyedFile]:
        where = f"{self._names.file(check_key(prefix))}.>" if prefix else self._names.all
        subjects = await list_subjects(self._connection, self._stream, where)
        found = [KeyedFile(key, size, changed) for key, size, changed in map(self._names.parse, subjects)]
        return sorted({one.key: one for one in found}.values(), key=lambda one: one.key)

    @property
    def _room(self) -> int:
        return min(PIECE_BYTES, self._connection.client.max_payload // 2 - ROOM)

    async def _find(self, key: str) -> tuple[KeyedFile, _FilePieces] | None:
        where = f"{self._names.file(check_key(key))}.*.*"
        message = await read_message(self._connection, self._stream, last_by_subj=where)
        if message is None:
            return None
        _, size, changed = self._names.parse(message["subject"])
        return KeyedFile(key, size, changed), msgspec.json.decode(base64.b64decode(message["data"]), type=_FilePieces)

    async def _read(self, pieces: _FilePieces, file: BinaryIO) -> bool:
        """Read the pieces into the file; return False if a piece is missing or changed."""
        await run_in_thread(file.seek, 0)
        await run_in_thread(file.truncate)
        digest = hashlib.sha256()
        for seq in pieces.sequences:
            message = await read_message(self._connection, self._stream, seq=seq)
            if message is None:
                return False
            piece = base64.b64decode(message.get("data", ""))
            digest.update(piece)
            await run_in_thread(file.write, piece)
        return digest.hexdigest() == pieces.sha256

    async def _write(self, where: str, data: bytes, ttl: float) -> int:
        headers = {} if math.isinf(ttl) else {LIFETIME: str(max(1, math.ceil(ttl)))}
        try:
            answer = await self._connection.insist(lambda: self._connection.ask_stored(where, data, headers))
        except ServerRefusal as refusal:
            raise refusal.make_error("the NATS server does not take a file", self._stream) from refusal
        return int(answer["seq"])

    async def _purge(self, where: str, **upto: int) -> None:
        try:
            await self._connection.call(f"STREAM.PURGE.{self._stream}", filter=where, **upto)
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server does not remove a file: {refusal}") from refusal


def check_key(key: str) -> str:
    """Return the key, or raise ValueError if it is not a valid key."""
    if not is_key(key):
        raise ValueError(f"{key!r} is not a key of a file")
    return key


def describe_file(key: str, about: os.stat_result) -> KeyedFile:
    return KeyedFile(key, about.st_size, float(int(about.st_mtime)))
