"""The daemon's own process: its protection from other programs, and its orphaned children.

The process holds the tokens of networks and models. As soon as the process starts, its entries in /proc (environment,
memory, descriptors) belong to root, so no other program of the same user can read the tokens; root still can. The
system writes no core file of the process.
"""

import logging
import os
import resource
from contextlib import suppress
from pathlib import Path

import anyio

from gateway.errors import GatewayError
from gateway.threads import count_free_threads, run_in_thread
from gateway.worker import kernel
from gateway.worker.command import TEMPORARY_OF_ALL
from gateway.worker.process_marks import kill_marked, mark_of
from gateway.worker.process_tree import find_descendants, find_ended_children, kill_tree
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)
FEWEST_DESCRIPTORS, MOST_DESCRIPTORS = 128, 65_536
FEWEST_THREADS = 12
REAP_PAUSE = 20.0  # seconds; code that waits for its child is much faster


def isolate_process() -> None:
    kernel.refuse_dumps()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check_thread_limit() -> None:
    """Raise GatewayError if the system gives this process too few threads to start."""
    kernel.limit_free_memory()  # before the first thread, since each thread gets a pool of its own
    if (free := count_free_threads(FEWEST_THREADS)) < FEWEST_THREADS:
        remedy = "end other processes, or raise the limit: ulimit -u 4096, or TasksMax=512 in the unit"
        what = f"this process can start {free} of the {FEWEST_THREADS} threads that it needs"
        raise GatewayError(f"{what}\n{remedy}")


def open_descriptor_limit() -> None:
    """Raise the limit of open files to the system's maximum; raise GatewayError if that is too low."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if most < FEWEST_DESCRIPTORS:
        remedy = "raise it: ulimit -n 1024, or LimitNOFILE=1024 in the unit"
        raise GatewayError(f"this process may open {most} files, and needs {FEWEST_DESCRIPTORS}\n{remedy}")
    kernel.set_descriptor_limit(most)


def describe_readers(uid: int) -> str:
    """Describe the programs that can still read the gateway's secrets; an empty text for an ordinary user."""
    if uid != 0:
        return ""
    return "the gateway runs as root: other programs of root can read its secrets, where no sandbox holds them"


def read_memory_kb() -> int:
    """Return the memory of this process in kB; 0 if the system does not report its memory."""
    try:
        pages = int((kernel.PROC / "self" / "statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def remove_unused_folders(temporary: Path) -> None:
    """Remove the empty temporary folders of commands whose keeper processes were killed."""
    for folder in temporary.glob(f"{TEMPORARY_OF_ALL}-{os.geteuid()}/*-*"):
        keeper = folder.name.partition("-")[0]
        if keeper.isdigit() and not kernel.is_live(int(keeper)):
            with suppress(OSError):
                folder.rmdir()


async def kill_orphans(lock: Path) -> None:
    """End the processes that hooks left behind, even those of a killed gateway; call it while no hook of ours runs."""
    if left := await run_in_thread(_kill_orphans, mark_of(lock)):
        log.warning("hooks left %s behind, and what was left is ended", format_count(left, "process", "processes"))


def _kill_orphans(mark: str) -> int:
    below = kill_tree(lambda: [one.pid for one in find_descendants({os.getpid()})])
    return below + kill_marked(mark)


async def keep_orphans(pause: float = REAP_PAUSE) -> None:
    """Adopt detached processes, so that their origin stays known, and forget them when they have ended.

    If an ended child still exists at the next check, no code waits for that child.
    """
    kernel.adopt_orphans()
    before: set[int] = set()
    while True:
        await anyio.sleep(pause)
        try:
            ended = find_ended_children(os.getpid())
        except OSError as error:  # no more files can be opened: the next check finds the children
            log.debug("who has ended is not known now: %s", error)
            continue
        for pid in ended & before:
            kernel.wait_ended(pid)
        before = ended - before
