"""Measure a large journal: start, turns, forgetting, room on the disk, the search index.

`.venv/bin/python -m bench.large_journal [--gigabytes N] [--folder DIR]`. The journal is made
by SQL: conversations of twelve turns, a quarter of a year of them. A gateway with the model `demo` opens it, reads it
into the index, deletes sessions while somebody talks, and, started again with a lower limit, makes room.
"""

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from bench.options import parse_options
from gateway.engine.sqlite import subject_index
from gateway.engine.sqlite.log_table import checksum_of
from gateway.engine.sqlite.schema import APPLICATION_ID, TABLES, VERSION
from gateway.messages.message import Address, Message, Reply
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions.retention import TARGET_SHARE
from gateway.testing import GatewayProcess

TURNS = 12
WORDS = [
    f"{first}{second}" for first in ("la", "mi", "ko", "ser", "tun", "bra") for second in ("na", "ti", "vo", "gel")
]
TURN_BYTES = 12_500
INSERT = "INSERT INTO log (subject, ts, msg_id, expires, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
PATIENCE = 1200.0
KEPT_SHARE = 0.53  # of the journal, where room is made
CONSUMERS = (
    ("turns", '["gw.in.*", "gw.bell.*"]'),
    ("out-terminal", '["gw.out.terminal.>"]'),
    ("out-internal", '["gw.out.internal.>"]'),
)

Row = tuple[str, float, str | None, float | None, bytes, int]


def build(path: Path, size: int) -> int:
    """Write such a journal; how many conversations it has."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    count = max(100, size // (TURN_BYTES * TURNS))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = OFF", "cache_size = -400000"):
            db.execute(f"PRAGMA {pragma}")
        for statement in TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("BEGIN")
        db.executemany(INSERT, make_rows(count))
        for (subject,) in db.execute("SELECT DISTINCT subject FROM log").fetchall():
            subject_index.add_subject(db, subject)
        db.executemany("INSERT INTO consumer SELECT ?, ?, max(seq) FROM log", CONSUMERS)  # all is answered and sent
        db.execute("COMMIT")
    path.chmod(0o600)
    return count


def key_of(number: int) -> str:
    return f"agent:main:terminal:dm:s{number}"


def make_rows(count: int) -> Iterator[Row]:
    """The oldest conversation first; who spoke last spoke eight days ago."""
    dice, now, seq = random.Random(1), time.time(), 0
    text = " ".join(dice.choice(WORDS) for _ in range(600))
    for number in range(count):
        key, at = key_of(number), now - 86400 * (8 + 82 * (count - number) / count)
        conv, address = subjects.token_of(key), Address("terminal", f"s{number}")
        for turn in range(TURNS):
            said = text[turn * 7 : turn * 7 + 500]
            message = Message(f"{number}-{turn}", address, "owner", said, session=f"s{number}", sent_at=at)
            inbound = records.InboundMessage(session_key=key, message=message, at=at)
            written: list[tuple[str, records.JournalRecord]] = [(f"gw.in.{conv}", inbound)]
            if turn == 0:
                opened = records.SessionOpened(session_id=f"{number:08d}", session_key=key, platform="terminal", at=at)
                written.append((f"gw.turn.{conv}", opened))
            on = seq + 1
            name, answer = f"{number:08d}{turn:04d}", text[turn * 11 : turn * 11 + 3000]
            written.append((f"gw.turn.{conv}", records.Claim(turn_id=name, by="gateway", on=on, at=at)))
            entries = (Entry("user", said), Entry("assistant", answer))
            written.append((f"gw.turn.{conv}", records.TurnEnded(upto=on, turn_id=name, entries=entries, at=at)))
            reply = records.OwedReply(reply=Reply(name, address, answer), session_key=key, turn_id=name, at=at)
            written.append((subjects.reply_subject_of(address, key), reply))
            for subject, record in written:
                seq += 1
                data = records.encode(record)
                yield subject, at, None, None, data, checksum_of(subject, data)


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


class Talker:
    """A person who says one thing after the other in a thread, with the duration of each, by the steady clock."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway
        self.taken: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)

    def __enter__(self) -> "Talker":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _talk(self) -> None:
        while not self._is_over.is_set():
            self.taken.append(timed(lambda: self._gateway.say("hello", "talker")))
            time.sleep(0.05)


def shown(taken: list[float]) -> str:
    every = [round(one * 1e3) for one in sorted(taken)]
    p95 = every[int(len(every) * 0.95)]
    return f"p50 {statistics.median(every):.0f} ms, p95 {p95} ms, worst {every[-1]} ms ({len(every)})"


def processor_seconds(gateway: GatewayProcess) -> float:
    assert gateway.process
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_indexed(gateway: GatewayProcess) -> bool:
    return not gateway.call("status")["search"]["progress"]


def measure_first_start(gateway: GatewayProcess) -> None:
    print(f"first start until ready           {timed(gateway.start):.1f} s", flush=True)
    began, used = time.perf_counter(), processor_seconds(gateway)
    told = gateway.call("status")["search"]["progress"]
    print(f"told meanwhile                    {told or '0 records are left'}")
    with Talker(gateway) as talker:
        gateway.until(lambda: is_indexed(gateway), PATIENCE)
    wall = time.perf_counter() - began
    print(
        f"the index for searching           {wall:.0f} s at {(processor_seconds(gateway) - used) / wall:.2f} of a core"
    )
    print(f"turns meanwhile                   {shown(talker.taken)}", flush=True)


def measure_deleting(gateway: GatewayProcess, count: int, turns: int) -> None:
    alone = [timed(lambda: gateway.say("hello", "talker")) for _ in range(turns)]
    print(f"turns alone                       {shown(alone)}")
    with Talker(gateway) as talker:
        deleted = []
        for number in range(count // 2, count // 2 + 20):
            wanted = {"session": key_of(number)}
            deleted.append(timed(partial(gateway.call, "sessions.delete", wanted)))
            time.sleep(0.2)
    print(f"sessions delete                   {shown(deleted)}")
    print(f"turns meanwhile                   {shown(talker.taken)}", flush=True)


def measure_room(gateway: GatewayProcess, quiet: float) -> None:
    """Give the journal a limit by which nearly half of it has to go; the file is looked at from outside.

    That is over when nothing was freed for so many seconds.
    """
    before, start = gateway.home.journal.stat().st_size, gateway.call("status")["journal"]["size"]
    limit = int(start * KEPT_SHARE / TARGET_SHARE)
    gateway.configure(f"journal: {{retention: 0, max_size: {limit}}}\n")
    gateway.stop()
    began = time.perf_counter()
    gateway.start()
    smaller = freed = 0.0
    with Talker(gateway) as talker:
        last, since = start, time.perf_counter()
        while time.perf_counter() - since < quiet:
            size = gateway.call("status")["journal"]["size"]
            if size < last - 1_000_000:
                last, since, freed = size, time.perf_counter(), time.perf_counter() - began
            if not smaller and gateway.home.journal.stat().st_size < before:
                smaller = time.perf_counter() - began
            time.sleep(1)
    now = gateway.home.journal.stat().st_size
    print(f"made free                         {(start - last) / 1e6:.0f} MB in {freed:.0f} s")
    print(f"the file                          {before / 1e6:.0f} -> {now / 1e6:.0f} MB, smaller after {smaller:.0f} s")
    print(f"turns meanwhile                   {shown(talker.taken)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.5)
    parser.add_argument("--turns", type=int, default=60, metavar="N", help="how many are measured alone")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds in which nothing more is made free")
    parser.add_argument("--folder", help="where the journal is made (a temporary folder)")
    args = parse_options(parser, gigabytes=0.03, turns=5, quiet=5.0)
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
        GatewayProcess(Path(folder) / "home", forks=False) as gateway,
    ):
        gateway.configure("journal: {retention: 0, max_size: 0}\n")
        path = gateway.home.journal
        began = time.perf_counter()
        count = build(path, int(args.gigabytes * 1e9))
        size, taken = path.stat().st_size / 1e6, time.perf_counter() - began
        print(f"made                              {size:.0f} MB, {count} sessions, in {taken:.0f} s")
        measure_first_start(gateway)
        measure_deleting(gateway, count, args.turns)
        measure_room(gateway, args.quiet)
        gateway.stop()


if __name__ == "__main__":
    main()
