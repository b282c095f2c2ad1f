"""A record that the disk has changed is found: at its reading, in the status, and in a backup."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.engine.interface import ConsumerSpec, NewRecord
from gateway.engine.sqlite.backup import create_backup, verify_journal
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import RecordDamage
from gateway.records import records, subjects
from gateway.testing import GatewayProcess
from tests.engine.conftest import filled, seqs_of

TEXT = b"the words of a message, which nobody has changed"


async def write(path: Path) -> list[int]:
    async with await open_sqlite(path) as engine:
        return [(await engine.append(NewRecord(f"gw.in.{n}", TEXT)))[0] for n in range(3)]


def flip(path: Path, which: int = 1) -> None:
    """Change one bit of a record's text, past SQLite: its pages have no checksum."""
    content = bytearray(path.read_bytes())
    at, found = -1, []
    while (at := content.find(TEXT, at + 1)) >= 0:
        found.append(at)
    content[found[-1 - which]] ^= 1  # rows stand on a page from its end
    path.write_bytes(content)


async def test_a_bit_that_flipped_is_found_at_the_reading_and_all_others_are_read(path: Path) -> None:
    seqs = await write(path)
    flip(path)
    async with await open_sqlite(path) as engine:
        with pytest.raises(RecordDamage, match=r"record 2 on gw\.in\.1 is not as it was written"):
            await engine.last("gw.in.1")
        with pytest.raises(RecordDamage, match="backup restore") as caught:
            await engine.read("gw.in.*")
        assert [record.seq for record in caught.value.before] == seqs[:1]
        found = await records.read_readable(engine, "gw.in.*", 0, 10)
        assert [record.seq for record in found] == seqs[:1]
        found = await records.read_readable(engine, "gw.in.*", seqs[0], 10)
        assert [record.seq for record in found] == seqs[2:]
        assert [record.seq for record in await engine.read("gw.in.*", after=caught.value.seq)] == seqs[2:]
        health = await engine.health()
        assert health.ok  # one record is no reason to take no others
        assert len(health.warnings) == 1
        await filled(engine, "gw.in.4")


async def test_events_are_told_past_a_damaged_one(path: Path) -> None:
    events = [records.EmittedEvent(name="agent:end", fields={"n": n, "text": TEXT.decode()}) for n in range(4)]
    places = [
        subjects.event_subject_of("agent:end"),
        subjects.owed_event_subject_of("agent:end", "key"),
    ] * 2
    async with await open_sqlite(path) as engine:
        for subject, event in zip(places, events, strict=True):
            await engine.append(NewRecord(subject, records.encode(event)))
    flip(path)
    async with await open_sqlite(path) as engine:
        assert [event.fields["n"] async for _, event in records.read_events(engine)] == [0, 2, 3]


async def test_a_consumer_passes_it_over(path: Path) -> None:
    seqs = await write(path)
    flip(path)
    async with await open_sqlite(path) as engine:
        consumer = await engine.consumer(ConsumerSpec("c", ("gw.in.*",)))
        assert seqs_of(await consumer.fetch(10, 1)) == [seqs[0], seqs[2]]
        assert len((await engine.health()).warnings) == 1


async def test_a_backup_names_it_and_is_made_all_the_same(path: Path, tmp_path: Path) -> None:
    await write(path)
    assert verify_journal(path).damaged == ()
    flip(path)
    assert verify_journal(path).damaged == ("record 2 on gw.in.1",)
    assert create_backup(path, tmp_path / "copy.db").damaged == ("record 2 on gw.in.1",)


@pytest.mark.process
async def test_the_commands_say_so(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("")
        async with await open_sqlite(gateway.home.journal) as engine:
            await engine.append(NewRecord("gw.in.0", TEXT), NewRecord("gw.turn.0", b"{}"))
        with closing(sqlite3.connect(gateway.home.journal)) as db, db:
            db.execute("UPDATE log SET checksum = NULL WHERE seq = 2")
        flip(gateway.home.journal, 0)
        done = gateway.cli("backup", "verify", "--json")
        said = json.loads(done.stdout)
        assert done.returncode == 1
        assert (said["unchecked"], said["damaged"]) == (1, ["record 1 on gw.in.0"])
        assert "record 1 on gw.in.0 is not as it was written" in gateway.cli("doctor").stdout
        gateway.start()  # whose lanes look at what came in
        gateway.until(lambda: any("record 1 on gw.in.0" in line for line in gateway.call("status")["attention"]))
        assert gateway.say("hello")["status"] == "ok"
