"""The way back: the journal and all else as it was when nothing was accepted any more, and the program of that time.

Each step may be the last one before a crash: done again, all of it comes to the same.
"""

import sys
from pathlib import Path

from gateway.backup.restore import restore_archive
from gateway.config.home import Home
from gateway.upgrade.environment import exchange_folders
from gateway.upgrade.plan import UpgradePlan, close_plan, read_plan


def undo_upgrade(home: Home, plan: UpgradePlan) -> None:
    """No gateway may serve the home, and nobody may have accepted, sent or run anything."""
    plan = plan.enter(home, "returning")
    if plan.has_new():
        if plan.backup:
            restore_archive(Path(plan.backup), home, replace=True)
        exchange_folders(Path(plan.prefix), Path(plan.beside))
    close_plan(home, plan)


if __name__ == "__main__":
    if found := read_plan(told := Home(Path(sys.argv[1]))):
        undo_upgrade(told, found)
