"""A gateway that counts what it does: `python counted_gateway.py FILE ARGUMENT...` is `hermes-gateway ARGUMENT...`.

Runs under the interpreter of the tree that is measured, be it an older one. Each SIGRTMIN+9 writes into FILE, as JSON,
what there was since the one before:

- `calls` on the thread of the loop, those of functions in C and each step of a coroutine among them;
- `entries` of named functions of `gateway/`, on any thread, a coroutine once, and which of them under `functions`;
- `appends` to the journal, `records` that they added, `commits` of the journal and `statements` of SQL in all;
- `turns` of the loop and `hops` to it from other threads; `tasks`, `timers`, cancel `scopes`, and `copies` of
  dataclasses;
- `modules`: the names of all that are imported, at any time.
"""

# ruff: noqa: PLC0415 - what counts is there before anything of the gateway is imported

import dis
import json
import os
import runpy
import signal
import sqlite3
import sys
import threading
from collections import Counter
from pathlib import Path

OURS = str(Path.cwd() / "gateway") + os.sep
NOTED = {
    ("base_events.py", "BaseEventLoop.create_task"): "tasks",
    ("base_events.py", "BaseEventLoop.call_at"): "timers",
    ("base_events.py", "BaseEventLoop.call_soon_threadsafe"): "hops",
    ("selectors.py", "EpollSelector.select"): "turns",
    ("_asyncio.py", "CancelScope.__enter__"): "scopes",
    ("dataclasses.py", "replace"): "copies",
}

counts = Counter()
functions = Counter()
kinds = {}  # of a function's code: what it counts as, its name if it is ours, and where it is entered


def kind_of(code):
    file, opcodes = code.co_filename, dis.get_instructions(code)
    entered = next((one.offset for one in opcodes if one.opname == "RESUME"), 0)
    named = "<" not in code.co_qualname.rpartition(".")[2] and file.startswith(OURS)
    name = f"{file[len(OURS) :]}:{code.co_qualname}" if named else ""
    return NOTED.get((Path(file).name, code.co_qualname)), name, entered


def note_call(frame):
    code = frame.f_code
    if code not in kinds:
        kinds[code] = kind_of(code)
    noted, name, entered = kinds[code]
    if noted:
        counts[noted] += 1
    if name and frame.f_lasti <= entered:
        functions[name] += 1


def note_on_loop(frame, event, _argument):
    if event == "call":
        counts["calls"] += 1
        note_call(frame)
    elif event == "c_call":
        counts["calls"] += 1


def note_elsewhere(frame, event, _argument):
    if event == "call":
        note_call(frame)


def count_statements():
    connect = sqlite3.connect

    def connect_counted(path, *args, **more):
        connection = connect(path, *args, **more)
        is_journal = Path(path).name == "journal.db"

        def note(statement):
            counts["statements"] += not statement.startswith("--")  # those of FTS within another one
            counts["commits"] += is_journal and statement == "COMMIT"

        connection.set_trace_callback(note)
        return connection

    sqlite3.connect = connect_counted


def count_appends():
    from gateway.engine.sqlite.engine import SqliteEngine

    for name in {"append", "append_numbered", "append_soon"} & vars(SqliteEngine).keys():
        setattr(SqliteEngine, name, counted(getattr(SqliteEngine, name)))


def counted(append):
    async def call(*args, **more):
        counts["appends"] += 1
        sequences = await append(*args, **more)
        counts["records"] += len(sequences)
        return sequences

    return call


def report_at_signal(path):
    def report(_signal, _frame):
        sys.setprofile(None)
        found = {**counts, "entries": functions.total(), "functions": functions, "modules": sorted(sys.modules)}
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(found))
        beside.rename(path)
        counts.clear()
        functions.clear()
        sys.setprofile(note_on_loop)

    signal.signal(signal.SIGRTMIN + 9, report)


if __name__ == "__main__":
    path, *arguments = sys.argv[1:]
    sys.path[0] = str(Path.cwd())
    sys.argv = ["hermes-gateway", *arguments]
    threading.setprofile(note_elsewhere)
    count_statements()
    count_appends()
    report_at_signal(Path(path))
    runpy.run_module("gateway.cli", run_name="__main__", alter_sys=True)
