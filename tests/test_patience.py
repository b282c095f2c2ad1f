"""A limit counts the time in which we could run, and nothing else."""

import os
import subprocess
import sys
import time

import anyio
import anyio.lowlevel
import pytest

from gateway.errors import GatewayError
from gateway.testing.patience import STRIDE, Patience, calculate_share, wait_for_end, wait_until
from tests.waits import Stopwatch, fail_after

SAYS_AND_STAYS = "import time; print('hello', flush=True); time.sleep(1000)"


def program(source: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", source], stdout=pipe, stderr=pipe, text=True)


def test_a_machine_that_stands_still_uses_up_one_stride_of_a_limit() -> None:
    patience = Patience(0.3)
    time.sleep(0.4)
    assert not patience.is_over()
    assert patience.spent <= STRIDE
    while not patience.is_over():
        time.sleep(0.01)
    assert patience.spent >= 0.3


def test_where_many_programs_want_to_run_a_limit_lasts_as_many_times_longer(tmp_path) -> None:
    load, cores = tmp_path / "loadavg", os.cpu_count() or 1
    shares = {1: 1.0, cores: 1.0, 4 * cores: 0.25, 10 * cores: 0.1}
    for runnable, share in shares.items():
        load.write_text(f"2.98 2.14 0.97 {runnable}/{runnable + 161} 12233\n")
        assert calculate_share(load) == share
    assert calculate_share(tmp_path / "not Linux") == 1.0


def test_a_condition_is_waited_for_and_the_one_that_never_comes_is_said_in_words() -> None:
    answers = iter([0, "", "so it is"])
    assert wait_until(lambda: next(answers)) == "so it is"
    assert [*answers] == []
    with pytest.raises(GatewayError, match="not within 0 s: the sun"):
        wait_until(lambda: False, 0.01, "the sun")


def test_a_program_that_has_ended_says_all_that_it_has_said() -> None:
    with program("import time; print(1); time.sleep(0.3); print(2); print(3 / 0)") as process:
        printed, logged = wait_for_end(process)
    assert (printed, process.returncode, "ZeroDivisionError" in logged) == ("1\n2\n", 1, True)


def test_a_program_that_does_not_end_in_time_is_killed() -> None:
    with program(SAYS_AND_STAYS) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            wait_for_end(process, 0.01)
        assert process.wait() == -9


def test_a_stopwatch_counts_the_same_time() -> None:
    with Stopwatch() as watch:
        time.sleep(0.4)
    assert 0 < watch.seconds < 0.5


async def test_a_block_may_take_so_long_and_no_longer() -> None:
    async with fail_after(60):
        await anyio.lowlevel.checkpoint()
    with pytest.raises(TimeoutError):
        async with fail_after(0.01):
            await anyio.sleep_forever()
