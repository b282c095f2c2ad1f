"""A test that hangs is ended, wherever it hangs; one whose machine stood still is not."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.testing.patience import wait_until

pytestmark = pytest.mark.process
HANGS = {
    "in its loop": (
        "async def test_it(opened):\n    await anyio.sleep(1000)",
        (
            r"StillWaiting: the test has not ended within 0.5 s of running time(.|\n)+in test_it\n"
            r" +await anyio.sleep\(1000\)(.|\n)+it was closed(.|\n)+ 1 failed"
        ),
    ),
    "in a task beside it": (
        (
            "async def wait_beside():\n    await anyio.sleep(1000)\n\n\n"
            "async def test_it(opened):\n    async with anyio.create_task_group() as tasks:\n"
            "        tasks.start_soon(wait_beside, name='beside')"
        ),
        r"beside:\n(.|\n)+in wait_beside\n +await anyio.sleep\(1000\)(.|\n)+it was closed(.|\n)+ 1 failed",
    ),
    "outside of the loop": (
        "async def test_it(opened):\n    time.sleep(1000)",
        r"Failed: the test has not ended within 0.5 s of running time(.|\n)+it was closed(.|\n)+ 1 failed",
    ),
    "in a test without a loop": (
        "def test_it():\n    time.sleep(1000)",
        r"Failed: the test has not ended within 0.5 s of running time(.|\n)+ 1 failed",
    ),
    "whatever one does": (
        (
            "def test_it():\n    while True:\n        try:\n            time.sleep(1000)\n"
            "        except BaseException:\n            pass"
        ),
        r"\+ Timeout \+(.|\n)+in test_it\n +time.sleep\(1000\)",
    ),
}
OPENED = """
import time
import anyio
import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def opened():
    yield
    print("it was closed")


"""


def run(place: Path, source: str, *options: str) -> "subprocess.Popen[str]":
    (place / "test_it.py").write_text(OPENED + source)
    command = [sys.executable, "-m", "pytest", "-p", "tests.timeouts", "-o", "anyio_mode=auto", *options]
    root = Path(__file__).parent.parent
    command += ["-o", f"pythonpath={root}", "-c", "/dev/null", "--rootdir", str(place), str(place)]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("hangs", HANGS)
def test_who_hangs_is_ended_with_where_it_waits(tmp_path: Path, hangs: str) -> None:
    source, said = HANGS[hangs]
    with run(tmp_path, source, "--timeout=0.5") as running:
        shown = running.communicate()[0]
    assert running.returncode == 1
    assert re.search(said, shown), shown


def test_a_machine_that_stands_still_fails_no_test(tmp_path: Path) -> None:
    source = (
        f"def test_it():\n    (pathlib.Path({str(tmp_path)!r}) / 'begun').touch()\n"
        "    for _ in range(40):\n        time.sleep(0.01)\n"
    )
    with run(tmp_path, f"import pathlib\n\n\n{source}", "--timeout=2") as running:
        wait_until((tmp_path / "begun").exists)
        running.send_signal(signal.SIGSTOP)
        time.sleep(3)
        running.send_signal(signal.SIGCONT)
        shown = running.communicate()[0]
    assert running.returncode == 0, shown
