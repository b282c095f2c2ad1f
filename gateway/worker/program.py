"""How a process of the fork server becomes a program that is a hook, and is held to what that may reach.

It has no keeper: it is told of and killed as a worker is, and what it leaves behind comes to the fork server.
"""

import os
import resource
import signal
from contextlib import suppress
from typing import NamedTuple, NoReturn

import msgspec

from gateway.worker import kernel
from gateway.worker.command import MOST_DESCRIPTORS, NOT_FOUND, PROGRAM_SIGNALS
from gateway.worker.protocol import CANNOT_RESTRICT, OOM_SCORE, SandboxProgram
from gateway.worker.sandbox import restrict


class ProgramDescriptors(NamedTuple):
    """A program's ends: of the file that says what it is, and of the pipes that are its input and output."""

    spec: int
    stdin: int
    stdout: int
    stderr: int


def run_program(ends: ProgramDescriptors) -> NoReturn:
    """In a fresh process: be this program, the leader of a group."""
    with os.fdopen(os.dup(ends.spec), "rb") as file:
        file.seek(0)
        spec = msgspec.json.decode(file.read(), type=SandboxProgram)
    pipes = [os.dup(end) for end in ends[1:]]  # one of them may have a low number
    for place, descriptor in enumerate(pipes):
        os.dup2(descriptor, place)
    os.closerange(3, MOST_DESCRIPTORS)
    with suppress(PermissionError):  # it leads a group already
        os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    kernel.write_proc_file("oom_score_adj", OOM_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in PROGRAM_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        restrict(spec.sandbox)
    except OSError as error:
        os.write(2, f"it cannot be restricted: {error}\n".encode())
        os._exit(CANNOT_RESTRICT)
    try:
        os.chdir(spec.folder)
        os.execve(spec.command[0], spec.command, spec.env)  # noqa: S606 - it is no shell that reads this
    except (OSError, ValueError) as error:
        os.write(2, f"{spec.command[0]} cannot be started: {error}\n".encode())
    os._exit(NOT_FOUND)
