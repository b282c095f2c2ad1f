"""Remove records from a stream of the server, with the pieces of large records.

Every purge is announced to all gateways that keep a view of the journal.
"""

from contextlib import suppress
from typing import Any

import msgspec

from gateway.cluster.nats.connection import Connection, NoAnswer, ServerRefusal, decode_headers
from gateway.cluster.nats.known_records import Purge
from gateway.cluster.nats.names import Names, sequence_of_piece
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.record_writer import WriteRights
from gateway.cluster.nats.stored_messages import BODY
from gateway.cluster.nats.streams import list_subjects
from gateway.errors import EngineError


class Purges:
    """The purges of one journal; each purge waits for the `rights`."""

    def __init__(self, connection: Connection, names: Names, reader: RecordReader, rights: WriteRights) -> None:
        self._connection = connection
        self._names = names
        self._reader = reader
        self._known = reader.known
        self._rights = rights
        self._has_taken: bool | None = None  # whether the stream has pieces of a migration; None: not checked yet

    async def purge(self, pattern: str, upto: int | None, after: int = 0) -> int:
        await self._rights.wait()
        sure = self._known.seen
        try:
            return await self._purge(pattern, upto, after)
        finally:  # even if only some records are gone
            end = upto if upto is not None and upto <= sure else await self._reader.read_end()
            purge = Purge(pattern, upto, after, sure, end, self._known.node)
            self._known.remove(purge)
            with suppress(NoAnswer):  # then other gateways drop their view when they reconnect
                await self._connection.publish(self._names.purged, msgspec.json.encode(purge))

    async def _purge(self, pattern: str, upto: int | None, after: int) -> int:
        if after > 0:
            return await self._purge_each(pattern, upto, after)
        if upto is not None and upto < 1:
            return 0
        limit = {} if upto is None else {"seq": upto + 1}
        verb = f"STREAM.PURGE.{self._names.stream}"
        purged = int((await self._call(verb, filter=self._names.stored_filter(pattern), **limit))["purged"])
        await self._call(verb, filter=self._names.piece_filter(pattern), **limit)
        if upto is not None:
            await self._purge_taken(pattern, upto)
        return purged

    async def _purge_taken(self, pattern: str, upto: int) -> None:
        """Remove migrated pieces of removed records: such pieces are behind all records, beyond any sequence limit."""
        if self._has_taken is None:
            self._has_taken = bool(await self._list_taken(">"))
        if self._has_taken:
            for where, seq in (await self._list_taken(pattern)).items():
                if seq <= upto:
                    await self._call(f"STREAM.PURGE.{self._names.stream}", filter=f"{where}.*")

    async def _list_taken(self, pattern: str) -> dict[str, int]:
        """Return the subjects of migrated pieces, with the sequences of their records."""
        pieces = await list_subjects(self._connection, self._names.stream, self._names.piece_filter(pattern))
        return {one.rpartition(".")[0]: seq for one in pieces if (seq := sequence_of_piece(one))}

    async def _purge_each(self, pattern: str, upto: int | None, after: int) -> int:
        """Remove records one by one: the server's purge has no lower limit."""
        count = 0
        while page := await self._reader.read(pattern, after, 100, fresh=True):
            for record in page:
                if upto is not None and record.seq > upto:
                    return count
                count += await self._delete(record.seq)
            after = page[-1].seq
        return count

    async def _delete(self, seq: int) -> bool:
        """Remove the pieces of a record, then the record, which leads to the pieces after an interruption."""
        found = await self._reader.get({"seq": seq})
        if found is None:
            return False
        if body := decode_headers(found.get("hdrs", "")).get(BODY):
            pieces = self._names.piece(found["subject"], body.partition(" ")[0])
            await self._call(f"STREAM.PURGE.{self._names.stream}", filter=f"{pieces}.*")
        try:
            await self._connection.call(f"STREAM.MSG.DELETE.{self._names.stream}", seq=seq, no_erase=True)
        except ServerRefusal:
            return False  # the record is gone
        return True

    async def _call(self, verb: str, **body: Any) -> dict[str, Any]:
        try:
            return await self._connection.call(verb, **body)
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server refuses {verb.partition('.')[0].lower()}: {refusal}") from refusal
