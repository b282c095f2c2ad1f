"""The search for processes of hooks by a variable in their environment, when nothing else identifies them.

A detached process has another parent when its own has ended, and after a crash of the gateway no process knows it.
/proc shows the environment of its start for as long as it lives: a mark for this home, followed by one for this process
of a hook. So processes that a hook left behind are found when the hook ends, and by the next gateway on the same home;
another gateway's hooks have another mark. A process with an empty environment has no mark, and is found only by
descent.

A mark is not a secret: a program that can set it for a process could as well end that process. Without /proc, no
process is found.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from gateway.worker.kernel import PROC
from gateway.worker.process_tree import find_ancestors, kill_tree

MARK_VARIABLE = "HERMES_GATEWAY_MARK"


def mark_of(lock: Path) -> str:
    """Return the mark of the home of this lock; a copy of the home has another one."""
    try:
        found = lock.stat()
    except OSError:
        return ""
    return hashlib.sha256(f"{lock.resolve()} {found.st_dev} {found.st_ino}".encode()).hexdigest()[:32]


def make_mark(home: str) -> str:
    """Make a mark for a process of a hook; "" if the home has none."""
    return f"{home}.{os.urandom(8).hex()}" if home else ""


def env_of(mark: str) -> dict[str, str]:
    return {MARK_VARIABLE: mark} if mark else {}


def find_marked(mark: str) -> list[int]:
    """Return the processes with this mark or an extension of it, without this process and its ancestors."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    ours = {os.getpid(), *find_ancestors(os.getpid())}
    found: list[int] = []
    for entry in os.scandir(PROC) if PROC.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) not in ours:
            with suppress(OSError):  # it is gone, or belongs to another user
                variables = (PROC / entry.name / "environ").read_bytes().split(b"\0")
                if any(one == wanted or one.startswith(wanted + b".") for one in variables):
                    found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> int:
    """Kill the processes with this mark, including new ones. Return their number."""
    return kill_tree(lambda: find_marked(mark)) if mark else 0
