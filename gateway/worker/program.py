"""The last steps of a process of the fork server on its way to a restricted program.

The program is a hook's, one that hears and speaks, or a command. Only a command has a keeper: the others are reported
and killed like a worker, and processes that they leave behind go to the fork server.
"""

import os
import resource
import signal
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, NoReturn

import msgspec

from gateway.worker import kernel
from gateway.worker.protocol import CANNOT_RESTRICT, OOM_SCORE, ProgramRequest
from gateway.worker.sandbox import restrict

MOST_DESCRIPTORS = 1 << 12  # more than a fork server ever has
NOT_FOUND = 127  # the exit code of a shell for this
PROGRAM_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)


class ProgramDescriptors(NamedTuple):
    """A program's descriptors: of the file with its specification, and of its pipes."""

    spec: int
    stdin: int
    stdout: int
    stderr: int


def run_program(ends: ProgramDescriptors) -> NoReturn:
    """Become this program, the leader of a session, in a fresh process."""
    spec = msgspec.json.decode(os.pread(ends.spec, os.fstat(ends.spec).st_size, 0), type=ProgramRequest)
    pipes = [os.dup(end) for end in ends[1:]]  # one of them may have a low number
    for place, descriptor in enumerate(pipes):
        os.dup2(descriptor, place)
    os.closerange(3, MOST_DESCRIPTORS)
    os.setsid()
    enter = partial(restrict, spec.sandbox) if spec.sandbox else lambda: None
    run_as_program(spec.command, spec.folder, spec.env, enter)


def run_as_program(
    program: tuple[str, ...], folder: str, env: Mapping[str, str], enter: Callable[[], object]
) -> NoReturn:
    """Become this program, which ends with the process that forked it; `enter` restricts it."""
    kernel.die_with_parent(signal.SIGKILL)
    kernel.write_proc_file("oom_score_adj", OOM_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in PROGRAM_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        enter()
    except OSError as error:
        os.write(2, f"{program[0]} cannot be restricted: {error}\n".encode())
        os._exit(CANNOT_RESTRICT)
    try:
        os.chdir(folder)
        os.execve(program[0], program, env)  # noqa: S606 - the shell is among those programs
    except (OSError, ValueError) as error:
        os.write(2, f"{program[0]} cannot be started: {error}\n".encode())
    os._exit(NOT_FOUND)
