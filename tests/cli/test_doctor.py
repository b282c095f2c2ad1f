"""`hermes-gateway doctor`: each thing that can be wrong is found, with its place and what helps."""

import fcntl
import json
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from anyio import to_thread

from gateway.cli.doctor import CHECKS
from gateway.testing import GatewayProcess
from gateway.testing.patience import LONGEST
from tests.agent.models.proxies import proxying
from tests.http_server import QuietHandler, serving

pytestmark = pytest.mark.process


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def examined(gateway: GatewayProcess, **environ: str) -> tuple[int, dict[str, Any]]:
    gateway.environ |= environ
    done = gateway.cli("doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def fault(gateway: GatewayProcess, check: str, **environ: str) -> dict[str, str]:
    """The one thing that is wrong, and nothing else is."""
    code, found = examined(gateway, **environ)
    assert (code, found["ok"]) == (1, False)
    assert [name for name, findings in found["checks"].items() if findings] == [check], found
    (finding,) = found["checks"][check]
    assert finding["place"]
    assert finding["remedy"]
    return dict(finding)


def test_a_fresh_machine_and_a_running_gateway_are_fine(gateway: GatewayProcess) -> None:
    code, found = examined(gateway)
    assert (code, found["ok"], found["running"]) == (0, True, False)
    assert list(found["checks"]) == list(CHECKS)
    gateway.start()
    gateway.say("hello")
    code, found = examined(gateway)
    assert (code, found["ok"], found["running"]) == (0, True, True), found
    assert "journal: fine" in gateway.cli("doctor").stdout


def test_who_else_could_change_the_home(gateway: GatewayProcess) -> None:
    gateway.configure("{}\n")
    gateway.home.config.chmod(0o666)
    found = fault(gateway, "home")
    assert found["place"] == str(gateway.home.config)
    assert found["remedy"] == f"run: chmod o-w {gateway.home.config}"


def test_a_wrong_configuration_is_told_with_file_line_and_column(gateway: GatewayProcess) -> None:
    gateway.configure("sessions:\n  turns: many\n")
    assert fault(gateway, "configuration")["place"] == f"{gateway.home.config}:2:10"
    shown = gateway.cli("doctor").stdout
    for what in ("models", "platforms", "journal"):
        assert f"{what}: not looked at" in shown


def test_a_damaged_journal_and_one_that_was_set_aside(gateway: GatewayProcess) -> None:
    gateway.script({"user": "hello", "answers": [{"text": "x" * 9000}]})
    gateway.start()
    for number in range(5):
        gateway.say(f"hello {number}", f"s{number}")
    gateway.stop()
    data = bytearray(gateway.home.journal.read_bytes())
    data[8192:40000] = b"\xff" * (40000 - 8192)
    gateway.home.journal.write_bytes(data)
    found = fault(gateway, "journal")
    assert (found["place"], "damaged" in found["what"]) == (str(gateway.home.journal), True)
    gateway.start()
    code, told = examined(gateway)
    assert code == 1
    assert "set aside" in told["checks"]["journal"][0]["what"]


def test_a_gateway_that_holds_the_home_and_does_not_answer(gateway: GatewayProcess) -> None:
    gateway.configure("{}\n")
    with gateway.home.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("pid 4711 since yesterday\n")
        lock.flush()
        assert "pid 4711 since yesterday holds this home" in fault(gateway, "process")["what"]
    assert examined(gateway)[0] == 0


def test_a_network_that_is_wanted_and_has_no_token(gateway: GatewayProcess) -> None:
    gateway.configure("platforms:\n  telegram:\n    enabled: true\n")
    assert "TELEGRAM_BOT_TOKEN is not set" in fault(gateway, "configuration")["what"]


def test_a_network_that_does_not_answer_yet(gateway: GatewayProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = f"http://127.0.0.1:{silent.getsockname()[1]}/bot"
        gateway.environ |= {"TELEGRAM_BOT_TOKEN": "1:secret", "TELEGRAM_BASE_URL": api}
        gateway.start()
        assert not fault(gateway, "platforms")["what"].endswith(": "), "it says why"


def test_hooks_that_do_not_run_with_and_without_a_gateway(gateway: GatewayProcess) -> None:
    gateway.configure("{}\n")
    gateway.add_hook("broken", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(:\n"})
    _, found = examined(gateway)
    assert "handler.py" in str(found["checks"]["hooks"])
    gateway.start()
    gateway.until(lambda: bool(examined(gateway)[1]["checks"]["hooks"]))
    finding = examined(gateway)[1]["checks"]["hooks"][0]
    assert "hook broken is" in finding["what"]
    assert finding["remedy"] == "see: hermes-gateway hooks info broken"


def test_a_hook_that_lacks_something_here(gateway: GatewayProcess) -> None:
    gateway.configure("{}\n")
    manifest = "events: [agent:end]\nrequires: {bins: [no-such-program]}\n"
    gateway.add_hook("needy", {"HOOK.yaml": manifest, "handler.py": "def handle(name, context): ...\n"})
    assert "no-such-program" in fault(gateway, "hooks")["what"]


class Endpoint(QuietHandler):
    """An endpoint with one key and three models, two of which answer; the third gives an error."""

    calls: ClassVar[Counter[str]] = Counter()
    meeting = threading.Barrier(2, timeout=LONGEST)

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        if self._is_known():
            self.answer(b'{"data": [{"id": "one"}, {"id": "other"}, {"id": "dear"}]}')

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
        name = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
        self.calls[name] += 1
        if not self._is_known():
            return
        if name in ("one", "other"):
            self.meeting.wait()
            self.answer(b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}')
        else:
            self.send_response(402 if name == "dear" else 404)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "no credit with the key right-key"}}')

    def _is_known(self) -> bool:
        is_known = self.headers.get("Authorization") == "Bearer right-key"
        if not is_known:
            self.send_error(401)
        return is_known


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.calls.clear()
    with serving(Endpoint) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


def test_a_model_answers_when_it_has_answered_and_each_is_asked_once(gateway: GatewayProcess, endpoint: str) -> None:
    gateway.environ["OPENAI_API_KEY"] = "right-key"

    def model(name: str) -> str:
        return f"{{provider: openai, name: {name}, base_url: '{endpoint}'}}"

    gateway.configure(
        f"model: {model('one')}\nmodels: {{a: {model('other')}, b: {model('one')}, c: {model('dear')}}}\n"
    )
    said = fault(gateway, "models")["what"]
    assert said == f"models.c: {endpoint} does not answer now (HTTP 402: no credit with the key [secret])"
    assert Endpoint.calls == {"one": 1, "other": 1, "dear": 1}
    done = gateway.cli("doctor", "--offline")
    assert (done.returncode, "models: not asked (--offline)" in done.stdout) == (0, True), done.stdout
    assert Endpoint.calls.total() == 3


def test_models_that_cannot_be_reached_refuse_the_key_or_are_not_there(gateway: GatewayProcess, endpoint: str) -> None:
    def model(name: str, url: str) -> None:
        gateway.configure(f"model: {{provider: openai, name: {name}, base_url: '{url}'}}\n")

    model("large", endpoint)
    found = fault(gateway, "models", OPENAI_API_KEY="right-key")
    assert ("has no model 'large'" in found["what"], found["remedy"]) == (True, "there is: dear, one, other")
    assert "refuses the key (HTTP 401: a web page)" in fault(gateway, "models", OPENAI_API_KEY="wrong")["what"]
    model("one", "http://127.0.0.1:1/v1")
    assert "could not be reached" in fault(gateway, "models")["what"]


async def test_a_model_is_asked_by_the_way_of_the_gateways_calls(gateway: GatewayProcess, endpoint: str) -> None:
    gateway.configure(f"model: {{provider: openai, name: dear, base_url: '{endpoint}'}}\n")
    async with proxying("socks") as proxy:
        way = {"OPENAI_API_KEY": "right-key", "ALL_PROXY": f"socks5h://{proxy.place}"}
        said = await to_thread.run_sync(partial(fault, gateway, "models", **way))
    assert "HTTP 402" in said["what"]
    assert {*proxy.asked} == {endpoint.removeprefix("http://").removesuffix("/v1")}


def test_a_script_that_is_not_there(gateway: GatewayProcess) -> None:
    gateway.configure("model: {script: nowhere.yaml}\n")
    assert "nowhere.yaml" in fault(gateway, "models")["what"]


@pytest.mark.machine
def test_a_disk_without_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root can mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        with GatewayProcess(disk / "home") as gateway:
            gateway.configure("{}\n")
            assert "MB are free" in fault(gateway, "room")["what"]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
