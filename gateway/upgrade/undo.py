"""The way back: the journal and all other files as they were at the copy, and the program of that time.

A crash may follow each step: a repetition has the same result.
"""

import sys
from pathlib import Path

from gateway.backup.restore import restore_archive
from gateway.config.home import Home
from gateway.errors import GatewayError
from gateway.upgrade.environment import exchange_folders
from gateway.upgrade.plan import UpgradeError, UpgradePlan, close_plan, read_plan, steer_upgrade
from gateway.upgrade.program_users import lock_program


def undo_upgrade(home: Home, plan: UpgradePlan) -> None:
    """Restore the home and the old program.

    No gateway may serve the home, and nothing may have been accepted, sent or run since the copy. The program is
    locked.

    Raises:
        UpgradeError: the home cannot be restored; if nothing of it changed, the new program is on trial again.
    """
    plan = plan.enter(home, "returning")
    if plan.has_new():
        if plan.backup:
            restore_home(home, plan)
        exchange_folders(Path(plan.prefix), Path(plan.beside))
    close_plan(home, plan)


def restore_home(home: Home, plan: UpgradePlan) -> None:
    """Restore our own folder, since a start changes nothing else. Raises UpgradeError if it failed."""
    try:
        restore_archive(Path(plan.backup), home, replace=True, own_only=True)
    except (GatewayError, OSError) as error:
        if not home.restore.exists():
            plan.enter(home, "trying")
        raise UpgradeError(f"the home cannot be put back: {error}\nthe copy of it: {plan.backup}") from error


def main() -> None:
    """Go back under a lock: a second process at the same time would exchange the programs again."""
    home = Home(Path(sys.argv[1]))
    try:
        with steer_upgrade(home):
            if found := read_plan(home):
                with lock_program(Path(found.prefix)):
                    undo_upgrade(home, found)
    except GatewayError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
