"""Outbound webhooks of Hermes's own config.yaml: signed, journalled, and sent again until they are taken."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import wants

pytestmark = pytest.mark.process

SECRET = "sesame"


class Receiver:
    """A server that refuses the first deliveries, and keeps all."""

    def __init__(self, refused: int) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.refused = refused
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Nothing."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(503 if len(receiver.got) <= receiver.refused else 204)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hooks"

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(refused=1)
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def gateway(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(wants("six", "calculate", expression="6*7"), wants("clock", "time"))
        webhook = {
            "url": receiver.url,
            "events": ["post_tool_call", "kanban_task_claimed"],
            "secret_env": "HOOK_SECRET",
        }
        only = {"url": f"{receiver.url}/only", "events": ["post_tool_call"], "matcher": "time"}
        unset = {"url": f"{receiver.url}/unset", "events": ["on_session_end"], "secret_env": "NOT_SET"}
        gateway.home.root.mkdir(exist_ok=True)
        gateway.home.hermes_config.write_text(json.dumps({"hooks": {"outbound": [webhook, only, unset]}}))
        gateway.home.env.write_text(f"HOOK_SECRET={SECRET}\n")
        gateway.home.env.chmod(0o600)
        gateway.start()
        yield gateway


def webhooks(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return [one for one in gateway.call("hooks.list")["hooks"] if one["name"].startswith("webhook-")]


def test_a_delivery_is_signed_made_again_until_it_is_taken_and_the_same_each_time(
    gateway: GatewayProcess, receiver: Receiver
) -> None:
    gateway.until(lambda: [one["state"] for one in webhooks(gateway)] == ["loaded", "loaded", "missing"])
    gateway.say("six")
    gateway.until(lambda: len(receiver.got) == 2)
    (headers, body), again = receiver.got
    told = json.loads(body)
    assert again[1] == body
    assert headers["x-hermes-signature-256"] == "sha256=" + hmac.digest(SECRET.encode(), body, hashlib.sha256).hex()
    assert (told["event"], told["tool_name"], told["tool_input"]) == (
        "post_tool_call",
        "calculate",
        {"expression": "6*7"},
    )
    assert told["delivery_id"]
    assert told["timestamp"] > 1_600_000_000
    assert told["extra"]["status"] == "ok"


def test_a_matcher_chooses_tools_and_an_unsigned_webhook_has_no_header(
    gateway: GatewayProcess, receiver: Receiver
) -> None:
    receiver.refused = 0
    gateway.say("six")
    gateway.say("clock")
    gateway.until(lambda: len(receiver.got) == 3)
    plain = [one for headers, one in receiver.got if "x-hermes-signature-256" not in headers]
    assert [json.loads(body)["tool_name"] for body in plain] == ["time"]


def test_what_is_owed_survives_a_crash(gateway: GatewayProcess, receiver: Receiver) -> None:
    receiver.refused = 1000
    gateway.say("six")
    gateway.until(lambda: bool(receiver.got))
    gateway.kill()
    receiver.refused = 0
    before = len(receiver.got)
    gateway.start()
    gateway.until(lambda: len(receiver.got) > before)
    assert receiver.bodies()[-1]["delivery_id"] == receiver.bodies()[0]["delivery_id"]


def test_what_cannot_be_sent_says_why(gateway: GatewayProcess) -> None:
    gateway.until(lambda: [one["state"] for one in webhooks(gateway)] == ["loaded", "loaded", "missing"])
    first, _, unset = webhooks(gateway)
    assert "NOT_SET is not set" in unset["reason"]
    assert "kanban_task_claimed never fires here" in first["findings"][0]
