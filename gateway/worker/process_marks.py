"""How the processes of hooks are known when nothing else says whose they are: by a variable in their environment.

A process that detached itself has another parent when its own has ended, and after a crash of the gateway nobody is
left that knew it. What it was started with stands in /proc, as long as it lives: a mark for this home, and behind it
one for this process of a hook. So what a hook left behind is found when the hook ends, and by the next gateway on the
same home; another gateway's hooks have another mark. Who is given an empty environment has none, and is found by
descent alone.

A mark is no secret: whoever can set it for a process could as well end that process. Where there is no /proc, nobody is
found.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from gateway.worker.kernel import PROC
from gateway.worker.process_tree import find_ancestors, kill_tree

MARK_VARIABLE = "HERMES_GATEWAY_MARK"


def mark_of(lock: Path) -> str:
    """The mark of the home that this lock is held for; a copy of the home has another one."""
    try:
        found = lock.stat()
    except OSError:
        return ""
    return hashlib.sha256(f"{lock.resolve()} {found.st_dev} {found.st_ino}".encode()).hexdigest()[:32]


def make_mark(home: str) -> str:
    """One for a process of a hook; none where the home has none."""
    return f"{home}.{os.urandom(8).hex()}" if home else ""


def env_of(mark: str) -> dict[str, str]:
    return {MARK_VARIABLE: mark} if mark else {}


def find_marked(mark: str) -> list[int]:
    """Who has this mark, or one that this one is the beginning of; but not we, nor whoever we come from."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    ours = {os.getpid(), *find_ancestors(os.getpid())}
    found: list[int] = []
    for entry in os.scandir(PROC) if PROC.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) not in ours:
            with suppress(OSError):  # it is gone, or another user's
                variables = (PROC / entry.name / "environ").read_bytes().split(b"\0")
                if any(one == wanted or one.startswith(wanted + b".") for one in variables):
                    found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> int:
    """Kill who has this mark, whatever they start meanwhile. Returns how many they were."""
    return kill_tree(lambda: find_marked(mark)) if mark else 0
