"""Threads beside the event loop, also where the system gives no more of them.

`anyio.to_thread` raises an error then, which would end whatever asked for a thread: a turn, or the gateway itself.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache, partial
from threading import Event, Thread
from time import time
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

LOOK_PAUSE = 0.5  # seconds between two looks if there are threads again

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")

log = logging.getLogger(__name__)


async def run_in_thread(function: Callable[[*ArgsT], T], *args: *ArgsT) -> T:
    """Run it in a thread; if there can be no more, in that of the event loop, in its turn."""
    has_begun = False

    def run() -> T:
        nonlocal has_begun
        has_begun = True
        return function(*args)

    try:
        return await to_thread.run_sync(run)
    except RuntimeError as error:
        if has_begun or not is_thread_error(error):
            raise
    _tell_want(int(time() // 60))
    with anyio.CancelScope(shield=True):
        result = await asyncio.get_running_loop().run_in_executor(None, partial(copy_context().run, run))
    return result  # noqa: RET504 - to the type checker a scope may pass over what it holds


def is_thread_error(error: Exception) -> bool:
    """Tell if the system gave no thread, as Python says it."""
    return "can't start new thread" in str(error)


@lru_cache(1)
def _tell_want(minute: int) -> None:  # noqa: ARG001 - once in each
    log.warning("the system gives no more threads: work waits until one is free")


async def wait_for_threads() -> None:
    """Wait until the system gives new threads, for what would not bear that it gives none."""
    while count_free_threads(2) < 2:
        _tell_want(int(time() // 60))
        await anyio.sleep(LOOK_PAUSE)


def count_free_threads(most: int) -> int:
    """Count the threads that the system would give now, up to so many."""
    over, begun = Event(), list[Thread]()
    with suppress(RuntimeError):
        for _ in range(most):
            one = Thread(target=over.wait)
            one.start()
            begun.append(one)
    over.set()
    for one in begun:
        one.join()
    return len(begun)


class LoopThreads(ThreadPoolExecutor):
    """The threads of the event loop, in which it looks up names: one is always there, and does all if need be."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="loop")
        self.submit(int)

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise


def prepare_threads() -> None:
    """Let the running event loop do without more threads: a descriptor tells of a child's end."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(LoopThreads())
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):  # later ones do so by themselves
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(loop)
        asyncio.set_child_watcher(watcher)
