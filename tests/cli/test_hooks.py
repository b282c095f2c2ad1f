"""Every verb of `hooks`, as a person types it: against a gateway that runs."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks.durable.dead_letters import dead_letter_subject_of
from gateway.records import records
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SUM = '{"text": "6x7"}'
SHORTHAND = """
def handle(event_type, context):
    print("heard", context["text"])
    if context["text"] == "6x7":
        context["text"] = "what is 6 * 7"
    if context["text"] == "boom":
        raise ValueError("this is too much")
"""
COURIER = """
def handle(event_type, context):
    print("delivered", context["session_id"])
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("cli") / "home") as gateway:
        gateway.configure("{}\n")
        gateway.add_hook("shorthand", {"HOOK.yaml": "intercepts: [message:received]\n", "handler.py": SHORTHAND})
        gateway.add_hook("courier", {"HOOK.yaml": "events: [session:end]\ndelivery: durable\n", "handler.py": COURIER})
        anyio.run(bury_letters, gateway)
        gateway.start()
        gateway.until(lambda: all(state(gateway, name) == "loaded" for name in ("courier", "shorthand")))
        yield gateway


async def bury_letters(gateway: GatewayProcess) -> None:
    """Leave events that the courier and a removed hook could not receive, in a gateway that ran before."""
    async with await open_sqlite(gateway.home.journal) as engine:
        for number, hook in ((1, "courier"), (2, "courier"), (3, "courier"), (4, "gone")):
            fields = {"id": f"e{number}", "session_id": f"s{number}", "platform": "terminal"}
            emitted = records.encode(records.EmittedEvent(name="session:end", fields=fields))
            dead = records.DeadLetterRecord(
                what=f"hook:{hook}", reason="the server is down", attempts=5, subject="x", seq=number, data=emitted
            )
            await engine.append(NewRecord(dead_letter_subject_of(hook, number), records.encode(dead)))


def said(done: subprocess.CompletedProcess[str], code: int = 0) -> str:
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def facts(gateway: GatewayProcess, *words: str, code: int = 0) -> Any:
    """Return the output of `--json`."""
    told = json.loads(said(gateway.cli("hooks", *words, "--json"), code))
    assert told["schema_version"] == 1
    return told


def state(gateway: GatewayProcess, name: str) -> str:
    return str(facts(gateway, "info", name)["hook"]["state"])


def test_list_shows_what_there_is_and_how_it_fares(gateway: GatewayProcess) -> None:
    lines = said(gateway.cli("hooks", "list")).splitlines()
    assert lines[0].split() == ["hook", "state", "from", "calls", "failed", "p95", "last", "events"]
    assert [[*line.split()[:3], line.split()[-1]] for line in lines[1:4]] == [
        ["boot-md", "loaded", "built-in", "gateway:startup"],
        ["courier", "loaded", "home", "session:end"],
        ["shorthand", "loaded", "home", "message:received!"],
    ]


def test_list_says_what_those_do_that_come_with_the_gateway(gateway: GatewayProcess) -> None:
    for words in ([], ["--all"]):
        there, own = said(gateway.cli("hooks", "list", *words)).split("\n\n")
        assert "audit-log" not in there
        told = {line.split()[0]: " ".join(line.split()[1:]) for line in own.splitlines()}
        assert told["audit-log"] == "off Writes what models and tools did into a file of JSON lines"
        assert told["boot-md"].startswith("on ")
    assert {hook["origin"] for hook in facts(gateway, "list")["hooks"]} == {"home", "built-in"}


def test_test_calls_it_with_samples_in_a_process_of_its_own(gateway: GatewayProcess) -> None:
    before = facts(gateway, "info", "shorthand")["hook"]
    shown = said(gateway.cli("hooks", "test", "shorthand"))
    assert shown.startswith("message:received: ok in ")
    assert "heard Please look at the weather in Paris." in shown
    after = facts(gateway, "info", "shorthand")["hook"]
    assert (after["calls"], after["pid"]) == (before["calls"], before["pid"])


def test_test_takes_fields_from_a_file_from_stdin_and_as_they_are(gateway: GatewayProcess, tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text(SUM)
    for given in (SUM, str(tmp_path / "payload.json"), "-"):
        words = ["hooks", "test", "shorthand", "--event", "message:received", "--payload", given]
        command = [sys.executable, "-m", "gateway.cli", *words]
        done = subprocess.run(command, env=gateway.environ, input=SUM, capture_output=True, text=True)
        assert '  changed  text: "what is 6 * 7"' in said(done)


def test_a_hook_that_fails_its_test_is_shown_with_its_traceback(gateway: GatewayProcess) -> None:
    shown = said(gateway.cli("hooks", "test", "shorthand", "--payload", '{"text": "boom"}'), 1)
    assert shown.startswith("message:received: failed in ")
    assert 'handler.py", line 7, in handle' in shown
    assert "ValueError: this is too much" in shown


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [("[1]", "[1]"), ('{"a": ', "--payload is not JSON"), ("/nowhere.json", "No such file")],
)
def test_a_payload_that_is_none_is_refused(gateway: GatewayProcess, payload: str, complaint: str) -> None:
    done = gateway.cli("hooks", "test", "shorthand", "--payload", payload)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_fire_tells_the_hook_that_runs_and_logs_shows_what_it_prints(gateway: GatewayProcess) -> None:
    shown = said(gateway.cli("hooks", "fire", "shorthand", "message:received", "--payload", SUM))
    assert '  changed  text: "what is 6 * 7"' in shown
    gateway.until(lambda: "heard 6x7" in gateway.cli("hooks", "logs", "shorthand").stdout)
    assert facts(gateway, "logs", "shorthand")["lines"][-1].endswith("heard 6x7")


def test_fire_says_so_when_the_hook_would_never_hear_of_it(gateway: GatewayProcess) -> None:
    done = gateway.cli("hooks", "fire", "shorthand", "message:recieved", "--payload", '{"text": "x"}')
    assert "does not subscribe to message:recieved" in done.stdout
    assert "did you mean message:received?" in done.stdout


def test_logs_follows(gateway: GatewayProcess) -> None:
    said(gateway.cli("hooks", "fire", "courier", "session:end", "--payload", '{"session_id": "before"}'))
    gateway.until(lambda: "before" in gateway.cli("hooks", "logs", "courier").stdout)
    with gateway.spawn("hooks", "logs", "courier", "-f", "-n", "1") as follower:
        assert follower.stdout
        assert "delivered before" in follower.stdout.readline()
        said(gateway.cli("hooks", "fire", "courier", "session:end", "--payload", '{"session_id": "after"}'))
        assert "delivered after" in follower.stdout.readline()
        follower.kill()


def test_info_tells_of_the_last_error_and_of_the_last_calls(gateway: GatewayProcess) -> None:
    said(gateway.cli("hooks", "fire", "shorthand", "message:received", "--payload", '{"text": "boom"}'), 1)
    shown = said(gateway.cli("hooks", "info", "shorthand"))
    assert "last error, " in shown
    assert "ValueError: this is too much" in shown
    calls, given = shown.split("\ngiven last, ")
    assert "message:received" in calls.splitlines()[-1]
    assert '"text": "boom"' in given
    said(gateway.cli("hooks", "reset", "shorthand"))


def test_info_tells_when_the_clock_calls_next(gateway: GatewayProcess) -> None:
    nine = {"HOOK.yaml": 'schedule: "0 9 * * *"\n', "handler.py": COURIER}
    folder = gateway.add_hook("nine", nine)
    gateway.until(lambda: gateway.cli("hooks", "info", "nine").returncode == 0)
    assert re.search(r"schedule +0 9 \* \* \* \(next: \w+ \d\d \w+ 09:00\)", said(gateway.cli("hooks", "info", "nine")))
    shutil.rmtree(folder)


def test_stats_counts(gateway: GatewayProcess) -> None:
    before = {hook["name"]: hook["calls"] for hook in facts(gateway, "stats")["hooks"]}
    said(gateway.cli("hooks", "fire", "courier", "session:end"))
    after = {hook["name"]: hook["calls"] for hook in facts(gateway, "stats")["hooks"]}
    assert after["courier"] == before["courier"] + 1
    assert said(gateway.cli("hooks", "stats")).startswith("name ")


def test_disable_and_enable(gateway: GatewayProcess) -> None:
    assert said(gateway.cli("hooks", "disable", "courier")).startswith("courier: disabled")
    assert gateway.cli("hooks", "fire", "courier", "session:end").returncode == 1
    assert said(gateway.cli("hooks", "enable", "courier")) == "courier: loaded\n"
    assert said(gateway.cli("hooks", "enable", "audit-log")) == "audit-log: loaded\n"
    assert said(gateway.cli("hooks", "disable", "audit-log")).startswith("audit-log: disabled")


def test_reload_starts_it_anew(gateway: GatewayProcess) -> None:
    before = facts(gateway, "info", "shorthand")["hook"]["pid"]
    assert said(gateway.cli("hooks", "reload", "shorthand")) == "shorthand: loaded\n"
    assert facts(gateway, "info", "shorthand")["hook"]["pid"] != before
    assert set(said(gateway.cli("hooks", "reload")).splitlines()) >= {"shorthand: loaded", "courier: loaded"}


def test_reset_closes_the_breaker(gateway: GatewayProcess) -> None:
    for _ in range(5):
        said(gateway.cli("hooks", "fire", "shorthand", "message:received", "--payload", '{"text": "boom"}'), 1)
    assert state(gateway, "shorthand") == "tripped"
    assert "failed 5 times in a row" in said(gateway.cli("hooks", "list"))
    assert "disabled: switched off by command" in said(gateway.cli("hooks", "disable", "shorthand"))
    gateway.cli("hooks", "enable", "shorthand")
    assert said(gateway.cli("hooks", "reset", "shorthand")) == "shorthand: loaded\n"


def test_dead_letters_of_a_hook_that_is_gone_can_be_thrown_away(gateway: GatewayProcess) -> None:
    assert "hook 'gone' not found" in gateway.cli("hooks", "dead-letters", "retry", "gone").stderr
    assert said(gateway.cli("hooks", "dead-letters", "prune", "gone")) == "gone: 1 thrown away\n"
    assert "hook 'gone' not found" in gateway.cli("hooks", "dead-letters", "prune", "gone").stderr


def test_dead_letters_are_listed_shown_retried_and_pruned(gateway: GatewayProcess) -> None:
    letters = facts(gateway, "dead-letters", "list", "courier")["letters"]
    assert [letter["fields"]["session_id"] for letter in letters] == ["s1", "s2", "s3"]
    first, second, third = (str(letter["number"]) for letter in letters)
    assert "the server is down" in said(gateway.cli("hooks", "dead-letters", "list"))
    assert json.loads(said(gateway.cli("hooks", "dead-letters", "show", "courier", first)))["attempts"] == 5
    assert said(gateway.cli("hooks", "dead-letters", "retry", "courier", second)) == "courier: 1 delivered again\n"
    gateway.until(lambda: "delivered s2" in gateway.cli("hooks", "logs", "courier").stdout)
    assert said(gateway.cli("hooks", "dead-letters", "prune", "courier", third)) == "courier: 1 thrown away\n"
    assert gateway.cli("hooks", "dead-letters", "show", "courier", third).returncode == 1
    assert facts(gateway, "dead-letters", "prune", "courier")["count"] == 1
    assert "there are no dead letters" in said(gateway.cli("hooks", "dead-letters", "list"))


def test_trust_lets_a_hook_run_as_it_is(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("hooks: {trust: pinned}\n")
        gateway.add_hook("courier", {"HOOK.yaml": "events: [session:end]\n", "handler.py": COURIER})
        gateway.start()
        assert "hermes-gateway hooks trust courier" in said(gateway.cli("hooks", "list"))
        assert said(gateway.cli("hooks", "trust", "courier")) == "courier: loaded\n"


def test_deps_has_nothing_to_do_where_nothing_is_lacking(gateway: GatewayProcess) -> None:
    done = gateway.cli("hooks", "deps", "courier")
    assert (said(done), done.stderr) == ("courier: loaded\n", "courier lacks no package\n")


def test_a_guard_whose_decision_means_nothing_has_failed_and_so_denies(gateway: GatewayProcess) -> None:
    guard = "def handle(event_type, context):\n    return {'decision': 'denny', 'message': 'no'}\n"
    manifest = "intercepts: [tool:before]\nwhen: {tool: calculate}\non_error: deny\n"
    folder = gateway.add_hook("guard", {"HOOK.yaml": manifest, "handler.py": guard})
    gateway.until(lambda: gateway.cli("hooks", "info", "guard").returncode == 0)
    shown = said(gateway.cli("hooks", "test", "guard"), 1)
    assert "unknown decision 'denny'; did you mean 'deny'?" in shown
    assert "42" not in gateway.say("what is 6 * 7")["reply"]
    assert "unknown decision 'denny'" in facts(gateway, "info", "guard")["hook"]["last_error"]["message"]
    shutil.rmtree(folder)


def test_a_decision_without_effect_is_warned_of(gateway: GatewayProcess, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    folder.mkdir(mode=0o700)
    (folder / "HOOK.yaml").write_text("intercepts: [tool:before]\n")
    (folder / "handler.py").write_text("def handle(event_type, context):\n    return {'decision': 'retry'}\n")
    shown = said(gateway.cli("hooks", "test", str(folder)))
    assert "warning  answered Retry at tool:before, which has no effect there: it honours deny, end" in shown


@pytest.mark.parametrize("verb", ["info", "test", "enable", "disable", "reload", "reset", "trust", "deps", "logs"])
def test_a_name_that_is_none_is_answered_with_what_was_meant(gateway: GatewayProcess, verb: str) -> None:
    done = gateway.cli("hooks", verb, "shorthan")
    assert done.returncode == 1
    assert "hook 'shorthan' not found; did you mean 'shorthand'?" in done.stderr


def test_what_lasts_over_a_second_says_what_is_waited_for(gateway: GatewayProcess) -> None:
    slow = "import time\n\n\ndef handle(event_type, context):\n    time.sleep(1.3)\n"
    gateway.add_hook("slow", {"HOOK.yaml": "events: [session:end]\n", "handler.py": slow})
    gateway.until(lambda: gateway.cli("hooks", "info", "slow").returncode == 0)
    assert gateway.cli("hooks", "test", "slow").stderr == "slow is being tried ...\n"
