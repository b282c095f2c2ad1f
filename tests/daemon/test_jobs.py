"""Jobs on the running daemon: by the command line, cut off by a kill, seen by hooks, and kept from what we started."""

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.http_server import QuietHandler, serving

pytestmark = pytest.mark.process

SEES = {
    "HOOK.yaml": "events: ['job:*']\n",
    "handler.py": (
        "import os, pathlib\n"
        "def handle(event_type, context):\n"
        "    with open(pathlib.Path(os.environ['HERMES_HOME']) / 'seen', 'a') as file:\n"
        "        print(event_type, context['job'], context['reason'], file=file)\n"
    ),
}
SEES_TOOLS = (
    "import os, pathlib\n"
    "def handle(event_type, context):\n"
    "    with open(pathlib.Path(os.environ['HERMES_HOME']) / 'seen', 'a') as file:\n"
    "        print(context['tool'], file=file)\n"
)


def history_of(gateway: GatewayProcess, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gateway.cli("jobs", "history", name, "--json").stdout)
    return found


def states_of(gateway: GatewayProcess, name: str) -> list[str]:
    return [one["state"] for one in history_of(gateway, name)]


def is_in(gateway: GatewayProcess, name: str, states: list[str]) -> bool:
    return states_of(gateway, name) == states


@pytest.fixture
def gateway(tmp_path: Path) -> Any:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def test_a_job_that_a_kill_cut_off_ends_once_and_hooks_see_it(gateway: GatewayProcess) -> None:
    wait = {"name": "shell", "args": {"command": f"touch {gateway.home.root}/begun; sleep 600"}}
    turns: list[dict[str, Any]] = [
        {"user": "sweep", "answers": [{"tool_calls": [wait]}, {"text": "swept"}]},
        {"user": "quiet", "text": "[SILENT]"},
    ]
    gateway.script(*turns, settings="tools: {shell: allow, sandbox: {mode: 'off'}}\n")
    gateway.add_hook("sees", SEES)
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "sees"})["state"] == "loaded")
    assert "the job sweep comes at" in gateway.cli("jobs", "add", "sweep", "--when", "1s", "--text", "sweep").stdout
    gateway.until((gateway.home.root / "begun").exists)
    assert states_of(gateway, "sweep") == ["running"]
    gateway.kill()
    gateway.start()
    gateway.until(lambda: states_of(gateway, "sweep") == ["ran"])
    assert history_of(gateway, "sweep")[0]["answer"] == "swept"
    assert gateway.cli("cron", "add", "quiet", "--when", "every 1h", "--text", "quiet").returncode == 0
    assert gateway.cli("cron", "run", "quiet").returncode == 0
    gateway.until(lambda: states_of(gateway, "quiet") == ["ran"])
    assert history_of(gateway, "quiet")[0]["answer"] == ""
    seen = gateway.home.root / "seen"
    told = ["job:due sweep", "job:done sweep", "job:due quiet", "job:done quiet"]
    gateway.until(lambda: [line.strip() for line in seen.read_text().splitlines()] == told)


def test_jobs_are_listed_shown_replaced_paused_and_removed(gateway: GatewayProcess) -> None:
    gateway.start()
    add = ["jobs", "add", "tea", "--when", "0 9 * * 1-5", "--zone", "Europe/Berlin", "--text"]
    assert gateway.cli(*add, "make tea").returncode == 0
    assert "there is a job 'tea' already" in gateway.cli(*add, "make coffee").stderr
    assert gateway.cli(*add, "make coffee", "--replace").returncode == 0
    (listed,) = json.loads(gateway.cli("jobs", "list", "--json").stdout)["jobs"]
    assert (listed["text"], listed["state"], listed["maker"]) == ("make coffee", "waiting", "terminal:owner")
    assert listed["next"] % 86_400 in (7 * 3600, 8 * 3600)
    assert gateway.cli("jobs", "pause", "tea").stdout == "the job tea is paused\n"
    assert "paused (paused by hand)" in gateway.cli("jobs", "show", "terminal:owner/tea").stdout
    assert gateway.cli("jobs", "resume", "tea").returncode == 0
    assert gateway.cli("jobs", "remove", "tea").returncode == 0
    for command, words in (
        (["show", "tea"], "the job 'tea' was not found"),
        (["add", "my tea", "--when", "1h", "--text", "x"], "a job's name has letters, digits,"),
        (["add", "x", "--when", "every 5s", "--text", "x"], "the shortest interval is 1m"),
        (["add", "x", "--when", "1h", "--text", "x", "--zone", "Mars/Base"], "the time zone 'Mars/Base' was not found"),
        (["add", "x", "--when", "1h", "--text", "x", "--to", "telegram:5"], "not served here"),
        (["add", "x", "--when", "1h", "--text", "x", "--agent", "nobody"], "the agent 'nobody' was not found"),
        (["add", "x", "--when", "1h", "--text", "x", "--model", "none"], "the model 'none' was not found"),
        (["add", "x", "--when", "1h", "--text", "x", "--ping", "here"], "--ping takes a URL"),
        (["add", "x", "--when", "1h", "--text", "x", "--ping", "http://["], "--ping takes a URL"),
    ):
        refused = gateway.cli("jobs", *command)
        assert refused.returncode == 1, command
        assert words in refused.stderr


def test_a_command_runs_as_the_shell_tool_would_and_a_kill_is_told(gateway: GatewayProcess) -> None:
    allowed = {"tool_calls": [{"name": "schedule", "args": {"when": "1s", "command": "echo said $HOME"}}]}
    gateway.script(
        {"user": "check", "answers": [allowed, {"text": "it is set"}]},
        settings="tools: {roots: [work], shell_timeout: 1s}\n",
    )
    (gateway.home.root / "work").mkdir(parents=True)
    gateway.start()
    add = ["jobs", "add", "where", "--when", "every 1h", "--command"]
    assert gateway.cli(*add, "pwd; sleep 1.5; echo $HERMES_HOME; cat $0/x").returncode == 0
    assert gateway.cli("jobs", "run", "where").returncode == 0
    gateway.until(lambda: states_of(gateway, "where") == ["failed"])
    (ended,) = history_of(gateway, "where")
    assert ended["answer"].splitlines()[:2] == [str((gateway.home.root / "work").resolve()), ""]
    assert ended["reason"] == "exit code 1"
    assert "command" in gateway.cli("jobs", "show", "where").stdout
    slow = ["jobs", "add", "slow", "--when", "every 1h", "--command", "touch begun; sleep 600", "--replace"]
    for more, states in (["--max-time", "1s"], ["failed"]), ([], ["running"]):
        assert gateway.cli(*slow, *more).returncode == 0
        assert gateway.cli("jobs", "run", "slow").returncode == 0
        gateway.until(partial(is_in, gateway, "slow", states))
    gateway.until((gateway.home.root / "work/begun").exists)
    gateway.kill()
    gateway.start()
    gateway.until(lambda: states_of(gateway, "slow") == ["failed"])
    assert history_of(gateway, "slow")[0]["reason"] == "may have run"
    assert "May I run schedule?" in str(gateway.say("check"))
    assert gateway.say("yes")["reply"] == "it is set"
    (made,) = (one["name"] for one in gateway.call("jobs.list")["jobs"] if one["command"].startswith("echo"))
    gateway.until(lambda: states_of(gateway, made) == ["ran"])
    assert history_of(gateway, made)[0]["answer"].startswith("said /")


def test_the_agent_reads_jobs_by_the_commands_that_it_knows(gateway: GatewayProcess) -> None:
    commands = (
        "hermes cron list",
        "hermes-gateway jobs show tea",
        "hermes-gateway cron history tea",
        "hermes cron run",
    )
    calls = [{"tool_calls": [{"name": "shell", "args": {"command": one}}]} for one in commands]
    gateway.script(
        {"user": "check", "answers": [*calls[:3], {"text": "all is well"}]}, {"user": "run", "answers": [calls[3]]}
    )
    gateway.add_hook("sees", {"HOOK.yaml": "events: [tool:before]\n", "handler.py": SEES_TOOLS})
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "sees"})["state"] == "loaded")
    assert gateway.cli("jobs", "add", "tea", "--when", "0 9 * * *", "--command", "exit 3").returncode == 0
    assert gateway.cli("jobs", "run", "tea").returncode == 0
    gateway.until(lambda: states_of(gateway, "tea") == ["failed"])
    assert gateway.say("check")["reply"] == "all is well"
    shown = gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"})
    listed, told, history = (str(one["content"]) for one in shown["entries"] if one["role"] == "tool")
    assert listed == told
    assert listed.startswith("tea: ")
    assert "0 9 * * *: exit 3 [last: " in listed
    assert history.endswith(": failed: exit code 3")
    seen = gateway.home.root / "seen"
    events = ["shell"] * 4  # the command of the job, and the three calls
    gateway.until(lambda: seen.exists() and seen.read_text().splitlines() == events)
    assert "May I run shell?" in str(gateway.say("run"))


def test_a_job_has_a_model_of_its_own_and_calls_a_url_when_it_went_well(gateway: GatewayProcess) -> None:
    class Switch(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - as the library calls it
            called.append(self.path)
            self.answer(b"OK")

    called = list[str]()
    other = gateway.home.own_folder / "other.yaml"
    gateway.script(
        {"user": "tea", "text": "by the usual one"},
        settings=f"models: {{other: {{provider: demo, script: {json.dumps(str(other))}}}}}\n",
    )
    other.write_text(json.dumps({"turns": [{"user": "tea", "text": "by the other one"}]}))
    gateway.start()
    with serving(Switch) as server:
        ping = ["--ping", f"http://127.0.0.1:{server.server_port}/here"]
        assert (
            gateway.cli("jobs", "add", "tea", "--when", "1s", "--text", "tea", "--model", "other", *ping).returncode
            == 0
        )
        assert gateway.cli("jobs", "add", "no", "--when", "1s", "--command", "exit 1", *ping).returncode == 0
        gateway.until(lambda: states_of(gateway, "tea") == ["ran"] and states_of(gateway, "no") == ["failed"])
        gateway.until(lambda: called == ["/here"])
    assert history_of(gateway, "tea")[0]["answer"] == "by the other one"


def test_the_jobs_of_hermes_are_shown_and_come_over_paused(gateway: GatewayProcess) -> None:
    daily = {"kind": "cron", "expr": "0 9 * * *"}
    jobs = [
        {"id": "1", "name": "tea", "prompt": f"make tea{' and cake' * 200}!", "schedule": daily, "skills": ["kettle"]},
        {"id": "2", "name": "old", "prompt": "x", "schedule": {"kind": "once", "run_at": "2020-01-01T00:00:00"}},
        {"id": "3", "name": "far", "prompt": "x", "schedule": daily, "deliver": "telegram:5"},
    ]
    gateway.home.hermes_jobs.parent.mkdir(parents=True)
    gateway.home.hermes_jobs.write_text(json.dumps({"jobs": jobs}))
    told = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
    (row,) = (one for one in told if one["name"] == "cron")
    assert "3 jobs of Hermes can come over" in str(row)
    gateway.start()
    assert gateway.cli("jobs", "add", "tea", "--when", "1h", "--text", "x").returncode == 0
    unasked = gateway.cli("jobs", "import")
    tea, old, far = unasked.stdout.split("\n\n")[:3]
    assert "left out  skills: name them in the text" in tea
    assert "and cake!" in tea
    assert "not made  '2020-01-01T00:00:00' is past" in old
    assert "to    telegram:5" in far
    assert "add --yes" in unasked.stderr
    assert len(gateway.call("jobs.list")["jobs"]) == 1
    done = gateway.cli("cron", "import", "--yes", "--json")
    assert json.loads(done.stdout)["made"] == ["tea-2"]
    assert "telegram" in json.loads(done.stdout)["failed"]["far"]
    assert "and cake!" in done.stderr
    assert done.returncode == 1
    made = gateway.call("jobs.show", {"name": "tea-2"})
    assert (made["text"][:8], made["state"], made["paused"]) == ("make tea", "paused", "paused by hand")


def test_no_command_of_the_agent_makes_a_job(gateway: GatewayProcess) -> None:
    cli = shlex.join([sys.executable, "-m", "gateway.cli", "jobs", "add", "evil", "--when", "1s", "--text", "evil"])
    command = f"HERMES_HOME={gateway.home.root} {cli}"
    turn = {
        "user": "do",
        "answers": [{"tool_calls": [{"name": "shell", "args": {"command": command}}]}, {"text": "ok"}],
    }
    gateway.script(turn, settings="tools: {shell: allow, sandbox: {mode: 'off'}}\n")
    gateway.start()
    assert gateway.say("do")["reply"] == "ok"
    shown = gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"})
    (said,) = (str(one["content"]) for one in shown["entries"] if one["role"] == "tool")
    assert "jobs.add" in said
    assert gateway.call("jobs.list")["jobs"] == []
