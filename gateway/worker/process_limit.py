"""How many processes all hooks together may have.

The kernel counts per user, not per program: the limit is what the user's other programs have now, and so many more.
Those come and go, so the limit is taken anew from time to time. Root has no such limit.
"""

import os
import resource
from collections.abc import Iterable
from contextlib import suppress

from gateway.worker.process_tree import count_user_threads, find_descendants


class ProcessLimit:
    def __init__(self, more: int) -> None:
        self._more = more

    def now(self) -> int | None:
        """None where there is no limit to be had."""
        if os.getuid() == 0:
            return None
        ours = {kin.pid for kin in find_descendants({os.getpid()})}
        return count_user_threads(os.getuid(), ours) + self._more

    def renew(self, pids: Iterable[int]) -> None:
        known = [*pids]
        limit = self.now() if known and hasattr(resource, "prlimit") else None
        if limit is None:
            return
        for pid in known:
            with suppress(OSError, ValueError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
                resource.prlimit(pid, resource.RLIMIT_NPROC, (capped_to_hard(limit, hard), hard))


def capped_to_hard(limit: int, hard: int) -> int:
    """A limit that the kernel accepts beside this hard one."""
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)
