"""A process that does nothing though it could hangs, one that waits for its turn on a busy machine does not."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.hooks.wires.process_handle import HANGING_AFTER, LOOK_PAUSE, STOPPED_AFTER, ProcessHealth
from gateway.worker.process_tree import read_process
from tests.spine import until

pytestmark = pytest.mark.process

LOOKS = int(HANGING_AFTER / LOOK_PAUSE)


@contextmanager
def running(code: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def is_in(process: "subprocess.Popen[bytes]", state: str) -> None:
    await until(lambda: (now := read_process(process.pid)) is not None and now.state == state)


async def test_one_that_sleeps_though_it_owes_an_answer_hangs() -> None:
    with running("import signal; signal.pause()") as process:
        await is_in(process, "S")
        health = ProcessHealth(process.pid)
        assert [health.is_hanging() for _ in range(LOOKS)] == [False] * (LOOKS - 1) + [True]


async def test_one_that_is_stopped_hangs_sooner() -> None:
    with running("import signal; signal.pause()") as process:
        process.send_signal(signal.SIGSTOP)
        await is_in(process, "T")
        health, looks = ProcessHealth(process.pid), int(STOPPED_AFTER / LOOK_PAUSE)
        assert [health.is_hanging() for _ in range(looks)] == [False] * (looks - 1) + [True]


async def test_one_that_waits_for_a_processor_is_given_the_time_that_it_did_not_have() -> None:
    with running("while True: pass") as process:
        await is_in(process, "R")
        health = ProcessHealth(process.pid)
        assert not any(health.is_hanging() for _ in range(10 * LOOKS))


def test_of_one_that_nobody_can_look_at_all_time_counts() -> None:
    with running("pass") as process:
        process.wait()
        health = ProcessHealth(process.pid)
        assert [health.is_hanging() for _ in range(LOOKS)] == [False] * (LOOKS - 1) + [True]
