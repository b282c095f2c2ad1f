"""Calls of webhooks, against the senders' notes: however the daemon is killed, each arrives once and none is lost.

Senders do as senders do: what was not answered with 2xx they send again.
"""

import http.client
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.testing.gateway_process import GatewayProcess
from tests.chaos.test_owed_events import delivered, read_lines
from tests.http_server import find_free_ports
from tests.web.signers import GITHUB_SECRET, sign_github

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

CALLS, SENDERS, KILLS = 200, 8, 8
CONFIG = """
webhooks:
  pushes: {secret_env: PUSHES_SECRET, verify: github, rate: 100000, template: "Number {number}."}
"""
NOTE = """
import json, os

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def handle(name, context):
    told = [name, context.get("delivery_id"), context.get("message_full"), context["delivery"]["key"]]
    os.write(FILE, json.dumps(told).encode() + b"\\n")
"""


def call_once(port: int, number: int) -> dict[str, Any] | None:
    """None: it has to be sent again."""
    body = json.dumps({"number": number}).encode()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        line.request("POST", "/webhooks/pushes", body, sign_github(body, name=f"call-{number}"))
        answer = line.getresponse()
        found: dict[str, Any] = json.loads(answer.read()) if answer.status == 202 else {}
    except (OSError, http.client.HTTPException):
        return None
    finally:
        line.close()
    return found or None


def send(port: int, numbers: range, known: list[bool]) -> None:
    """In a thread; what is not taken is sent again after a moment."""
    for number in numbers:
        while not (answer := call_once(port, number)):
            time.sleep(0.05)
        known.append(answer["known"])


def keep_killing(gateway: GatewayProcess, known: list[bool]) -> None:
    """In a thread; each time when some more calls were answered, and more are under way."""
    for number in range(KILLS):
        gateway.until(lambda at=number: len(known) > (at + 0.5) * CALLS / KILLS)  # type: ignore[misc]
        gateway.kill()
        gateway.start()


@pytest.mark.row("T13")
async def test_each_call_is_told_once_and_answered_once_however_often_it_is_killed(tmp_path: Path) -> None:
    (port,), known = find_free_ports(1), list[bool]()
    with GatewayProcess(tmp_path / "home", forks=False) as gateway:
        gateway.environ |= {"GATEWAY_WEB_LISTEN": f"127.0.0.1:{port}", "PUSHES_SECRET": GITHUB_SECRET}
        gateway.script({"user": "", "text": "I see."}, settings=CONFIG)
        file = tmp_path / "told"
        gateway.add_hook(
            "notes",
            {
                "HOOK.yaml": "events: ['webhook:*', agent:end]\ndelivery: durable\n",
                "handler.py": NOTE.format(file=str(file)),
            },
        )
        await anyio.to_thread.run_sync(gateway.start)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, keep_killing, gateway, known)
            for sender in range(SENDERS):
                tasks.start_soon(anyio.to_thread.run_sync, send, port, range(sender, CALLS, SENDERS), known)
        assert len(known) == CALLS
        for number in range(0, CALLS, 10):  # once more, after all of it
            again = await anyio.to_thread.run_sync(call_once, port, number)
            assert again == {"id": f"call-{number}", "known": True}
        await anyio.to_thread.run_sync(gateway.until, lambda: has_all(file, "agent:end"), 90.0)
        await delivered(gateway, "notes")
    told = [json.loads(line) for line in read_lines(file)]
    keys = {(name, call, said): set[str]() for name, call, said, _ in told}
    for name, call, said, key in told:
        keys[name, call, said].add(key)
    assert {call for name, call, _ in keys if name.startswith("webhook:")} == {f"call-{at}" for at in range(CALLS)}
    assert all(len(found) == 1 for (name, _, _), found in keys.items() if name != "agent:end"), "two events of one call"
    said = Counter(text for name, _, text in keys if name == "agent:end")
    assert len(said) == CALLS


def has_all(file: Path, event: str) -> bool:
    told = [json.loads(line) for line in read_lines(file)]
    return len({said for name, _, said, _ in told if name == event}) == CALLS
