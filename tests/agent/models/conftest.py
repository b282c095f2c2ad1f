"""Endpoints to call: an independent one that others wrote, and one of our own that misbehaves to order."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.testing.patience import wait_until
from tests.agent.endpoint import Endpoint, serving

HERE = Path(__file__).parent  # package.json names the server, package-lock.json its hash

ENDLESS = "one " * 500  # takes longer than this machine may stand still

FIXTURES = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "weather", "arguments": '{"city":"Paris"}'}]},
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "It is 18 C in Paris."}},
    {"match": {"userMessage": "slow"}, "response": {"content": "one two three"}, "chunkSize": 4, "latency": 40},
    {"match": {"userMessage": "endless"}, "response": {"content": ENDLESS}, "chunkSize": 4, "latency": 40},
    {
        "match": {"userMessage": "limit"},
        "response": {"error": {"message": "Rate limited", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "cut"},
        "response": {"content": "cut before its end"},
        "chunkSize": 5,
        "truncateAfterChunks": 3,
    },
    {"match": {"userMessage": "stall"}, "response": {"content": "a minute later"}, "latency": 60_000},
    {"match": {"userMessage": "garbage"}, "response": {"content": "never read"}, "chaos": {"malformedRate": 1}},
    {
        "match": {"userMessage": "half a call", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "weather", "arguments": '{"city": "Par'}]},
    },
    {"match": {"userMessage": "half a call", "hasToolResult": True}, "response": {"content": "I see."}},
]


def aimock() -> Path:
    """The server, fetched by npm the first time; without npm its tests are skipped, which CI does not allow."""
    program = HERE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not program.exists() and shutil.which("npm"):
        command = ["npm", "ci", "--prefix", str(HERE), "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, capture_output=True)
    if not program.exists() or not shutil.which("node"):
        reason = "the model server aimock needs Node.js: apt install npm"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


@pytest.fixture(scope="session")
def independent_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An OpenAI-compatible server that knows nothing of us."""
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": FIXTURES}))
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = ["node", str(aimock()), "-p", str(port), "-f", str(folder)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_open(port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()
            server.wait()


def wait_until_open(port: int) -> None:
    def is_open() -> bool:
        with closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_open, what=f"somebody who listens on port {port}")


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with serving() as server:
        yield server
