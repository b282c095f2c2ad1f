"""A hook server under the servers that people run, by itself and mounted in what they build with."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from gateway.events import Event
from gateway.hooks import HookRegistry
from gateway.hooks.remote import Remote, RemoteSpec, interceptor
from gateway.testing.patience import wait_until
from tests.http_server import find_free_ports

pytestmark = pytest.mark.process

MODULE = """
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from gateway.hooks.server import HookServer

def mark(event):
    return {"args": {**event["args"], "seen": True}}

bare = HookServer({"tool:before": mark})
fastapi = FastAPI()
fastapi.mount("/hooks", bare)
starlette = Starlette(routes=[Mount("/hooks", app=bare)])
"""
SERVERS = {
    "uvicorn": ["uvicorn", "{app}", "--port", "{port}", "--log-level", "warning"],
    "hypercorn": ["hypercorn", "{app}", "--bind", "127.0.0.1:{port}"],
    "granian": ["granian", "{app}", "--interface", "asgi", "--port", "{port}"],
}


@pytest.fixture(params=[(server, app) for server in SERVERS for app in ("bare", "fastapi", "starlette")], ids="-".join)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server, app = request.param
    (tmp_path / "served.py").write_text(MODULE)
    (port,) = find_free_ports(1)
    words = [word.format(app=f"served:{app}", port=port) for word in SERVERS[server]]
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=tmp_path)
    address = f"http://127.0.0.1:{port}/{'' if app == 'bare' else 'hooks/'}"
    try:
        wait_for(address, process)
        yield address
    finally:
        process.terminate()
        process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    def does_answer() -> bool:
        assert process.poll() is None
        with suppress(URLError):
            post(address, "agent:end", {})
            return True
        return False

    wait_until(does_answer)


def post(address: str, method: str, params: object) -> object:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urlopen(Request(address, body, {"content-type": "application/json"}), timeout=60) as response:
        assert response.status == 200
        return json.load(response)["result"]


async def test_each_server_serves_it_and_our_wire_reaches_it(url: str) -> None:
    assert post(url, "tool:before", {"args": {"a": 1}}) == {"args": {"a": 1, "seen": True}}
    remote = await Remote.open(RemoteSpec("there", url, is_local=True), time.time, lambda: "id")
    hooks = HookRegistry()
    hooks.on("tool:before", interceptor(remote), on_error="raise")
    event: Event = await hooks.run("tool:before", tool="shell", args={"a": 1})
    await remote.stop(1)
    assert event["args"] == {"a": 1, "seen": True}
