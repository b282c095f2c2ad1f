"""`events`: what there is, what happens now, what was kept."""

import json
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.events.catalogue import EVENT_SPECS
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

HELLO = "what is 1 + 1"
COURIER = """
def handle(event_type, context):
    if context.options["fails"]:
        raise ValueError("not today")
    print("told of", context["text"])
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("cli") / "home") as gateway:
        gateway.configure("{}\n")
        manifest = "events: [message:received]\ndelivery: durable\noptions: {fails: false}\n"
        gateway.add_hook("courier", {"HOOK.yaml": manifest, "handler.py": COURIER})
        gateway.start()
        yield gateway


def tailing(gateway: GatewayProcess, *words: str) -> "subprocess.Popen[str]":
    """Start `events tail`, and return it once it receives events, those of our own greetings."""
    tail = gateway.spawn("events", "tail", *words)
    assert tail.stdout
    while not select.select([tail.stdout], [], [], 0.2)[0]:
        gateway.say(HELLO)
    return tail


def until(tail: "subprocess.Popen[str]", text: str) -> str:
    """The first line with this text in it."""
    assert tail.stdout
    return next(line for line in tail.stdout if text in line)


def test_list_needs_no_gateway_and_leaves_nothing_out(tmp_path: Path) -> None:
    alone = GatewayProcess(tmp_path / "home")
    shown = alone.cli("events", "list").stdout
    assert [line.split()[0] for line in shown.splitlines()[1:]] == list(EVENT_SPECS)
    told = json.loads(alone.cli("events", "list", "--json").stdout)["events"]
    before = next(event for event in told if event["name"] == "tool:before")
    assert before["writable"] == ["args", "impl", "result", "tool"]
    assert before["outcomes"] == ["deny", "end"]
    assert before["schema"]["properties"]["args"]["type"] == "object"


@pytest.mark.parametrize("words", [["tail"], ["replay", "courier"]], ids=" ".join)
def test_a_gateway_that_is_down_is_said_to_be_down(tmp_path: Path, words: list[str]) -> None:
    done = GatewayProcess(tmp_path / "home").cli("events", *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "start it with: hermes-gateway run" in done.stderr


def test_tail_shows_what_happens(gateway: GatewayProcess) -> None:
    with tailing(gateway, "agent:end") as tail:
        gateway.say("what is 6 * 7")
        line = until(tail, "what is 6 * 7")
        tail.kill()
    assert " agent:end agent:main:terminal:dm:main " in line
    assert "The result is 42." in line


def test_tail_ends_after_so_many(gateway: GatewayProcess) -> None:
    with tailing(gateway, "tool:*", "-n", "2") as tail:
        gateway.say("what is 6 * 7")
        shown, _ = tail.communicate()
    heard = [line.split()[1] for line in shown.splitlines()]
    assert sorted(heard) == ["tool:after", "tool:before"], "it may begin in the middle of a tool"
    assert tail.returncode == 0


def test_tail_tells_programs_all_fields(gateway: GatewayProcess) -> None:
    with tailing(gateway, "agent:start", "--json") as tail:
        gateway.say("what is 6 * 7")
        told = json.loads(until(tail, "what is 6 * 7"))
        tail.kill()
    assert (told["schema_version"], told["event"]) == (1, "agent:start")
    assert {"id", "time", "cause", "turn_id", "message_full"} <= told["fields"].keys()


def test_tail_guesses_what_was_meant(gateway: GatewayProcess) -> None:
    with gateway.spawn("events", "tail", "agent:edn") as tail:
        assert tail.stderr
        assert tail.stderr.readline() == "unknown event agent:edn; did you mean agent:end?\n"
        tail.kill()


def test_tail_ends_with_the_gateway(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        with tailing(gateway, "agent:end") as tail:
            gateway.stop()
            tail.communicate()
        assert tail.returncode == 0


def test_replay_tells_a_hook_again_of_what_the_journal_keeps(gateway: GatewayProcess) -> None:
    gateway.say("remember the milk")
    gateway.until(lambda: "remember the milk" in gateway.cli("hooks", "logs", "courier").stdout)
    told = json.loads(gateway.cli("events", "replay", "courier", "--since", "1h", "--json").stdout)
    assert told["failed"] == 0
    assert told["count"] == len(told["trials"]) >= 1
    gateway.until(lambda: gateway.cli("hooks", "logs", "courier").stdout.count("remember the milk") == 2)
    assert "message:received: ok" in gateway.cli("events", "replay", "courier").stdout


def test_replay_of_nothing_says_what_is_kept(gateway: GatewayProcess) -> None:
    done = gateway.cli("events", "replay", "courier", "agent:end")
    assert (done.returncode, done.stdout) == (0, "")
    assert "delivery: durable" in done.stderr


def test_replay_to_a_hook_that_fails_is_a_failure(gateway: GatewayProcess) -> None:
    gateway.say("one more")
    manifest = gateway.home.hooks / "courier" / "HOOK.yaml"
    manifest.write_text(manifest.read_text().replace("fails: false", "fails: true"))
    gateway.cli("hooks", "reload", "courier")
    done = gateway.cli("events", "replay", "courier")
    assert done.returncode == 1
    assert "not today" in done.stdout
