"""The process in which the gateway makes its own copies: so its memory and its loop stay as they are.

It takes one argument, JSON: the home, how many copies stay, and the servers that keep the journal, if any do (their
user is in the environment). It prints what it made, or ends with 1 and the reason.
"""

import json
import os
import sys
import time
from pathlib import Path

from gateway.backup.archive import write_archive
from gateway.backup.backup_folder import expire_own, make_own_name, open_backup_folder
from gateway.backup.shared_journal import PASSWORD, USER, JournalServers
from gateway.config.home import Home, get_process_environment
from gateway.errors import GatewayError

NICENESS = 10  # people who talk to the agent come first


def main(settings: str) -> int:
    told = json.loads(settings)
    home = Home(Path(told["home"]))
    environ = get_process_environment()
    url = told.get("servers", "")
    who = environ.get(USER, ""), environ.get(PASSWORD, "")
    servers = JournalServers(url, *who) if url else None
    os.umask(0o077)
    os.nice(NICENESS)
    try:
        with open_backup_folder(home.backups) as folder:
            made = write_archive(home, folder / make_own_name(time.time()), with_env=False, servers=servers)
            expire_own(folder, told["keep"])
    except GatewayError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or home.backups}")
    damaged = len(made.journal.damaged) if made.journal else 0
    sys.stdout.write(json.dumps({"file": str(made.path), "size": made.size, "damaged": damaged}))
    return 0


def _fail(why: str) -> int:
    sys.stderr.write(why)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
