"""Processes as the kernel shows them."""

import os
import subprocess
import sys

import pytest

from gateway.testing.patience import wait_until
from gateway.worker import kernel
from gateway.worker.process_tree import find_ended_children, read_process

pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc"),
]


def test_a_child_that_nobody_waited_for_is_found_and_let_go() -> None:
    ended, lives = os.posix_spawn("/bin/true", ["true"], {}), subprocess.Popen(["sleep", "60"])
    try:
        wait_until(lambda: ended in find_ended_children(os.getpid()))
        assert lives.pid not in find_ended_children(os.getpid())
        kernel.wait_ended(ended)
        assert read_process(ended) is None
        found = read_process(lives.pid)
        assert found
        assert found.parent == os.getpid()
    finally:
        lives.kill()
        lives.wait()
