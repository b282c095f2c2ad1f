"""The timeout of a test counts our own running time: who hangs fails, with where all of it waits; a standstill is none.

pytest-timeout reads the limits (`timeout` in pyproject.toml, `@pytest.mark.timeout(N)`) and leaves the timer to us. A
test that waits in its event loop is cancelled, so that what it has opened is closed as after any failure; where that
does not end it either, the process ends, once it has had the same time again.
"""

import asyncio
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from pytest_timeout import Settings, is_debugging, timeout_timer  # type: ignore[import-untyped] # it has no types

from gateway.testing.patience import STRIDE, Patience

WATCHDOG = "the watchdog of the test"
FRAMES = ("cr_frame", "gi_frame", "ag_frame")
AWAITED = ("cr_await", "gi_yieldfrom", "ag_await")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timeouts())


class Timeouts:
    """One watchdog at a time, for the test that runs; its fixtures have to begin and end within the limit, too."""

    def __init__(self) -> None:
        self._watchdog: Watchdog | None = None

    @pytest.hookimpl(optionalhook=True)  # for a run without pytest-timeout
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Settings) -> bool:
        self._watchdog = Watchdog(item, settings)
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool:
        """Asked for at any failure; what follows that is limited, unless a person looks at it."""
        if item.config.getoption("usepdb"):
            self.pytest_runtest_logfinish()
        return True

    def pytest_runtest_logfinish(self) -> None:
        if self._watchdog:
            self._watchdog.stop()
        self._watchdog = None


class Watchdog:
    """A thread that counts, and tells the main one when the test has had its time."""

    def __init__(self, item: pytest.Item, settings: Settings) -> None:
        self._item = item
        self._settings = settings
        self._is_over = threading.Event()
        self._former = signal.signal(signal.SIGALRM, self._fail)
        self._thread = threading.Thread(target=self._watch, name=WATCHDOG, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        signal.signal(signal.SIGALRM, self._former)

    def _watch(self) -> None:
        self._count_down()
        if not self._is_over.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        self._count_down()
        if not self._is_over.is_set():
            timeout_timer(self._item, self._settings)

    def _count_down(self) -> None:
        patience = Patience(self._settings.timeout)
        while not patience.is_over() and not self._is_over.wait(STRIDE):
            pass

    def _fail(self, _number: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if self._is_over.is_set() or is_debugging():
            return
        said = f"the test has not ended within {self._settings.timeout:g} s of running time"
        self._item.add_report_section("call", "stacks", "\n".join([*describe_threads(), *describe_tasks()]))
        if asyncio._get_running_loop() and not asyncio.current_task():
            raise StillWaiting(said)
        pytest.fail(said)


class StillWaiting(BaseException):
    """Interrupts an event loop: anyio cancels the test that waits in it, which it does not for a plain failure."""


def describe_threads() -> Iterator[str]:
    """Where each thread of the test is, but for the main one, which the traceback shows."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        if thread.ident in frames and thread is not threading.main_thread() and thread.name != WATCHDOG:
            yield f"{thread.name}:\n{''.join(traceback.format_stack(frames[thread.ident]))}"


def describe_tasks() -> Iterator[str]:
    """Where each task of the event loop waits, from the outermost coroutine inwards."""
    for task in asyncio.all_tasks() if asyncio._get_running_loop() else ():
        stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames_of(task.get_coro()))
        yield f"{task.get_name()}:\n{''.join(stack.format())}"


def frames_of(awaited: object) -> Iterator[FrameType]:
    """Task.get_stack would say the first of them alone."""
    while awaited is not None:
        yield from find_fields(awaited, FRAMES)
        awaited = next(find_fields(awaited, AWAITED), None)


def find_fields(thing: object, names: tuple[str, ...]) -> Iterator[Any]:
    return (field for name in names if (field := getattr(thing, name, None)) is not None)
