"""`AIAgent` inside a hook or a plugin: its events come to an end, and go to the hooks that Hermes would notify."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.hooks.cause import MAX_DEPTH
from gateway.testing import GatewayProcess
from gateway.testing.patience import Patience
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

AGENTS = Path(__file__).parent / "homes" / "agents"
SIDE = Path(__file__).with_name("hermes_gateway_side.py")
SCRIPT = (
    {"user": "second opinion", "answers": [{"text": "y" * 1200}]},
    {"user": "think again", "answers": [{"text": "again"}]},
    {"user": "hello", "answers": [{"text": "y" * 1200}]},
    {"user": "in a", "answers": [{"text": "well"}]},
)


def furnish(home: Path, hooks: tuple[str, ...], plugins: tuple[str, ...]) -> None:
    for kind, names in (("hooks", hooks), ("plugins", plugins)):
        for name in names:
            shutil.copytree(AGENTS / kind / name, home / kind / name)
    (home / "config.yaml").write_text(json.dumps({"plugins": {"enabled": list(plugins)}}))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        yield gateway


def start(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.until(lambda: all(one["state"] == "loaded" for one in guests(gateway)))


def guests(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return [one for one in gateway.call("hooks.list")["hooks"] if one["origin"] != "built-in"]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for_end(gateway: GatewayProcess, file: Path, word: str, count: int) -> list[str]:
    """The lines with this word: when there are so many of them, and nothing has run for a second, there are no more."""

    def find() -> list[str]:
        return [line for line in file.read_text().splitlines() if word in line] if file.exists() else []

    gateway.until(lambda: len(find()) >= count, 60)
    wait_quiet(gateway)
    return find()


def wait_quiet(gateway: GatewayProcess) -> None:
    """Until nothing has run for a second."""
    limit, quiet = Patience(), Patience(1.0)
    while not quiet.is_over():
        assert not limit.is_over(), "the turns do not come to an end"
        status = gateway.call("status")
        if status["turns"]["running"] or status["backlog"]["sessions"]:
            quiet = Patience(1.0)
        time.sleep(0.02)


@pytest.mark.machine
def test_hooks_and_plugins_see_of_it_what_they_see_under_hermes(
    hermes: Path, gateway: GatewayProcess, tmp_path: Path
) -> None:
    home = tmp_path / "theirs"
    furnish(home, ("second-opinion", "thread-diary"), ("turn-counter",))
    (home / "logs").mkdir()
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    done = run([str(hermes), str(SIDE), "hello"], env=environ, cwd=home)
    theirs = lines(home / "second-opinion.jsonl")
    assert [what[0] for what in theirs] == ["event", "event", "opinion"], done.stderr[-3000:]

    ours_home = gateway.home.root
    furnish(ours_home, ("second-opinion", "thread-diary"), ("turn-counter",))
    start(gateway)
    gateway.say("hello")
    gateway.until(lambda: len(lines(ours_home / "second-opinion.jsonl")) == 3)
    wait_quiet(gateway)
    assert lines(ours_home / "second-opinion.jsonl") == theirs
    assert (ours_home / "diary.txt").read_text() == (home / "diary.txt").read_text()
    assert sorted(lines(ours_home / "turns.jsonl")) == sorted(lines(home / "turns.jsonl"))


def test_what_looks_like_a_command_is_said_to_the_model(gateway: GatewayProcess) -> None:
    handler = "from run_agent import AIAgent\n\ndef handle(*_):\n    print(AIAgent().chat('/new hello'), flush=True)\n"
    manifest = {"HOOK.yaml": "events: [gateway:startup]\n", "handler.py": handler}
    gateway.add_hook("slashes", manifest)
    start(gateway)
    log = gateway.home.hook_logs / "slashes.log"
    gateway.until(lambda: log.exists() and "yyy" in log.read_text())


@pytest.mark.parametrize("first", ["in a thread", "in a pool"])
def test_a_plugin_that_thinks_again_after_every_turn_comes_to_an_end(gateway: GatewayProcess, first: str) -> None:
    furnish(gateway.home.root, (), ("afterthought",))
    start(gateway)
    file, most = gateway.home.root / "thoughts.txt", MAX_DEPTH + 1
    gateway.say(first)
    thoughts = wait_for_end(gateway, file, "", most)
    assert thoughts[0] == first
    assert len(thoughts) == most
    gateway.say(first)  # whatever a person says begins anew
    assert len(wait_for_end(gateway, file, "", 2 * most)) == 2 * most


@pytest.mark.parametrize(
    "manifest",
    [
        "events: [agent:end]\n",
        "events: [agent:end]\ndelivery: durable\n",
        "events: [message:sent]\n",
        "intercepts: [agent:end]\n",
    ],
)
def test_so_does_a_hook_of_ours(gateway: GatewayProcess, manifest: str) -> None:
    handler = """async def handle(event_type, context):
    print("asked", context["cause"])
    await context.gateway.submit("think again")
"""
    gateway.add_hook("again", {"HOOK.yaml": f"{manifest}uses: [submit]\n", "handler.py": handler})
    start(gateway)
    gateway.say("hello")
    assert len(wait_for_end(gateway, gateway.home.hook_logs / "again.log", "asked", MAX_DEPTH + 1)) == MAX_DEPTH + 1


def test_so_does_a_program_which_does_not_say_for_which_event_it_asks(gateway: GatewayProcess) -> None:
    program = """#!/usr/bin/env python3
import json, sys

def tell(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "agent:end":
        print("asked", file=sys.stderr, flush=True)
        tell(id=f"mine-{message['id']}", method="gateway.submit", params={"text": "think again"})
        sys.stdin.readline()
    if "method" in message and "id" in message:
        tell(id=message["id"], result=None)
"""
    manifest = "events: [agent:end]\nuses: [submit]\ncommand: ./again.py\n"
    (gateway.add_hook("again", {"HOOK.yaml": manifest, "again.py": program}) / "again.py").chmod(0o755)
    start(gateway)
    gateway.say("hello")
    assert len(wait_for_end(gateway, gateway.home.hook_logs / "again.log", "asked", MAX_DEPTH + 1)) == MAX_DEPTH + 1


def test_a_chain_of_sent_texts_ends_too(gateway: GatewayProcess) -> None:
    handler = """def handle(event_type, context):
    print("sent")
    context.gateway.send("terminal:main", "one more")
"""
    gateway.add_hook("echoes", {"HOOK.yaml": "events: [message:sent]\nuses: [send]\n", "handler.py": handler})
    start(gateway)
    gateway.say("hello")
    log = gateway.home.hook_logs / "echoes.log"
    gateway.until(lambda: log.exists() and log.read_text().count("sent") >= MAX_DEPTH + 1)
    gateway.say("hello again")
    gateway.until(lambda: log.read_text().count("sent") >= 2 * (MAX_DEPTH + 1))
    assert log.read_text().count("sent") == 2 * (MAX_DEPTH + 1)
