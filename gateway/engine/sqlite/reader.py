"""The thread that reads, so that a question never waits behind a commit.

It sees every transaction whose caller was told: a commit is visible to each reading that begins after it.
"""

import sqlite3
from pathlib import Path
from typing import Any

from gateway.engine.sqlite import journal_file
from gateway.engine.sqlite.faults import FaultState
from gateway.engine.sqlite.job_thread import ThreadJob


class JournalReader:
    """The duty of the reading thread."""

    def __init__(self, path: Path, condition: FaultState) -> None:
        self._path = path
        self._condition = condition

    def open(self) -> None:
        self._db = journal_file.open_reader(self._path)

    def serve(self, jobs: list[ThreadJob[sqlite3.Connection, Any]]) -> None:
        for job in jobs:
            try:
                job.value = job.work(self._db)
            except sqlite3.Error as error:
                job.error = self._condition.record_error(error)
            except Exception as error:  # noqa: BLE001 - it goes to the caller, and the thread lives on
                job.error = error

    def rest(self) -> None:
        return None

    def close(self) -> None:
        self._db.close()
