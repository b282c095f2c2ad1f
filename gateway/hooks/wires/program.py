"""A program that is a hook: which one, what it finds around it, and how it is restrained and ended.

It leads a process group of its own, which ends with it, and sees the environment that its manifest declares.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

RUNTIME_RESERVE = 1 << 30  # what runtimes set aside and never write: Node half of it for code, or it does not start

_encode = msgspec.json.Encoder().encode


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which program, and what it finds around it."""

    name: str
    command: tuple[str, ...]
    folder: Path
    log: Path
    env: Mapping[str, str] = {}  # all of it: nothing else is there
    options: Mapping[str, Any] = {}
    is_guard: bool = False  # `on_error: deny`: what cannot be understood is a failure
    memory: int | None = 512 << 20
    nice: int = 5

    def environ(self) -> dict[str, str]:
        """HOOK_OPTIONS is how a program of any language comes by its options."""
        return {**self.env, "HOOK_NAME": self.name, "HOOK_OPTIONS": _encode(self.options).decode()}


def describe_start_failure(spec: ProgramSpec, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{spec.name}: {spec.command[0]} cannot be started: {why}; see that it is there and executable"


def limit_program(pid: int, spec: ProgramSpec) -> None:
    """When the machine runs short, the program goes before the gateway; where the system has means for that."""
    with suppress(OSError, ValueError):
        if spec.memory is not None:
            most = spec.memory + RUNTIME_RESERVE
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, spec.nice)
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("500")


def kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def close_pipes(transport: asyncio.SubprocessTransport) -> None:
    """Close the pipes of a program that has ended: who escaped may hold them, and never read what waits there."""
    writer = transport.get_pipe_transport(0)
    assert isinstance(writer, asyncio.WriteTransport)
    if writer.get_write_buffer_size():
        writer.abort()
    transport.close()
