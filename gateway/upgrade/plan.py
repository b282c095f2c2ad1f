"""What a home knows of an upgrade that is under way: enough to end it, whoever comes next.

Which of the two programs is in place the folders say themselves: the new environment bears the plan's mark, and so
there is no moment at which the plan and the disk disagree.
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
MARK = "hermes-gateway-upgrade"  # in the new environment: whose plan it is of

# stopping: nothing has changed yet · trying: the new one is to show that it works · returning: the old one comes back
UpgradeState: TypeAlias = Literal["stopping", "trying", "returning"]


class UpgradeError(GatewayError):
    """An upgrade cannot be made here, or did not come about."""


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """Whose plan a new environment is of; without a home it is not as we write it."""

    name: str
    home: Path | None

    def is_of(self, home: Home) -> bool:
        return self.home == home.root


class UpgradePlan(msgspec.Struct, frozen=True):
    """`prefix` is where the program lies, `beside` where the other one does: the new one, then the old one.

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
        """Whether the new program is in place.

        Raises:
            UpgradeError: that cannot be told: neither of the two may go then.
        """
        mark, path = read_mark(Path(self.prefix)), Path(self.prefix) / MARK
        if mark and not mark.home:
            raise UpgradeError(
                f"which program is in {self.prefix}, and which in {self.beside}, cannot be told: {path} is not as we "
                "write it; nothing was removed\n"
                f"if the one in {self.prefix} works, remove {path}, and the other one goes"
            )
        return mark is not None and mark.name == self.name

    def enter(self, home: Home, state: UpgradeState, backup: str = "", last_seq: int = 0) -> Self:
        """The same plan, a step further, which is on the disk for good."""
        entered = replace(self, state=state, backup=backup or self.backup, last_seq=last_seq or self.last_seq)
        write_plan(home, entered)
        return entered


def find_other_place(prefix: Path) -> Path:
    """Where the other program lies, and nowhere else."""
    return prefix.with_name(f".{prefix.name}.upgrade")


def write_mark(folder: Path, name: str, home: Home) -> None:
    """All of it is on the disk for good then, before the other one may go."""
    (folder / MARK).write_bytes(f"{name}\0{home.root}\0".encode("utf-8", "surrogateescape"))
    os.sync()


def read_mark(folder: Path) -> ProgramMark | None:
    """That of an environment; None: it has none. UpgradeError: it cannot be read."""
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
    """None: no upgrade is under way.

    Raises:
        UpgradeError: it cannot be read.
    """
    path = home.upgrade / PLAN
    try:
        plan = msgspec.convert(json.loads(read_plain_file(path)), UpgradePlan)  # a later version may have written more
        if Path(plan.beside) != find_other_place(Path(plan.prefix)):  # what lies there is removed in the end
            raise ValueError(plan.beside)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UpgradeError(f"{path} cannot be read: {error.strerror}\nmake it readable for its user") from None
    except ValueError:
        raise UpgradeError(f"{path} is not as we write it\nremove it, and run: hermes-gateway upgrade") from None
    return plan


def describe_open_plan(home: Home) -> str:
    """An upgrade of this home that has not ended; empty: there is none."""
    try:
        plan = read_plan(home)
    except UpgradeError as error:
        return str(error)
    if plan is None:
        return ""
    what = "is under way" if is_in_use(home) else "was cut off; it is gone on from there, or gone back"
    return f"that from {plan.before} to {plan.after} {what}"


def close_plan(home: Home, plan: UpgradePlan) -> None:
    """It is over: the program that is in place stays, and the other one goes, unless it is of another home's upgrade.

    The program is locked.
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
    """One steers an upgrade of a home at a time. UpgradeError: somebody does already."""
    home.upgrade.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with lock_path(home.upgrade / LOCK, os.O_RDWR | os.O_CREAT):
            yield
    except BlockingIOError:
        raise UpgradeError(f"another upgrade of {home.root} is under way at this moment") from None


def is_in_use(home: Home) -> bool:
    """Whether somebody is at it, who decides how it ends."""
    try:
        with steer_upgrade(home):
            return False
    except UpgradeError:
        return True
