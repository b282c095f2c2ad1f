"""A home's record of an upgrade in progress: enough for any later process to finish it.

The folders themselves show which program is in place: the new environment has the plan's mark, so the plan and the disk
agree at every moment.
"""

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from gateway.config.home import Home
from gateway.engine.sqlite.journal_file import sync
from gateway.errors import GatewayError
from gateway.files.folders import lock_path, read_plain_file, write_file

PLAN, LOCK = "plan.json", "lock"
MARK = "hermes-gateway-upgrade"  # in the new environment: the plan that it belongs to

# stopping: nothing has changed yet · trying: the new one must prove itself · returning: the old one is put back
UpgradeState: TypeAlias = Literal["stopping", "trying", "returning"]


class UpgradeError(GatewayError):
    """An upgrade is not possible here, or failed."""


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """The plan to which a new environment belongs; without a home it was not written by us."""

    name: str
    home: Path | None

    def is_of(self, home: Home) -> bool:
        return self.home == home.root


class UpgradePlan(msgspec.Struct, frozen=True):
    """An upgrade in progress.

    `prefix` is the place of the program, `beside` that of the other one: first the new one, then the old one.
    `platforms` and `hooks` were up before, and `last_seq` is the journal's last record of that time.
    """

    name: str
    before: str
    after: str
    prefix: str
    beside: str
    was_running: bool = False
    platforms: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    state: UpgradeState = "stopping"
    backup: str = ""
    last_seq: int = 0

    def has_new(self) -> bool:
        """Return True if the new program is in place.

        Raises:
            UpgradeError: that is not known: then neither of the two may be removed.
        """
        mark, path = read_mark(Path(self.prefix)), Path(self.prefix) / MARK
        if mark and not mark.home:
            raise UpgradeError(
                f"which program is in {self.prefix}, and which in {self.beside}, is unknown: {path} is not as we "
                "write it; nothing was removed\n"
                f"if the one in {self.prefix} works, remove {path}, and the other one goes"
            )
        return mark is not None and mark.name == self.name

    def enter(self, home: Home, state: UpgradeState, backup: str = "", last_seq: int = 0) -> Self:
        """Enter a further state, and store the plan safely on the disk."""
        entered = replace(self, state=state, backup=backup or self.backup, last_seq=last_seq or self.last_seq)
        write_plan(home, entered)
        return entered


def find_other_place(prefix: Path) -> Path:
    """Return the only possible place of the other program."""
    return prefix.with_name(f".{prefix.name}.upgrade")


def write_mark(folder: Path, name: str, home: Home) -> None:
    """Write the mark and store all on the disk safely, before the other program may be removed."""
    (folder / MARK).write_bytes(f"{name}\0{home.root}\0".encode("utf-8", "surrogateescape"))
    os.sync()


def read_mark(folder: Path) -> ProgramMark | None:
    """Return the mark of an environment, or None. Raises UpgradeError if it cannot be read."""
    path = folder / MARK
    try:
        said = read_plain_file(path).decode("utf-8", "surrogateescape").split("\0")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UpgradeError(f"{path} cannot be read: {error.strerror}") from None
    return ProgramMark(said[0], Path(said[1])) if len(said) == 3 else ProgramMark(said[0], None)


def write_plan(home: Home, plan: UpgradePlan) -> None:
    write_file(home.upgrade / PLAN, json.dumps(msgspec.to_builtins(plan)).encode())
    sync(home.upgrade)


def read_plan(home: Home) -> UpgradePlan | None:
    """Return the plan; None: no upgrade is in progress.

    Raises:
        UpgradeError: it cannot be read.
    """
    path = home.upgrade / PLAN
    try:
        plan = msgspec.convert(json.loads(read_plain_file(path)), UpgradePlan)  # a later version may have written more
        if Path(plan.beside) != find_other_place(Path(plan.prefix)):  # that folder is removed in the end
            raise ValueError(plan.beside)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UpgradeError(f"{path} cannot be read: {error.strerror}\nmake it readable for its user") from None
    except ValueError:
        raise UpgradeError(f"{path} is not as we write it\nremove it, and run: hermes-gateway upgrade") from None
    return plan


def describe_open_plan(home: Home) -> str:
    """Describe an unfinished upgrade of this home; "" for none."""
    try:
        plan = read_plan(home)
    except UpgradeError as error:
        return str(error)
    if plan is None:
        return ""
    what = "is under way" if is_in_use(home) else "was cut off; it is gone on from there, or gone back"
    return f"that from {plan.before} to {plan.after} {what}"


def close_plan(home: Home, plan: UpgradePlan) -> None:
    """Finish the upgrade: the program in place stays, and the other one is removed.

    The other one stays if it belongs to another home's upgrade. The program is locked.
    """
    marks = [read_mark(Path(plan.prefix)), read_mark(Path(plan.beside))]
    (home.upgrade / PLAN).unlink(missing_ok=True)
    sync(home.upgrade)
    if any(mark and mark.home and not mark.is_of(home) for mark in marks):
        return
    (Path(plan.prefix) / MARK).unlink(missing_ok=True)
    shutil.rmtree(plan.beside, ignore_errors=True)


@contextmanager
def steer_upgrade(home: Home) -> Generator[None, None, None]:
    """Allow one process at a time to steer the home's upgrade. Raises UpgradeError if another one does."""
    home.upgrade.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with lock_path(home.upgrade / LOCK, os.O_RDWR | os.O_CREAT):
            yield
    except BlockingIOError:
        raise UpgradeError(f"another upgrade of {home.root} is under way at this moment") from None


def is_in_use(home: Home) -> bool:
    """Return True if another process steers the upgrade, and so decides how it ends."""
    try:
        with steer_upgrade(home):
            return False
    except UpgradeError:
        return True
