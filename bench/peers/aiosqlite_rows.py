"""Writes rows with aiosqlite in this interpreter: `python aiosqlite_rows.py FOLDER`. Imports nothing of ours.

For each line `WAY CALLERS SECONDS` on stdin it prints the latencies in seconds, as one JSON list. The ways: `commit`,
an execute and a commit under a lock, so that no caller commits for another; `auto`, one execute in autocommit mode.
"""

import asyncio
import json
import sys
import time

import aiosqlite

SCHEMA = (
    """CREATE TABLE log (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, ts REAL NOT NULL, msg_id TEXT, expires REAL,
        data BLOB NOT NULL
    )""",
    "CREATE INDEX log_subject ON log (subject)",
    "CREATE UNIQUE INDEX log_msg_id ON log (msg_id) WHERE msg_id IS NOT NULL",
    "CREATE INDEX log_expires ON log (expires) WHERE expires IS NOT NULL",
)
INSERT = "INSERT INTO log (subject, ts, data) VALUES (?, ?, ?)"
BODY = b"x" * 600


async def connected(folder, way):
    options = {"isolation_level": None} if way == "auto" else {}
    db = await aiosqlite.connect(f"{folder}/{way}.db", **options)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *SCHEMA):
        await db.execute(statement)
    await db.commit()
    return db


async def write(db, way, callers, seconds):
    lock, taken = asyncio.Lock(), []
    end = time.perf_counter() + seconds

    async def append(subject):
        if way == "auto":
            await db.execute(INSERT, (subject, time.time(), BODY))
            return
        async with lock:
            await db.execute(INSERT, (subject, time.time(), BODY))
            await db.commit()

    async def caller(number):
        while (began := time.perf_counter()) < end:
            await append(f"gw.in.{number}")
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return taken


async def main(folder):
    connections = {way: await connected(folder, way) for way in ("commit", "auto")}
    while line := await asyncio.to_thread(sys.stdin.readline):
        way, callers, seconds = line.split()
        print(json.dumps(await write(connections[way], way, int(callers), float(seconds))), flush=True)
    for db in connections.values():
        await db.close()


asyncio.run(main(sys.argv[1]))
