"""A gateway without the packages that came with it once: it answers, and names all that wants one of them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.daemon.test_hostile_peers import answering
from tests.environments import make_lean_environment

pytestmark = pytest.mark.process

FORMER = ("openai", "anthropic", "mcp")
ABSENT = (*FORMER, "mcp_types", "httpx2", "httpcore2", "pydantic", "pydantic_core", "jiter")
ANSWER = json.dumps({"choices": [{"message": {"content": "here"}, "finish_reason": "stop"}]}).encode()
OBSERVES = "events: [agent:end]\n"
HANDLES = "def handle(event_type, context):\n    {}\n"
HOOKS = {
    "at-once": "import openai.types\n" + HANDLES.format("pass"),
    "when-called": HANDLES.format("from anthropic import Anthropic"),
    "a-part-of-it": "from mcp.types import Tool\n" + HANDLES.format("pass"),
    "without-it-too": "try:\n    import openai\nexcept ImportError:\n    openai = None\n" + HANDLES.format("pass"),
    "in-words-alone": '"""Import openai, and mcp."""\n' + HANDLES.format("pass"),
}
WANTED = {"at-once": "openai", "when-called": "anthropic", "a-part-of-it": "mcp"}
LINE = "the package {package} is missing; run: hermes-gateway hooks deps {name} {package}"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with answering(ANSWER) as url, GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure(
            f"model: {{provider: openai, name: m, base_url: '{url}'}}\nmcp_servers: {{files: {{command: nothing}}}}\n"
        )
        for name, handler in HOOKS.items():
            gateway.add_hook(name, {"HOOK.yaml": OBSERVES, "handler.py": handler})
        yield gateway


def start_with(python: Path, gateway: GatewayProcess) -> None:
    pipe = subprocess.PIPE
    command = [str(python), "-m", "gateway.cli", "run"]
    gateway.process = subprocess.Popen(command, env=gateway.environ, stdout=pipe, stderr=pipe, text=True)
    gateway.until(gateway._is_ready)


def test_it_answers_and_what_wants_a_package_needs_attention(gateway: GatewayProcess, tmp_path: Path) -> None:
    python = make_lean_environment(tmp_path / "lean", ABSENT)
    start_with(python, gateway)
    attention = gateway.call("status")["attention"]
    for name, package in WANTED.items():
        assert f"hook {name} is missing: {LINE.format(name=name, package=package)}" in attention
    (server,) = (line for line in attention if "mcp_servers" in line)
    assert "mcp_servers.files needs a package" in server
    assert server.endswith((f"{python} mcp", f"{python} -m pip install mcp"))
    assert len(attention) == len(WANTED) + 1
    assert gateway.say("hello")["reply"] == "here"
    assert "mcp_servers.files needs a package" in gateway.stop()[2]
    checked = subprocess.run(
        [python, "-m", "gateway.cli", "doctor"], env=gateway.environ, capture_output=True, text=True
    )
    assert "mcp_servers.files needs a package" in checked.stdout
    assert checked.stdout.count("is missing; run:") == len(WANTED)


def test_where_they_are_nothing_is_missing_and_none_is_loaded_for_an_answer(gateway: GatewayProcess) -> None:
    configured = gateway.home.config.read_text("utf-8")
    gateway.configure(configured.partition("mcp_servers")[0])
    for name, package in WANTED.items():
        if find_spec(package) is None:
            shutil.rmtree(gateway.home.hooks / name)
    start_with(Path(sys.executable), gateway)
    assert gateway.say("hello")["reply"] == "here"
    assert gateway.call("status")["attention"] == []
    assert gateway.process
    mapped = Path(f"/proc/{gateway.process.pid}/maps").read_text("utf-8")
    assert "_ssl" in mapped
    assert "pydantic_core" not in mapped
