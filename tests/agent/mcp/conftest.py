"""A server of tools for all tests of a file that change nothing of it: its library takes a second to load."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.testing.patience import wait_until

SERVER = Path(__file__).with_name("toolserver.py")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Its address, as the settings have it."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    notes = tmp_path_factory.mktemp("shop") / "notes"
    with subprocess.Popen([sys.executable, str(SERVER), "http", str(port), str(notes)]) as server:

        def is_open() -> bool:
            assert server.poll() is None
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        wait_until(is_open)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
        server.kill()
