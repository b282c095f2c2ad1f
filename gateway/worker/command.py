"""The keeper of one command: a small process that starts a program, and ends with the last of its descendants.

Theory of operation

The keeper is forked from the fork server, and adopts orphans: every process that the program starts and detaches (`&`,
`setsid`, a double fork, a fresh environment) finally becomes the keeper's child, and is known by that alone. When the
program itself has ended, or SIGTERM ends the keeper, the remaining processes get a request to end, and are killed a
moment later. The keeper then ends as the program did: with its exit code, or by the same signal.

If the keeper is killed, its children go to the fork server, which kills every process that it does not know. When the
fork server dies, the kernel sends the keeper SIGTERM; the keeper sees that it has another parent, and kills at once.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from gateway.worker import kernel
from gateway.worker.process_tree import find_children, find_descendants, kill_tree
from gateway.worker.program import MOST_DESCRIPTORS, NOT_FOUND, run_as_program
from gateway.worker.protocol import CANNOT_BEGIN, CommandSandbox, CommandSpec
from gateway.worker.readable_paths import find_inside, find_withheld, list_pieces
from gateway.worker.sandbox import Sandbox, restrict

DEVICES_FOLDER = "/dev"  # a sandbox grants the devices that every program opens, and no disk
DEFAULT_TEMPORARY = "/tmp"  # noqa: S108 - the folder in it is our own
TEMPORARY_OF_ALL = "hermes-gateway-tmp"  # starts its name; commands see only their own part of it
GRACE = 2.0  # seconds between the request to end and the kill
AGAIN = 0.1  # seconds between two checks for survivors after that


class CommandDescriptors(NamedTuple):
    """A command's descriptors: of the file with its specification, and of the pipe for its output."""

    spec: int
    output: int


def run_command(ends: CommandDescriptors, fork_server: int) -> NoReturn:
    """Keep this command to its end, in a fresh process."""
    keeper = _Keeper(fork_server)
    signal.signal(signal.SIGALRM, lambda *_: keeper.kill())
    signal.signal(signal.SIGTERM, lambda *_: keeper.end())
    os.setpgid(0, 0)
    kernel.adopt_orphans()
    kernel.die_with_parent(signal.SIGTERM)
    status = keeper.run(_read_spec(ends))
    if status < 0:
        _end_by(-status)
    os._exit(status)


def _read_spec(ends: CommandDescriptors) -> CommandSpec:
    """Read the specification. Afterwards the fork server is out of reach, and the pipe gets all output."""
    spec = msgspec.json.decode(os.pread(ends.spec, os.fstat(ends.spec).st_size, 0), type=CommandSpec)
    output, nothing = os.dup(ends.output), os.open(os.devnull, os.O_RDWR)
    for descriptor, place in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, MOST_DESCRIPTORS)
    return spec


class _Keeper:
    def __init__(self, fork_server: int) -> None:
        self._fork_server = fork_server
        self._is_ending = self._is_killing = False

    def run(self, spec: CommandSpec) -> int:
        """Run the program and return its exit code, or minus the signal that ended it."""
        try:
            own = _make_own_folder(spec) if spec.sandbox else None
        except OSError as error:
            os.write(2, f"no space for temporary files: {error}\n".encode())
            return NOT_FOUND
        program = _fork(lambda: _become(spec, own))
        for place in (1, 2):
            os.dup2(0, place)  # only the program has the pipe now: its end means that all output was written
        if os.getppid() != self._fork_server:
            self.kill()
        ended = self._wait(program)
        if find_children(os.getpid()):
            self.end()
        with suppress(ChildProcessError):
            while True:
                os.wait()
        if own:
            _remove_folder(own)
        return ended

    def _wait(self, program: int) -> int:
        while True:
            pid, status = os.wait()
            if pid == program:
                return os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        if os.getppid() != self._fork_server:
            self.kill()
        elif not self._is_ending:
            self._is_ending = True
            for one in find_descendants({os.getpid()}):
                kernel.send_signal(one.pid, signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, GRACE)

    def kill(self) -> None:
        if self._is_killing:  # a signal came during a kill
            return
        self._is_killing = True
        kill_tree(lambda: [one.pid for one in find_descendants({os.getpid()})])
        self._is_killing = False
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def _fork(child: Callable[[], NoReturn]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            child()
        finally:
            os._exit(CANNOT_BEGIN)
    return pid


def _make_own_folder(spec: CommandSpec) -> Path:
    """Make the temporary folder of a command in a sandbox; it is removed with the command."""
    top = Path(spec.env.get("TMPDIR", DEFAULT_TEMPORARY)) / f"{TEMPORARY_OF_ALL}-{os.geteuid()}"
    with suppress(FileExistsError):
        top.mkdir(0o700)
    if top.is_symlink() or top.stat().st_uid != os.geteuid():
        raise OSError(f"{top} belongs to another user")
    own = top / f"{os.getpid()}-{os.urandom(8).hex()}"
    own.mkdir(0o700)
    return own


def _remove_folder(own: Path) -> None:
    """Remove the folder after the command's processes.

    Each inner folder moves up first, so that depth costs nothing.
    """
    folders = [own]
    with suppress(OSError):
        own.chmod(0o700)
        for folder in folders:
            for path in list(folder.iterdir()):
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
                    continue
                path.chmod(0o700)
                folders.append(path.rename(f"{own}-{len(folders)}"))
            folder.rmdir()


def _enter_sandbox(wanted: CommandSandbox | None, own: Path | None) -> None:
    if wanted is None or own is None:
        return
    hidden = find_withheld((*wanted.hidden, DEVICES_FOLDER, str(own.parent)))
    kept = hidden | find_withheld(wanted.kept) | set(map(os.path.realpath, wanted.kept))  # nor may it appear there
    granted = {one: list_pieces(one, kept) for one in wanted.write}
    pieces = list(chain(*granted.values()))
    # the others are part of these
    beside = [one for one in (*wanted.read, *wanted.write) if find_inside(one, pieces) is None]
    read = (*list_pieces("/", hidden), *(one for one in wanted.read if one in beside))
    write = (str(own), *(piece for one, pieces in granted.items() if one in beside for piece in pieces))
    restrict(Sandbox(read=read, write=write, net=wanted.net, sockets=wanted.sockets, modes=True))


def _become(spec: CommandSpec, own: Path | None) -> NoReturn:
    """Become the program, in a session of its own."""
    os.setsid()
    env = spec.env | (dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(own)) if own else {})
    run_as_program(spec.program, spec.folder, env, partial(_enter_sandbox, spec.sandbox, own))


def _end_by(number: int) -> None:
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main(start: dict[str, Any], _add_modules: object) -> NoReturn:
    """Keep a command in a fresh interpreter, on systems without forking."""
    run_command(CommandDescriptors(*start["ends"]), start["fork_server"])
