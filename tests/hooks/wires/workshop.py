"""Helpers of the tests of the wires."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.program import ProgramSpec
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import ForkServerSettings, WorkerSpec

Make = Callable[..., Awaitable[WorkerHandle]]
MEMORY = 512_000_000
SETTINGS = ForkServerSettings(processes=256)


def worker_spec(handler: Path, **more: Any) -> WorkerSpec:
    """Make a hook without any surroundings but the given ones."""
    nothing = {"env": {}, "options": {}, "path": (), "modules": {}, "memory": MEMORY, "label": ""}
    return WorkerSpec(**{"name": "x", "handler": str(handler), **nothing, **more})


def lines_of(log: Path) -> list[str]:
    """A hook's log without the time of each line."""
    return [line[20:] for line in log.read_text().splitlines()]


def command(folder: Path, code: str, *words: str, **more: Any) -> ProgramSpec:
    """A program in Python, or whatever `code` begins with."""
    folder.mkdir(exist_ok=True)
    file = folder / "hook"
    file.write_text(code if code.startswith("#!") else f"#!{sys.executable}\n{code}")
    file.chmod(0o755)
    log = folder / "hook.log"
    env = {"PATH": os.environ["PATH"], **more.pop("env", {})}
    more = {"memory": MEMORY, **more}
    return ProgramSpec(name="weather", command=("./hook", *words), folder=folder, log=log, env=env, **more)


def pid_of(fork_server: ForkServerClient) -> int:
    """That of one that has been wanted already."""
    assert fork_server.pid
    return fork_server.pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
