"""One gateway a home."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.daemon.home_lock import lock_home
from gateway.errors import HomeBusy

HOLDER = """
import anyio, sys
from pathlib import Path
from gateway.daemon.home_lock import lock_home
async def main():
    async with lock_home(Path(sys.argv[1]), 1):
        print("held", flush=True)
        await anyio.sleep(float(sys.argv[2]))
anyio.run(main)
"""


def holder(path: Path, seconds: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


async def test_a_second_gateway_is_refused_and_told_who_holds_the_home(tmp_path: Path) -> None:
    with holder(tmp_path / "lock", 60) as process:
        with pytest.raises(HomeBusy, match=f"held by pid {process.pid}"):
            async with lock_home(tmp_path / "lock", 0.2):
                pass
        process.kill()


async def test_a_second_gateway_waits_for_one_that_is_about_to_end_and_says_so_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with holder(tmp_path / "lock", 0.4) as process:
        begun = time.monotonic()
        async with lock_home(tmp_path / "lock", 10):
            assert time.monotonic() - begun > 0.1
    (said,) = caplog.records
    assert re.search(rf"serves this home: pid {process.pid} since .*; .* for 10 s$", said.getMessage())


async def test_the_lock_of_a_dead_process_is_nothing(tmp_path: Path) -> None:
    with holder(tmp_path / "lock", 60) as process:
        process.kill()
    async with lock_home(tmp_path / "lock", 0.5):
        assert f"pid {os.getpid()} " in (tmp_path / "lock").read_text()
