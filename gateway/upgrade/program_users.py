"""The other users of a program that is to be replaced: gateways of other homes, and other upgrades of it."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from gateway.config.home import OWN_FOLDER, Home
from gateway.files.folders import lock_path
from gateway.upgrade.plan import MARK, UpgradeError, read_mark, read_plan
from gateway.worker.kernel import PROC
from gateway.worker.process_tree import list_processes

LOCK_ENDING = f"/{OWN_FOLDER}/gateway.lock"


class OtherGateway(msgspec.Struct, frozen=True):
    """A gateway that runs the same program on another home; `home` is "" if this user may not see it."""

    pid: int
    home: str

    def __str__(self) -> str:
        return f"the gateway of {self.home or 'another user'} (pid {self.pid})"


@contextmanager
def lock_program(prefix: Path) -> Generator[None, None, None]:
    """Allow one process at a time to exchange a program, for any home, by a lock on the folder of both programs.

    Raises:
        UpgradeError: another process does already.
    """
    try:
        with lock_path(prefix.parent):
            yield
    except BlockingIOError:
        raise UpgradeError(f"another upgrade of a program in {prefix.parent} is under way at this moment") from None


def check_other_upgrades(home: Home, prefix: Path) -> None:
    """Raise UpgradeError if another home's upgrade was cut off here: this one would remove its way back."""
    mark = read_mark(prefix)
    if not mark or mark.is_of(home):
        return
    if not mark.home:
        raise UpgradeError(f"{prefix / MARK} is not as we write it\nif the program in {prefix} works, remove that file")
    try:
        plan = read_plan(Home(mark.home))
    except OSError:  # another user's
        plan = None
    else:
        if plan is None or plan.name != mark.name:
            return  # it is over, and its very last step was cut off
    raise UpgradeError(
        f"an upgrade of this program for the home {mark.home} was cut off, which keeps the one before to go back\n"
        f"end that first: hermes-gateway --home {mark.home} upgrade"
    )


def list_other_gateways(home: Home, prefix: Path) -> list[OtherGateway]:
    """List the other gateways of this program; empty if the system does not show open files."""
    found = {}
    for process in list_processes():
        with suppress(OSError):
            words = (PROC / str(process.pid) / "cmdline").read_bytes().split(b"\0")
            if words[0].startswith(os.fsencode(prefix) + b"/bin/") and b"run" in words:
                served = next(_list_served(process.pid), "")
                if served != str(home.root):
                    found[served or str(process.pid)] = OtherGateway(process.pid, served)
    return [found[one] for one in sorted(found)]


def _list_served(pid: int) -> Iterator[str]:
    """Yield the homes whose lock this process has open."""
    with suppress(OSError):
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.endswith(LOCK_ENDING):
                    yield target.removesuffix(LOCK_ENDING)
