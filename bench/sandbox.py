"""Measure a hook's sandbox: its start with it and without, in turn.

`.venv/bin/python -m bench.sandbox [--rounds N]`. The goal is the difference: a start at most 5 ms longer. A program is
counted from the event to its answer (`protocol: oneshot`), since it is started for each.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench.options import parse_options
from bench.workers import DECIDES, FORK_SERVER, SMALL, Row, Workshop, p50, show
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.program import OneshotProgram, ProgramSpec
from gateway.worker.sandbox import Sandbox, find_needed_paths, find_support

GOAL = 5.0  # ms more
HANDLER = "def handle(event, context): return None"
SCRIPT = "#!/bin/sh\nexec cat > /dev/null\n"

Start = Callable[[Sandbox | None], Awaitable[float]]


async def compare(what: str, start: Start, sandbox: Sandbox, rounds: int) -> list[Row]:
    """In turns, so that what else the machine does falls on both."""
    free, held = [], []
    for _ in range(rounds):
        free.append(await start(None))
        held.append(await start(sandbox))
    return [
        Row(f"{what}, free, p50", p50(free) * 1e3, "ms"),
        Row(f"{what}, in a sandbox, p50", p50(held) * 1e3, "ms"),
        Row(f"{what}, what the sandbox adds", (p50(held) - p50(free)) * 1e3, "ms", GOAL),
    ]


async def start_worker(workshop: Workshop, sandbox: Sandbox | None) -> float:
    begun = time.perf_counter()
    worker = await workshop.make(HANDLER, sandbox)
    took = time.perf_counter() - begun
    await worker.stop()
    return took


async def run_program(fork_server: ForkServerClient, folder: Path, sandbox: Sandbox | None) -> float:
    spec = ProgramSpec(
        name="p",
        command=(str(folder / "run"),),
        folder=folder,
        log=folder / "log",
        memory=None,
        sandbox=sandbox,
        fork=fork_server.start_program,
    )
    program = OneshotProgram(spec)
    begun = time.perf_counter()
    await program.call("tool:before", SMALL, DECIDES, 10)
    took = time.perf_counter() - begun
    await program.stop(1.0)
    return took


async def measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run").write_text(SCRIPT)
        (folder / "run").chmod(0o755)
        sandbox = Sandbox(read=find_needed_paths(), write=(name,))
        async with ForkServerClient(FORK_SERVER) as fork_server:
            workshop = Workshop(fork_server, folder)
            await start_worker(workshop, sandbox)
            show(await compare("a handler's start", partial(start_worker, workshop), sandbox, rounds))
            show(await compare("a program's event", partial(run_program, fork_server, folder), sandbox, rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50, metavar="N")
    options = parse_options(parser, rounds=5)
    if missing := find_support().missing:
        print("not all is held here:", *missing, sep="\n  ", file=sys.stderr)
    print(f"{'':58}{'found':>10}    {'floor':>10}  goal")
    asyncio.run(measure(options.rounds))


if __name__ == "__main__":
    main()
