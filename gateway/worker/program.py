"""How a process of the fork server becomes a program, and is held to what that may reach: a hook's, what hears and
speaks, or a command.

Only a command has a keeper: the others are told of and killed as a worker is, and what they leave behind comes to the
fork server.
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
NOT_FOUND = 127  # the exit code by which a shell says so
PROGRAM_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)


class ProgramDescriptors(NamedTuple):
    """A program's ends: of the file that says what it is, and of the pipes that are its input and output."""

    spec: int
    stdin: int
    stdout: int
    stderr: int


def run_program(ends: ProgramDescriptors) -> NoReturn:
    """In a fresh process: be this program, the leader of a session."""
    with os.fdopen(os.dup(ends.spec), "rb") as file:
        file.seek(0)
        spec = msgspec.json.decode(file.read(), type=ProgramRequest)
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
    """Be this program, which ends with whoever forked it; `enter` restricts what it reaches."""
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
