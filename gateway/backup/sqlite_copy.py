"""The process in which a database of a hook's or an agent's is copied, as of one instant, though it is being written.

Its journal says which file SQLite removes once it has rolled back, wherever that lies; so whoever writes one would have
it remove what they cannot reach. This process reaches the folder of the database and that of the copy, and no other.

Two arguments: the database, and where the copy is to be. It ends with 1 where that cannot be made.
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
