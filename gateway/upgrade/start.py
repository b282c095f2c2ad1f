"""The start of a gateway that finds an upgrade: it continues the upgrade, goes back, or reports its end.

As long as another process steers the upgrade, that one decides. Otherwise it was cut off, and the start is the trial.
"""

import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gateway.config.home import Home
from gateway.engine.sqlite.journal_file import open_reader
from gateway.errors import GatewayError, HomeBusy
from gateway.notify import Notifier
from gateway.records.subjects import CURSOR_SUBJECTS, FIGURE_SUBJECTS, event_subject_of, hook_store_subject_of
from gateway.upgrade.plan import UpgradeError, UpgradePlan, close_plan, is_in_use, read_plan
from gateway.upgrade.program_users import lock_program

log = logging.getLogger(__name__)

# The records of a mere start and stop: read positions, figures, the events themselves, the state of hooks, notices.
OWN_NOTES = ("gateway/notices", "gateway/durable hooks", "mcp")
IDLE_PATTERNS = (
    CURSOR_SUBJECTS,
    FIGURE_SUBJECTS,
    event_subject_of("gateway:*"),
    event_subject_of("hook:*"),
    *map(hook_store_subject_of, OWN_NOTES),
)
IDLE_SUBJECTS = tuple(pattern.partition("*")[0].rstrip(">") for pattern in IDLE_PATTERNS)


START_ROOM = 60.0  # seconds of each request to the supervisor for more time


class OtherProgram(GatewayError):
    """An upgrade has exchanged the program before this process of the old one could begin."""


def find_new_records(home: Home, plan: UpgradePlan) -> str:
    """Describe the records since the journal was copied; "": none, so the copy has all data."""
    if not home.journal.exists():
        return ""
    try:
        with closing(open_reader(home.journal)) as db:
            rows = db.execute("SELECT DISTINCT subject FROM log WHERE seq > ?", (plan.last_seq,))
            subjects = [str(subject) for (subject,) in rows if not str(subject).startswith(IDLE_SUBJECTS)]
    except sqlite3.Error as error:
        return f"{home.journal} cannot be read here: {error}"
    kinds = sorted({subject.split(".")[1] if "." in subject else subject for subject in subjects})
    return f"records were written since: {', '.join(kinds)}" if kinds else ""


@contextmanager
def try_upgrade(
    home: Home, prefix: Path, restart_program: Callable[[], None], notifier: Notifier
) -> Generator[str, None, None]:
    """Let a gateway start and serve inside the block; yields a note about an upgrade that was cut off.

    `restart_program` starts the program in place. `notifier`: the supervisor, which waits for the start.

    Raises:
        Exception: the failure of the start, if no way back exists or is needed.
    """
    plan, note = find_open_plan(home, prefix), ""
    if plan and not plan.has_new():
        note = f"an upgrade to {plan.after} was cut off: this is {plan.before}, as before"
        settle_plan(home, plan)
    elif plan and plan.state == "returning":
        log.warning("the upgrade to %s did not work: back to %s", plan.after, plan.before)
        try:
            call_undo(home, plan, notifier)
        except UpgradeError as error:
            if (read_plan(home) or plan).state == "returning":
                raise
            log.error("%s; so %s is tried once more", error, plan.after)
        else:
            restart_program()
    try:
        yield note
    except OtherProgram as error:
        log.warning("%s", error)
        restart_program()
    except Exception as error:  # any failure of a new program
        plan = find_open_plan(home, prefix)
        if isinstance(error, HomeBusy) or plan is None or not plan.has_new() or find_new_records(home, plan):
            raise
        log.error("%s did not start: %s; back to %s", plan.after, error or type(error).__name__, plan.before)
        call_undo(home, plan, notifier)
        restart_program()


def call_undo(home: Home, plan: UpgradePlan, notifier: Notifier) -> None:
    """Go back in a separate process: no other start needs its modules. Raises UpgradeError if it failed."""
    with subprocess.Popen([sys.executable, "-P", "-m", "gateway.upgrade.undo", str(home.root)]) as undoing:
        while undoing.poll() is None:
            notifier.starting(START_ROOM)  # a large home takes longer than a supervisor's limit
            with suppress(subprocess.TimeoutExpired):
                undoing.wait(START_ROOM / 3)
    if undoing.returncode:
        copy = plan.backup or "none was needed"
        raise UpgradeError(f"the way back to {plan.before} failed, as said above; the copy of the home: {copy}")


def find_open_plan(home: Home, prefix: Path) -> UpgradePlan | None:
    """Return the upgrade of this program that no process steers any more."""
    plan = read_plan(home)
    return plan if plan and Path(plan.prefix) == prefix and not is_in_use(home) else None


def settle_upgrade(home: Home, prefix: Path) -> None:
    """End an upgrade that was cut off: the gateway is ready, so it has worked after all."""
    plan = find_open_plan(home, prefix)
    if plan and plan.has_new():
        log.warning("an upgrade from %s was cut off while this program was being tried; it works", plan.before)
        threading.Thread(target=settle_plan, args=(home, plan), daemon=True).start()


def settle_plan(home: Home, plan: UpgradePlan) -> None:
    """Close the plan; if another process exchanges the program at this moment, the next start does it."""
    with suppress(UpgradeError), lock_program(Path(plan.prefix)):
        close_plan(home, plan)


class LoadedProgram:
    """The place of the program that this process has loaded, to notice another one there."""

    def __init__(self, prefix: Path) -> None:
        self._prefix, self._folder = prefix, prefix.stat().st_ino

    def check(self) -> None:
        """Raise OtherProgram if this process would load modules of another version from now on."""
        if self._prefix.stat().st_ino != self._folder:
            raise OtherProgram("another program has taken the place of this one while it waited; that one starts")
