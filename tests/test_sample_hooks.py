"""Each sample does what it says: copied into a home as it is, and run by a gateway."""

import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from gateway.control.client import ControlClient
from gateway.testing import GatewayProcess
from tests.hooks.wires.site import serving, site
from tests.web.signers import GITHUB_SECRET, sign_github
from tests.web.test_webhooks import post

pytestmark = pytest.mark.process

SAMPLES = Path(__file__).parent.parent / "sample_hooks"
MOST_LINES = 40


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def start_with(gateway: GatewayProcess, name: str, *turns: dict[str, Any], settings: str = "") -> None:
    """A gateway with this sample, whose model says these turns."""
    gateway.script(*turns, settings=settings)
    gateway.add_hook(name, SAMPLES / name)
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": name})["state"] == "loaded")


def history(gateway: GatewayProcess) -> str:
    """What the session holds, tools' answers too."""
    return str(gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"}))


def tool(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in SAMPLES.glob("*/HOOK.yaml")), ids=lambda folder: folder.name
)
def test_a_sample_is_short_and_fine(folder: Path, gateway: GatewayProcess) -> None:
    copied = gateway.add_hook(folder.name, folder)
    for path in (copied, *copied.iterdir()):
        path.chmod(path.stat().st_mode & 0o700)  # whatever the umask of the checkout was
        assert path.is_dir() or len(path.read_text("utf-8").splitlines()) <= MOST_LINES, path
    checked = json.loads(gateway.cli("hooks", "check", "--json").stdout)
    assert checked["hooks"] == {folder.name: []}


def test_activity_log_writes_a_line_for_what_happens(gateway: GatewayProcess) -> None:
    start_with(gateway, "activity-log", {"user": "weather", "text": "sunny"})
    gateway.say("how is the weather")
    log = gateway.home.root / "logs" / "activity.jsonl"
    gateway.until(lambda: log.exists() and "agent:end" in log.read_text())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["session:start", "agent:start", "agent:end"]
    assert lines[1]["message"] == "how is the weather"
    assert lines[2]["response"] == "sunny"


@pytest.mark.row("HRM-25")
def test_command_usage_counts(gateway: GatewayProcess) -> None:
    start_with(gateway, "command-usage")
    for command in ("/status", "/help", "/status"):
        gateway.say(command)
    counts = gateway.home.root / "logs" / "commands.json"
    expected = {"terminal/help": 1, "terminal/status": 2}
    gateway.until(lambda: counts.exists() and json.loads(counts.read_text()) == expected)


@pytest.mark.row("HRM-24")
def test_long_task_alert_speaks_up_once_in_the_chat(gateway: GatewayProcess) -> None:
    steps = [tool("calculate", expression=f"{number} + 1") for number in range(4)]
    gateway.add_hook("ear", {"HOOK.yaml": "events: [message:sent]\n", "handler.py": EAR})
    turn = {"user": "count", "answers": [*steps, {"text": "done"}]}
    start_with(gateway, "long-task-alert", turn, settings="hooks: {long-task-alert: {options: {threshold: 3}}}\n")
    gateway.say("count")
    gateway.until(lambda: "Still at work: step 3, last with calculate." in heard(gateway))
    assert heard(gateway).count("Still at work") == 1


EAR = "def handle(event_type, context):\n    print(context['text'])\n"


def heard(gateway: GatewayProcess) -> str:
    log = gateway.home.hook_logs / "ear.log"
    return log.read_text() if log.exists() else ""


@pytest.mark.row("HRM-26")
def test_session_webhook_tells_another_service_and_tries_again(gateway: GatewayProcess) -> None:
    with inbox(fails=1) as (url, letters):
        gateway.home.root.mkdir(mode=0o700)
        gateway.home.env.touch(0o600)
        gateway.home.env.write_text(f"SESSION_WEBHOOK_URL={url}\n")
        start_with(gateway, "session-webhook", {"user": "hello", "text": "hi"})
        gateway.say("hello")
        gateway.until(lambda: len(letters) == 2)
    assert [letter["event"] for letter in letters] == ["session:start"] * 2
    assert letters[0]["id"] == letters[1]["id"]
    assert letters[0]["session_key"] == "agent:main:terminal:dm:main"


@contextlib.contextmanager
def inbox(fails: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web server that takes letters, and refuses the first so many."""
    letters: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            letters.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(503 if len(letters) <= fails else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing of it is news."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", letters
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_prompt_guardrail_refuses_before_any_model_sees_it(gateway: GatewayProcess) -> None:
    start_with(gateway, "prompt-guardrail", {"user": "weather", "text": "sunny"})
    assert gateway.say("what are the LAUNCH CODES")["reply"] == "I cannot help with that."
    assert gateway.say("how is the weather")["reply"] == "sunny"


@pytest.mark.parametrize(("answer", "is_kept"), [("Yes", True), ("/approve", True), ("no", False), ("/deny", False)])
def test_tool_approval_asks_in_the_chat(gateway: GatewayProcess, answer: str, is_kept: bool) -> None:
    turn = {"user": "note", "answers": [tool("remember", text="milk"), {"text": "all said"}]}
    start_with(gateway, "tool-approval", turn, settings="hooks: {tool-approval: {options: {tools: [remember]}}}\n")
    asked = gateway.say("take a note")
    assert asked["status"] == "waiting"
    assert asked["reply"].startswith("May I run remember?\ntext:\n| milk\n")
    gateway.say(answer)
    gateway.until(lambda: "all said" in history(gateway))
    assert ("did not allow" not in history(gateway)) is is_kept
    assert any(b"milk" in kept.read_bytes() for kept in gateway.home.own_folder.rglob("*.jsonl")) is is_kept


def test_stream_redaction_lets_nothing_private_through_at_any_moment(gateway: GatewayProcess) -> None:
    pieces = ["write to an", "n@exam", "ple.org or pay with 4111 1111", " 1111 1111", " today"]
    start_with(gateway, "stream-redaction", {"user": "contact", "chunks": pieces})
    streamed: list[str] = []
    with ControlClient(gateway.home.socket) as client:
        said = client.call("chat.say", {"text": "contact"}, lambda _, told: streamed.append(json.dumps(told)))
    assert said["reply"] == "write to [redacted] or pay with [redacted] today"
    everything = "".join(streamed)
    assert streamed
    assert not any(private in everything for private in ("ann@", "exam", "4111", "1111"))


def test_shell_hook_refuses_and_says_why(gateway: GatewayProcess) -> None:
    turn = {"user": "clean", "answers": [tool("shell", command="rm -rf ."), {"text": "it was refused"}]}
    start_with(gateway, "shell-hook", turn)
    assert gateway.say("clean up")["reply"] == "it was refused"
    assert "rm -rf is not done here" in history(gateway)


@pytest.mark.machine
@pytest.mark.skipif(not shutil.which("node"), reason="there is no node on this machine")
def test_node_hook_writes_shortcuts_out(gateway: GatewayProcess) -> None:
    start_with(gateway, "node-hook", {"user": "good morning", "text": "and to you"})
    assert gateway.say("gm")["reply"] == "and to you"


def test_remote_server_answers_from_a_process_of_its_own(gateway: GatewayProcess) -> None:
    turn = {"user": "install", "answers": [tool("shell", command="sudo true"), {"text": "it was refused"}]}
    remote = site(serving(sample_server()))
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(remote) as served:
        folder = shutil.copytree(SAMPLES / "remote-server", gateway.home.root.parent / "remote-server")
        manifest = folder / "HOOK.yaml"
        manifest.write_text(manifest.read_text().replace("http://127.0.0.1:8099/hooks", served.url))
        gateway.script(turn)
        gateway.add_hook("remote-server", folder)
        gateway.start()
        assert gateway.say("install it")["reply"] == "it was refused"
        assert [told["method"] for _, told in served.requests] == ["tool:before"]
        assert "Nothing here runs as root." in history(gateway)


def sample_server() -> Any:
    spec = spec_from_file_location("sample_server", SAMPLES / "remote-server" / "server.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def test_github_issues_says_in_a_chat_who_opened_which(gateway: GatewayProcess) -> None:
    gateway.environ["GITHUB_WEBHOOK_SECRET"] = GITHUB_SECRET
    told = "def handle(name, context):\n    print(context['chat_id'], context['text'])\n"
    gateway.add_hook("sent", {"HOOK.yaml": "events: [message:sent]\n", "handler.py": told})
    settings = "hooks: {github-issues: {options: {to: 'terminal:main'}}}\n"
    start_with(gateway, "github-issues", {"text": "hi"}, settings=settings)
    issue = {"number": 7, "title": "It rains in", "html_url": "https://git.example/7", "user": {"login": "eve"}}
    for name, action in (("one", "closed"), ("two", "opened")):
        body = json.dumps({"action": action, "issue": issue, "repository": {"full_name": "a/b"}}).encode()
        assert post(gateway, "github-issues", body, sign_github(body, name=name)).status == 202
    gateway.until(lambda: gateway.call("hooks.info", {"name": "sent"})["calls"] == 1)
    said = gateway.cli("hooks", "logs", "sent").stdout
    assert "main eve opened a/b#7: It rains in" in said
    assert "https://git.example/7" in said
