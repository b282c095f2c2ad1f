"""A gateway that counts what it does: `python counted_gateway.py FILE ARGUMENT...` is `hermes-gateway ARGUMENT...`.

Runs under the interpreter of the tree that is measured, be it an older one. Each SIGRTMIN+9 writes into FILE, as JSON,
the calls (those of functions in C, too) on the thread of the loop and the appends to the journal since the one before.
"""

# ruff: noqa: PLC0415 - what counts is there before anything of the gateway is imported

import cProfile
import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path

counts = Counter()


def count_appends():
    from gateway.engine.sqlite.engine import SqliteEngine

    for name in {"append", "append_soon"} & vars(SqliteEngine).keys():
        setattr(SqliteEngine, name, counted(getattr(SqliteEngine, name)))


def counted(append):
    def call(*args, **more):
        counts["appends"] += 1
        return append(*args, **more)

    return call


def report_at_signal(path):
    profiles = []

    def report(_signal, _frame):
        for profile in profiles:
            profile.disable()
            counts["calls"] = sum(entry.callcount for entry in profile.getstats())
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(counts))
        beside.rename(path)
        counts.clear()
        profiles[:] = [cProfile.Profile()]
        profiles[0].enable()

    signal.signal(signal.SIGRTMIN + 9, report)


if __name__ == "__main__":
    path, *arguments = sys.argv[1:]
    sys.path[0] = str(Path.cwd())
    sys.argv = ["hermes-gateway", *arguments]
    count_appends()
    report_at_signal(Path(path))
    runpy.run_module("gateway.cli", run_name="__main__", alter_sys=True)
