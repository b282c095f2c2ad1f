"""The process that copies a database of a hook or an agent, as of one instant, while it may be written.

The database's journal names a file that SQLite removes after a rollback, wherever it is; so its author could have
SQLite remove files that they cannot reach. This process can reach the folders of the database and of the copy, and no
others.

It takes two arguments: the database, and the path of the copy. It ends with 1 if the copy cannot be made.
"""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from gateway.worker.sandbox import Sandbox, restrict


def main(database: Path, copy: Path) -> int:
    os.chdir(database.parent)
    if os.getcwd() != str(database.parent):  # noqa: PTH109 - a link has been laid there meanwhile
        return 1
    restrict(Sandbox(write=(".", str(copy.parent))))
    try:
        with (
            closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as db,
            closing(sqlite3.connect(copy)) as into,
        ):
            db.backup(into)
    except sqlite3.Error as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
