"""The files for three NATS servers and two gateways as they are shipped, by real processes; and TLS."""

import json
import re
import signal
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from gateway.cluster.nats.engine import open_nats
from gateway.testing import GatewayProcess
from gateway.testing.patience import wait_until
from tests.engine.nats_servers import NatsServer, find_leader, run_servers, wait_until_ready
from tests.http_server import find_free_ports
from tests.installer.servers import make_certificate

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

DOCS = Path(__file__).parents[2] / "docs"
CONF = (DOCS / "nats.conf").read_text("utf-8")
COMPOSE = yaml.safe_load((DOCS / "cluster.yaml").read_text("utf-8"))
SERVERS = ("one", "two", "three")
PASSWORD = "a-long-word"
NOTES: dict[str, Any] = {"path": "notes/barn.md", "content": "The barn is red."}
SCRIPT: tuple[dict[str, Any], ...] = (
    {"user": "note it", "answers": [{"tool_calls": [{"name": "write_file", "args": NOTES}]}, {"text": "Noted."}]},
    {
        "user": "read it",
        "answers": [{"tool_calls": [{"name": "read_file", "args": {"path": NOTES["path"]}}]}, {"text": "So."}],
    },
    *({"user": "", "text": "I heard you."},) * 40,
)


def fill_in(environ: Mapping[str, str]) -> dict[str, str]:
    """As compose does it, from its `.env`."""
    return {
        name: re.sub(r"\$\{NATS_(?:ROUTE_)?PASSWORD(?::\?[^}]*)?\}", PASSWORD, value) for name, value in environ.items()
    }


class Cluster:
    """The services of compose, on loopback: ports replace hosts."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        ports = find_free_ports(9)
        self.client, self.monitor, self.route = (dict(zip(SERVERS, ports[n::3], strict=True)) for n in range(3))
        self.servers = {name: self.make_server(folder, name) for name in SERVERS}
        for server in self.servers.values():
            stack.callback(server.kill)
            server.start()
        wait_until_ready(list(self.servers.values()))
        self.gateways = {name: stack.enter_context(self.make_gateway(folder, name)) for name in ("first", "second")}

    def make_server(self, folder: Path, name: str) -> NatsServer:
        service = COMPOSE["services"][name]
        server = NatsServer(folder, name, (self.client[name], self.monitor[name], self.route[name]))
        text = CONF.replace("0.0.0.0:4222", f"127.0.0.1:{self.client[name]}")
        text = text.replace("0.0.0.0:8222", f"127.0.0.1:{self.monitor[name]}").replace(
            '"/data"', f'"{server.folder}/data"'
        )
        text = text.replace("0.0.0.0:6222", f"127.0.0.1:{self.route[name]}")
        (server.folder / "nats.conf").write_text(text)
        assert service["command"] == ["--config", "/etc/nats/nats.conf"]
        assert service["volumes"] == ["./nats.conf:/etc/nats/nats.conf:ro", f"{name}:/data"]
        server.environ = fill_in(service["environment"])
        for host, port in self.route.items():
            server.environ["NATS_ROUTES"] = server.environ["NATS_ROUTES"].replace(f"{host}:6222", f"127.0.0.1:{port}")
        return server

    def make_gateway(self, folder: Path, name: str) -> GatewayProcess:
        gateway = GatewayProcess(folder / name / "home")
        environ = fill_in(COMPOSE["services"][name]["environment"])
        for host, port in self.client.items():
            environ["GATEWAY_ENGINE"] = environ["GATEWAY_ENGINE"].replace(f"{host}:4222", f"127.0.0.1:{port}")
        environ["NATS_MONITOR"] = ",".join(f"http://127.0.0.1:{port}" for port in self.monitor.values())
        gateway.environ |= environ
        gateway.script(*SCRIPT)
        return gateway

    async def find_leader(self) -> str:
        """The server through which all records go."""
        url = self.gateways["first"].environ["GATEWAY_ENGINE"]
        async with await open_nats(url, "gateway", PASSWORD) as engine:
            return (await find_leader(engine))[1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def test_a_server_without_the_login_of_the_routes_joins_nothing(cluster: Cluster, tmp_path: Path) -> None:
    route = cluster.route["one"]
    stranger = NatsServer(tmp_path, "stranger", find_free_ports(3), [route])
    conf = stranger.folder / "nats.conf"
    conf.write_text(conf.read_text().replace(f"test-{route}", "hermes-gateway"))
    stranger.start()
    try:
        log = cluster.servers["one"].folder / "log"
        wait_until(lambda: "authentication error" in log.read_text(), what="that the route is refused")
    finally:
        stranger.kill()


def test_what_is_shipped_serves_while_a_server_and_then_a_gateway_is_lost(cluster: Cluster) -> None:
    first, second = cluster.gateways.values()
    first.start()
    second.start()
    assert first.say("good morning")["reply"] == "I heard you."
    wait_for_doctor(first, "journal: fine")
    assert first.say("note it")["reply"] == "Noted."
    leader = anyio.run(cluster.find_leader)
    cluster.servers[leader].kill()
    assert first.say("still there?")["reply"] == "I heard you."
    wait_for_doctor(first, f"the server {leader} is")
    cluster.servers[leader].start()
    assert first.process
    first.process.send_signal(signal.SIGKILL)
    assert second.say("who is there?")["reply"] == "I heard you."
    assert second.say("read it")["reply"] == "So.", "what the agent wrote there"
    session = second.call("sessions.list")["sessions"][0]["session_id"]
    entries = second.call("sessions.show", {"session": session})["entries"]
    said = [one["content"] for one in entries if one["role"] == "user"]
    assert said == ["good morning", "note it", "still there?", "who is there?", "read it"]
    assert NOTES["content"] in [one["content"] for one in entries if one["role"] == "tool"]
    one, two, three = cluster.servers.values()
    one.kill()
    two.kill()
    second.until(lambda: "more than half" in second.call("status")["intake"], 60)
    before, begun = count_refusals(three), time.monotonic()
    second.until(lambda: "intake stopped: the NATS servers take nothing" in shown(second, "status"))
    a_second = (count_refusals(three) - before) / (time.monotonic() - begun)
    assert a_second < 100, "it is asked now and then, not without end"
    one.start()
    two.start()
    assert second.say("is all well again?")["reply"] == "I heard you."
    for server in cluster.servers.values():
        server.kill()
        server.environ = {**server.environ, "NATS_PASSWORD": "another"}
        server.start()
    second.until(lambda: "as NATS_USER and NATS_PASSWORD" in second.call("status")["intake"], 60)
    wait_for_doctor(second, "as NATS_USER and NATS_PASSWORD")


def wait_for_doctor(gateway: GatewayProcess, words: str) -> None:
    """Wait until doctor says so: it may first report a server that is slow to answer."""
    gateway.until(lambda: words in shown(gateway, "doctor"))


def shown(gateway: GatewayProcess, command: str) -> str:
    """Return its output in one line."""
    return " ".join(gateway.cli(command).stdout.split())


def count_refusals(server: NatsServer) -> int:
    """Count its refusals of requests to JetStream."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.monitor}/jsz", timeout=20) as answer:
        return int(json.load(answer)["api"]["errors"])


def test_compose_starts_what_there_is(tmp_path: Path) -> None:
    services: dict[str, Any] = COMPOSE["services"]
    assert [*services] == [*SERVERS, "first", "second"]
    named = {volume.partition(":")[0] for one in services.values() for volume in one["volumes"]} - {"./nats"}
    assert {name for name in named if "/" not in name} == set(COMPOSE["volumes"])
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one.get("ports", ()))
    (network,) = COMPOSE["networks"]["own"]["ipam"]["config"]
    for name in ("first", "second"):
        environ = services[name]["environment"]
        assert environ["GATEWAY_WEB_TRUSTED_PROXIES"] == network["gateway"]
        assert environ["GATEWAY_WEB_URL"].rpartition(":")[2] == services[name]["ports"][0].split(":")[1]
        assert re.findall(r"(\w+):4222", environ["GATEWAY_ENGINE"]) == [*SERVERS]


def test_tls_is_asked_for_and_a_server_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "server.pem")
    with run_servers(tmp_path / "nats", 1) as (server,), GatewayProcess(tmp_path / "home") as gateway:
        server.kill()
        conf = server.folder / "nats.conf"
        conf.write_text(f'{conf.read_text()}tls {{\n  cert_file: "{certificate}"\n  key_file: "{certificate}"\n}}\n')
        server.start()
        gateway.script(*SCRIPT, settings=f"engine: {server.url.replace('nats:', 'tls:')}\n")
        wait_for_doctor(gateway, "one that SSL_CERT_FILE names")
        gateway.environ["SSL_CERT_FILE"] = str(certificate)
        gateway.start()
        assert gateway.say("hello")["reply"] == "I heard you."
