"""The notes of people: in the journal, for all gateways that share the journal, and as files in each home.

A note is kept once the journal has the note. Each gateway copies new notes into files of its own, which hooks read too;
a cursor beside the files names the last copied record. The journal and the files name no person, only a digest of the
owner. The first start copies files of earlier versions to the journal. A home that joins a journal copies its files,
except notes that their owner had forgotten on that journal.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec

from gateway.agent.toolbox.memory import FileMemory, digest_of_owner
from gateway.engine.interface import Engine, NewRecord, Record, append_in_parts
from gateway.errors import Conflict
from gateway.hooks.places.switches import read_json, write_atomically
from gateway.records import records, subjects
from gateway.threads import run_in_thread

REACHED_FILE = "reached.json"
FORGOTTEN_RETENTION = 365 * records.DAY  # a gateway that was away for less than this still learns what to remove


class MemoryCursor(msgspec.Struct, frozen=True):
    """The id of a journal, and its last record that the files include."""

    journal: str = ""
    seq: int = 0


class SharedMemory:
    """Remembers, recalls and forgets notes. Call `load`, then `take_along`, before you serve people."""

    patterns = (subjects.NOTE_SUBJECTS,)

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._files = FileMemory(folder)
        self._reached_file = folder / REACHED_FILE
        self._reached = MemoryCursor()
        self._own: set[int] = set()  # our own records: in the files, but not yet back from the journal
        self._lock = anyio.Lock()

    async def remember(self, owner: str, text: str) -> None:
        """Remember a text. Raises EngineError if the journal does not accept the note."""
        digest = digest_of_owner(owner)
        async with self._lock:
            await self._name_journal()
            put = make_note_put(digest, text)
            self._own |= {*await self._engine.append(put)}
            await self._files.add(digest, text)

    async def recall(self, owner: str, query: str) -> Sequence[str]:
        """Return the texts that share a word with the query, the closest first; without a query the newest first."""
        return await self._files.recall(owner, query)

    async def forget(self, owner: str) -> int:
        """Forget all texts of a person on every gateway, and return the number of texts."""
        digest = digest_of_owner(owner)
        subject = subjects.note_subject_of(digest)
        async with self._lock:
            texts = await self._files.read(digest)
            if texts or await self._engine.last(subject):
                kept = records.NotesForgotten(memory=digest)
                put = NewRecord(subject, records.encode(kept), ttl=FORGOTTEN_RETENTION)
                (seq,) = await self._engine.append(put)
                self._own.add(seq)
                await self._engine.purge(subject, seq - 1)
                await self._files.remove(digest)
        return len(texts)

    async def load(self) -> None:
        """Copy the notes that other gateways wrote since the last run into the files."""
        async with self._lock:
            reached = await run_in_thread(read_json, self._reached_file, MemoryCursor, MemoryCursor())
            _, journal = await records.read_last(self._engine, subjects.MEMORY_SUBJECT, records.MemoryJournal)
            self._reached = reached if journal and reached.journal == journal.id else MemoryCursor()
            if self._reached.journal:
                await self._catch_up()

    async def _catch_up(self) -> None:
        found = records.read_all(self._engine, self.patterns[0], records.JournalRecord, self._reached.seq)
        async for record, kept in found:
            await self._apply(record.seq, kept)

    async def take(self, record: Record) -> None:
        async with self._lock:
            if not self._reached.journal:
                await self._name_journal()
                await self._catch_up()
            elif record.seq > self._reached.seq:
                await self._apply(record.seq, records.decode(record.data))

    async def take_along(self) -> None:
        """Copy the notes of this home to a journal that the home joins."""
        async with self._lock:
            if self._reached.journal:
                return
            there, forgotten, seq = defaultdict[str, list[str]](list), set[str](), 0
            async for record, kept in records.read_all(self._engine, self.patterns[0], records.JournalRecord):
                seq = record.seq
                if isinstance(kept, records.MemoryNote):
                    there[kept.memory].append(kept.text)
                elif isinstance(kept, records.NotesForgotten):
                    forgotten.add(kept.memory)
            own = {digest: await self._files.read(digest) for digest in await self._files.list_digests()}
            if not own and not there:
                return  # an empty memory needs no record
            await self._name_journal()
            for digest in forgotten & own.keys():
                await self._files.remove(digest)
                del own[digest]
            new = [
                make_note_put(digest, text)
                for digest, texts in own.items()
                for text in texts
                if text not in there[digest]
            ]
            self._own |= {*await append_in_parts(self._engine, new)}
            for digest, texts in there.items():
                for text in texts:
                    if text not in own.get(digest, ()):
                        await self._files.add(digest, text)
            await self._reach(seq)

    async def _name_journal(self) -> None:
        """Find the id of the journal, or make it with the first note, so that a home recognizes the journal."""
        while not self._reached.journal:
            seq, kept = await records.read_last(self._engine, subjects.MEMORY_SUBJECT, records.MemoryJournal)
            if kept is None:
                kept = records.MemoryJournal(id=uuid.uuid4().hex)
                put = NewRecord(subjects.MEMORY_SUBJECT, records.encode(kept), expect=seq)
                with suppress(Conflict):
                    await self._engine.append(put)
                continue
            self._reached = MemoryCursor(kept.id)

    async def _apply(self, seq: int, kept: records.JournalRecord) -> None:
        if seq in self._own:
            self._own.discard(seq)
        elif isinstance(kept, records.NotesForgotten):
            await self._files.remove(kept.memory)
        elif isinstance(kept, records.MemoryNote):
            await self._files.add(kept.memory, kept.text)
        await self._reach(seq)

    async def _reach(self, seq: int) -> None:
        self._reached = msgspec.structs.replace(self._reached, seq=seq)
        await run_in_thread(write_atomically, self._reached_file, msgspec.json.encode(self._reached))


def make_note_put(digest: str, text: str) -> NewRecord:
    kept = records.MemoryNote(memory=digest, text=text)
    return NewRecord(subjects.note_subject_of(digest), records.encode(kept))
