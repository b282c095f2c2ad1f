"""Forget a person: every trace that the gateway holds, in an order that can be restarted after a crash.

Their authorization by a code goes first, so that nothing new comes from them. Then their conversations, their turns in
group conversations, their own records in the journal, their memory and their files. The activity log and the sums keep
a pseudonym. Last, hooks are notified, which may have data of their own.
"""

import logging
import shutil
from collections.abc import Collection
from functools import partial
from pathlib import Path

import anyio
import msgspec

from gateway.access.pairing import Pairings
from gateway.errors import SessionError
from gateway.people.leftovers import has_word
from gateway.people.person import Person, find_pseudonym
from gateway.people.traces import PersonTraces, is_in_turn, remove_turns, split_turns
from gateway.records import records, subjects
from gateway.records.activity import Activity
from gateway.sessions.deleted_messages import has_text
from gateway.sessions.removal import forget_sessions, remove_received_files, remove_sent_files, rewrite_sessions
from gateway.threads import run_in_thread
from gateway.usage.usage_journal import UsageJournal

log = logging.getLogger(__name__)

PATIENCE = 60.0  # seconds for a running turn in a group conversation
PAUSE = 0.5


class Forgotten(msgspec.Struct, frozen=True):
    """The numbers of removed items.

    `unclear`: turns in group conversations that may be theirs and stay, by session key.

    `busy`: conversations in which a turn did not end.
    """

    person: str
    pseudonym: str
    conversations: int = 0
    turns_of_shared: int = 0
    records: int = 0
    notes: int = 0
    files: int = 0
    was_let_in: bool = False
    unclear: dict[str, int] = {}
    busy: tuple[str, ...] = ()


class PersonRemoval(msgspec.Struct, eq=False):
    """The removal of a person."""

    traces: PersonTraces
    pairings: Pairings
    activity: Activity
    usage: UsageJournal
    unreadable: Path

    async def forget(self, person: Person) -> Forgotten:
        """Forget everything of a person. Repeating it is not an error: a crash may have come between."""
        engine, sessions, traces = self.traces.engine, self.traces.sessions, self.traces
        pseudonym = await find_pseudonym(engine, person)
        was_let_in = await self.pairings.forget(*person)
        found = await traces.find_conversations(person)
        files = await traces.fetch_files(person)  # some go with their conversations
        for key in found.own:
            await forget_sessions(engine, sessions, key)
        turns, busy = 0, list[str]()
        for key in found.shared:
            found_turns = [turn for old in await traces.read_sessions(key) for turn in split_turns(old)]
            if await self._leave_conversation(key, person):
                turns += sum(is_in_turn(person, turn) for turn in found_turns)
            else:
                busy.append(key)
        purged = await self._purge_heard_events(person) + await self._purge_records(person)
        notes = await traces.memory.forget(str(person))
        await self._remove_shared_files(person)
        unreadable = await run_in_thread(self._remove_files, person)
        await self.activity.rename(str(person), pseudonym)
        await self.usage.rename(person.payers, pseudonym)
        log.info("the data of a person was removed; their pseudonym is %s", pseudonym)
        return Forgotten(
            person=str(person),
            pseudonym=pseudonym,
            conversations=len(found.own),
            turns_of_shared=turns,
            records=purged,
            notes=notes,
            files=len(files) + unreadable,
            was_let_in=was_let_in,
            unclear=dict(found.unclear),
            busy=tuple(busy),
        )

    async def _leave_conversation(self, key: str, person: Person) -> bool:
        """Remove their turns from a group conversation; return False if a turn in it does not end."""
        with anyio.move_on_after(PATIENCE):
            while True:
                try:
                    await rewrite_sessions(
                        self.traces.engine, self.traces.sessions, key, partial(remove_turns, person=person)
                    )
                    return True
                except SessionError:
                    await anyio.sleep(PAUSE)
        return False

    async def _purge_heard_events(self, person: Person) -> int:
        """Purge events of others' turns that contain the person's overheard messages, and dead letters with them."""
        engine, marks = self.traces.engine, dict[str, set[str]]()
        found = records.read_all(engine, subjects.HEARD_SUBJECTS, records.HeardMessage)
        async for _, told in found:
            if told.message.sender == str(person):
                marks.setdefault(told.session_key, set()).add(
                    f"({person.user_id}): {told.message.text.splitlines()[0]}"
                )
        purged = 0
        for key, texts in marks.items():
            conv = subjects.token_of(key)
            for pattern in (subjects.owed_event_pattern_of_token(conv), subjects.DEAD_SUBJECTS):
                async for record, kept in records.read_all(engine, pattern, records.JournalRecord):
                    if has_words_of(kept, key, person, texts):
                        purged += await records.purge_record(engine, record)
        return purged

    async def _purge_records(self, person: Person) -> int:
        purged = 0
        async for record, kept in self.traces.read_records(person):
            if isinstance(kept, records.InboundMessage):
                await remove_received_files(self.traces.engine, kept.message)
            await remove_sent_files(self.traces.engine, kept)
            purged += await records.purge_record(self.traces.engine, record)
        return purged

    async def _remove_shared_files(self, person: Person) -> None:
        """Remove shared files. Each gateway removes its own folders when it is notified."""
        if store := self.traces.engine.files:
            for one in await store.list():
                if self.traces.is_folder_of(person, *one.key.split("/")[:2]):
                    await store.delete(one.key)
        await self.traces.forget_shared(person)

    def _remove_files(self, person: Person) -> int:
        """Remove their folders; return the number of unreadable updates removed."""
        count = 0
        for folder in self.traces.find_folders(person):
            _remove_tree(folder)
        for path in self.unreadable.glob(f"{person.platform}[-:]*.json"):
            if has_word(path.read_text("utf-8", "replace"), person.user_id):
                path.unlink(missing_ok=True)
                count += 1
        return count


def has_words_of(kept: records.JournalRecord, key: str, person: Person, texts: Collection[str]) -> bool:
    """Return True for an event of this conversation with one of these words, or a dead letter with one."""
    if isinstance(kept, records.DeadLetterRecord) and kept.data:
        return has_words_of(records.decode(kept.data), key, person, texts)
    if not isinstance(kept, records.EmittedEvent) or kept.fields.get("session_key") != key:
        return False
    heard = kept.fields.get("heard") or ()
    return any(one.get("user_id") == person.user_id for one in heard) or has_text(kept.fields, texts)


def _remove_tree(folder: Path) -> None:
    """Remove a folder; a link is removed as a link, and its target stays."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
