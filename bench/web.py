"""Measure the port: the start with and without it, the first answer, a scrape, and the memory.

`.venv/bin/python -m bench.web [--rounds N]`. Goals: nothing measurable at the start (0 ms), less than 0.5 MB before the
first request. Absolute figures move with the machine and the hour; with and without are started in turn.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.options import parse_options
from bench.processes import memory, notified, wait
from bench.start import environ
from gateway.testing import GatewayProcess
from tests.web.visits import visit

SCRAPES = 50


class Figures:
    """One way to run it, with a value a round."""

    def __init__(self) -> None:
        self.ready: list[float] = []
        self.idle: list[float] = []
        self.first: list[float] = []
        self.scrape: list[float] = []
        self.after: list[float] = []


def timed(do: Callable[[], object]) -> float:
    begun = time.perf_counter()
    do()
    return (time.perf_counter() - begun) * 1000


def run(place: Path, enabled: bool, into: Figures) -> None:
    with GatewayProcess(place / "home", forks=False) as gateway, notified(place / "notify") as ready:
        gateway.configure(f"web: {{enabled: {str(enabled).lower()}}}\n")
        gateway.environ |= {"NOTIFY_SOCKET": environ(place / "home")["NOTIFY_SOCKET"]}
        begun = time.perf_counter()
        gateway.process = gateway.spawn("run")
        wait(ready, gateway.process, place / "said")  # type: ignore[arg-type]
        into.ready.append((time.perf_counter() - begun) * 1000)
        time.sleep(1)
        into.idle.append(memory([gateway.process.pid])[1])
        if enabled:
            url = gateway.call("status")["web"]["url"]
            into.first.append(timed(lambda: visit(url, "/health")))
            into.scrape.append(statistics.median(timed(lambda: visit(url, "/metrics")) for _ in range(SCRAPES)))
            into.after.append(memory([gateway.process.pid])[1])
        gateway.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parse_options(parser, rounds=1).rounds
    found = {False: Figures(), True: Figures()}
    with tempfile.TemporaryDirectory() as top:
        for number in range(rounds):
            for enabled, into in found.items():
                place = Path(top) / f"{number}-{enabled}"
                place.mkdir()
                run(place, enabled, into)
                print(".", end="", file=sys.stderr, flush=True)
    without, with_port = found[False], found[True]
    middle = statistics.median
    print(f"\nready        {middle(without.ready):7.0f} ms without, {middle(with_port.ready):7.0f} ms with a port")
    print(f"idle         {middle(without.idle):7.2f} MB without, {middle(with_port.idle):7.2f} MB with a port")
    print(f"first answer {middle(with_port.first):7.2f} ms")
    print(f"a scrape     {middle(with_port.scrape):7.2f} ms (at most one a second is collected anew)")
    print(f"afterwards   {middle(with_port.after):7.2f} MB")


if __name__ == "__main__":
    main()
