"""Measure a call of the shell tool, and its sandbox.

`.venv/bin/python -m bench.shell [--rounds N]`. The floor is `/bin/sh -c true`, started and waited for. Ways are tried
in turn, so that a machine that is busy meanwhile is busy for all of them; a way's time is the median.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench.options import parse_options
from gateway.agent.context_files import ContextFiles
from gateway.agent.toolbox.key_homes import list_key_homes
from gateway.agent.toolbox.shell import ShellOptions, run_command
from gateway.agent.toolbox.shell_rules import ShellPlaces
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.config.home import get_process_environment
from gateway.config.settings import SandboxSettings, ToolSettings
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.sandbox import find_support

GOAL_MS = 5.0  # that the sandbox may add


async def start_plainly() -> None:
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "true", start_new_session=True)
    await process.wait()


def make_shell(server: ForkServerClient, folder: Path, sandbox: SandboxSettings) -> ShellOptions:
    environ = get_process_environment()
    hidden = (folder.parent / "home", *list_key_homes(environ))
    places = ShellPlaces(folder, (folder,), hidden, environ["PATH"])
    tools = ToolSettings(shell="allow", sandbox=sandbox)
    held = ShellSandbox(sandbox, find_support())
    watch = partial(ContextFiles(folder.parent / "kept").watch, [folder / "AGENTS.md"])
    return ShellOptions(tools, lambda _facts: places, {"PATH": environ["PATH"]}, server.run, held, watch)


async def measure(ways: dict[str, Callable[[], Awaitable[object]]], rounds: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(times[rounds // 10 :]) for name, times in taken.items()}


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        folder.mkdir()
        async with ForkServerClient(ForkServerSettings(processes=256)) as server:
            free = make_shell(server, folder, SandboxSettings(mode="off"))
            held = make_shell(server, folder, SandboxSettings())
            found = await measure(
                {
                    "/bin/sh -c true, started plainly": start_plainly,
                    "a shell call without sandbox": lambda: run_command(free, "true", {}),
                    "a shell call in the sandbox": lambda: run_command(held, "true", {}),
                },
                rounds,
            )
    for what, value in found.items():
        print(f"{what:40}{value:8.2f} ms")
    _, before, after = found.values()
    verdict = "met" if after - before <= GOAL_MS else "MISSED"
    print(f"{'the sandbox costs':40}{after - before:8.2f} ms   {verdict} (at most {GOAL_MS:g})")
    if not find_support().landlock:
        print("this kernel has no Landlock: there was no sandbox")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=100)
    asyncio.run(main(parse_options(parser, rounds=10).rounds))
