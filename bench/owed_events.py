"""What a durable hook costs a turn: none, one at its end, and one for all that happens, one after the other in one run.

`.venv/bin/python -m bench.owed_events [--seconds S] [--rounds N]`. The same people as in `bench.spine`; what counts is
the processor time of the gateway's process for a message, with what the hooks are told while the people talk. Each
round has all three, since a machine that does other things too changes from minute to minute.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from bench.options import parse_options
from bench.spine import SETTINGS, cpu_seconds, measure
from gateway.testing import GatewayProcess

PEOPLE = 8
WANTED = ("", "agent:end", "*")  # what the hook wants; without any there is no durable hook
HANDLER = "def handle(event_type, context):\n    pass\n"


def run_once(wanted: str, seconds: float) -> tuple[float, float]:
    """Messages a second, and milliseconds of processor time for each."""
    with tempfile.TemporaryDirectory() as folder, GatewayProcess(Path(folder) / "home", forks=False) as gateway:
        if wanted:
            manifest = f"events: {json.dumps([wanted])}\ndelivery: durable\n"
            gateway.add_hook("keeps", {"HOOK.yaml": manifest, "handler.py": HANDLER})
        gateway.script({"user": "hello", "text": "I hear you."}, settings=SETTINGS)
        gateway.start()
        assert gateway.process
        gateway.say("hello", session="first")
        before = cpu_seconds(gateway.process.pid)
        taken = asyncio.run(measure(gateway.home.socket, PEOPLE, seconds))
        used = cpu_seconds(gateway.process.pid) - before
        return len(taken) / seconds, used / len(taken) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parse_options(parser, seconds=1.0, rounds=1)
    print(f"{'durable hook':>14}{'messages/s':>12}{'cpu ms':>9}")
    for _ in range(options.rounds):
        for wanted in WANTED:
            rate, cpu = run_once(wanted, options.seconds)
            print(f"{wanted or 'none':>14}{rate:>12,.0f}{cpu:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
