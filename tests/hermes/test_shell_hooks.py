"""Shell hooks of Hermes's own config.yaml in the running gateway: what they read and decide, and who lets them run."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import SHOW, last_result, wants

pytestmark = pytest.mark.process

SCRIPTS = {
    "block.sh": """echo '{"decision": "block", "reason": "not by the script"}'""",
    "two.sh": 'echo "because of two" >&2; exit 2',
    "context.sh": """echo '{"context": "from the shell"}'""",
    "broken.sh": "echo oops >&2; exit 1",
    "sees.sh": """printf '{"context": "%s and %s"}' "$NAMED_SECRET" "${UNNAMED:-nothing}" """,
    "after.sh": "true",
    "both.sh": """echo '{"decision": "block", "reason": "because of both"}'; echo noise >&2; exit 2""",
    "unlike.sh": "echo '{\"note\": 1}'; echo 'because of two' >&2; exit 2",
    "wrong.py": "import argparse; argparse.ArgumentParser().parse_args(['--no-such'])",
}
CONFIG = """
model: {default: something of Hermes's}
hooks:
  pre_tool_call:
    - {command: BIN/block.sh, matcher: "calc.*", timeout: 5}
    - {command: BIN/two.sh --why, matcher: time}
    - {command: BIN/broken.sh, matcher: remember}
    - {command: BIN/broken.sh --closed, matcher: recall, fail_closed: true}
    - {command: BIN/both.sh, matcher: list_files}
    - {command: BIN/unlike.sh, matcher: load_skill}
    - {command: python3 BIN/wrong.py, matcher: remember}
    - {command: python3 BIN/gone.py, matcher: "search_files|send_place"}
    - {command: no-such-program BIN/after.sh, matcher: send_place}
  pre_llm_call:
    - command: BIN/context.sh
    - command: BIN/sees.sh
  post_tool_call:
    - command: BIN/after.sh
  kanban_task_claimed:
    - command: BIN/after.sh
  on_session_end:
    - matcher: no command
"""
SCRIPT = (
    wants("six", "calculate", expression="6*7"),
    wants("clock", "time"),
    wants("keep", "remember", text="x"),
    wants("again", "recall"),
    wants("files", "list_files"),
    wants("skilful", "load_skill", name="x"),
    wants("where", "send_place", latitude=1, longitude=2),
)

ABSENT_SCRIPT, ABSENT_PROGRAM = "shell-pre_tool_call-gone", "shell-pre_tool_call-after"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT)
        place = gateway.home.root / "bin"
        place.mkdir()
        for name, text in SCRIPTS.items():
            write(place / name, text, gateway.home.root)
        gateway.home.hermes_config.write_text(CONFIG.replace("BIN", str(place)))
        gateway.home.env.write_text("NAMED_SECRET=sesame\nUNNAMED_TOO=hidden\n")
        gateway.home.env.chmod(0o600)
        gateway.start()
        yield gateway


def write(path: Path, text: str, home: Path) -> None:
    begin = "" if path.suffix == ".py" else f"#!/bin/sh\n(cat; echo) >> {home}/{path.stem}.jsonl\n"
    path.write_text(f"{begin}{text}\n")
    path.chmod(0o755)


def shell_hooks(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in gateway.call("hooks.list")["hooks"] if one["name"].startswith("shell-")}


def read_by(gateway: GatewayProcess, script: str) -> list[dict[str, Any]]:
    path = gateway.home.root / f"{script}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def trusted(gateway: GatewayProcess) -> GatewayProcess:
    """Each was trusted by command, as on a machine without a screen."""
    assert gateway.say("six")["status"] == "ok"
    assert not read_by(gateway, "block")
    assert "hooks trust shell-pre_tool_call-block" in last_result(gateway), "until then, what it guards is denied"
    gateway.say("skilful", "skilful-before")
    assert "hooks trust shell-pre_tool_call-unlike" in last_result(gateway, "skilful-before")
    absent = {ABSENT_SCRIPT: "broken"}
    states = {name: one["state"] for name, one in shell_hooks(gateway).items()}
    assert states == dict.fromkeys(states, "pending") | absent
    for name in shell_hooks(gateway):
        assert gateway.cli("hooks", "trust", name).returncode == 0
    return gateway


def test_nothing_runs_before_somebody_has_said_that_it_may(trusted: GatewayProcess) -> None:
    states = {name: one["state"] for name, one in shell_hooks(trusted).items()}
    assert states == dict.fromkeys(states, "loaded") | {ABSENT_SCRIPT: "broken", ABSENT_PROGRAM: "missing"}


def test_what_a_command_names_and_is_not_there_is_said(trusted: GatewayProcess) -> None:
    found = shell_hooks(trusted)
    assert "is not there; a relative path begins in " in found[ABSENT_SCRIPT]["reason"]
    assert "the program no-such-program is not on the PATH" in found[ABSENT_PROGRAM]["reason"]
    assert "broken" in trusted.cli("hooks", "trust", ABSENT_SCRIPT).stdout
    trusted.say("where", "where")
    assert f"{ABSENT_SCRIPT} guards this and cannot answer" in last_result(trusted, "where")


def test_an_interpreters_own_end_blocks_nothing(trusted: GatewayProcess) -> None:
    trusted.say("keep", "usage")
    assert last_result(trusted, "usage") == "Remembered: x"
    assert "usage: wrong.py" in shell_hooks(trusted)["shell-pre_tool_call-wrong"]["last_error"]["message"]


@pytest.mark.parametrize(("said", "reason"), [("files", "because of both"), ("skilful", "because of two")])
def test_exit_code_two_blocks_whatever_is_printed_beside(trusted: GatewayProcess, said: str, reason: str) -> None:
    trusted.say(said, said)
    assert last_result(trusted, said) == reason


def test_a_script_reads_what_hermes_would_give_it_and_its_block_counts(trusted: GatewayProcess) -> None:
    trusted.say("six", "block")
    assert last_result(trusted, "block") == "not by the script"
    (told,) = read_by(trusted, "block")
    assert told.keys() == {"hook_event_name", "tool_name", "tool_input", "session_id", "cwd", "extra"}
    assert (told["hook_event_name"], told["tool_name"]) == ("pre_tool_call", "calculate")
    assert told["tool_input"] == {"expression": "6*7"}
    assert {"task_id", "turn_id", "tool_call_id"} <= told["extra"].keys()
    after = read_by(trusted, "after")[-1]
    assert (after["hook_event_name"], after["extra"]["status"]) == ("post_tool_call", "blocked")


def test_exit_code_two_blocks_with_what_it_said(trusted: GatewayProcess) -> None:
    trusted.say("clock", "two")
    assert last_result(trusted, "two") == "because of two"
    assert not [told for told in read_by(trusted, "two") if told["tool_name"] != "time"]


def test_a_failure_lets_through_unless_it_is_to_fail_closed(trusted: GatewayProcess) -> None:
    trusted.say("keep", "open")
    assert last_result(trusted, "open") == "Remembered: x"
    trusted.say("again", "closed")
    assert "guards this and failed" in last_result(trusted, "closed")


def test_context_goes_to_the_model_alone_and_variables_are_those_that_a_script_names(trusted: GatewayProcess) -> None:
    trusted.say("nobody answers this", "context")
    error = trusted.say("nobody answers this", "context")["error"]
    assert "from the shell" in error
    assert "[secret] and nothing" in error, "it was given the variable, and an error does not show its value"
    assert "from the shell" not in trusted.cli(*SHOW, "agent:main:terminal:dm:context", "--json").stdout


def test_what_never_fires_and_what_has_no_command_is_told(trusted: GatewayProcess) -> None:
    found = shell_hooks(trusted)["shell-kanban_task_claimed-after"]
    assert "never fires here" in found["findings"][0]
    assert not any("on_session_end" in name for name in shell_hooks(trusted))


def test_an_edited_script_is_not_run_before_it_is_trusted_again(trusted: GatewayProcess) -> None:
    script = trusted.home.root / "bin" / "block.sh"
    count = len(read_by(trusted, "block"))
    write(script, SCRIPTS["block.sh"].replace("not by the script", "otherwise"), trusted.home.root)
    trusted.say("six", "edited")
    assert len(read_by(trusted, "block")) == count
    assert "it was edited since it was trusted" in last_result(trusted, "edited")
    name = "shell-pre_tool_call-block"
    assert f"hooks trust {name}" in shell_hooks(trusted)[name]["last_error"]["message"]
    trusted.cli("hooks", "trust", name)
    trusted.say("six", "edited")
    assert last_result(trusted, "edited") == "otherwise"


def test_a_changed_configuration_counts_after_a_reload_and_hermes_files_stay_as_they_are(
    trusted: GatewayProcess,
) -> None:
    before = trusted.home.hermes_config.read_text()
    trusted.home.hermes_config.write_text(before.replace("calc.*", "no-such-tool"))
    trusted.call("hooks.reload", {})
    assert "not trusted as it is now" in shell_hooks(trusted)["shell-pre_tool_call-block"]["reason"]
    trusted.home.hermes_config.write_text("hooks: {")
    trusted.call("hooks.reload", {})
    assert shell_hooks(trusted), "what cannot be read takes nothing away"
    trusted.home.hermes_config.write_text("hooks: {}\n")
    trusted.call("hooks.reload", {})
    assert not shell_hooks(trusted)
    assert not (trusted.home.root / "shell-hooks-allowlist.json").exists()


def test_what_hermes_approved_runs_at_once_as_it_was_approved(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        approved, edited = (gateway.home.root / name for name in ("block.sh", "two.sh"))
        write(approved, SCRIPTS["block.sh"], gateway.home.root)
        write(edited, SCRIPTS["two.sh"], gateway.home.root)
        entries = [{"command": str(approved), "matcher": "calculate"}, {"command": str(edited), "matcher": "time"}]
        gateway.home.hermes_config.write_text(json.dumps({"hooks": {"pre_tool_call": entries}}))
        changed = datetime.fromtimestamp(approved.stat().st_mtime, tz=UTC).isoformat().replace("+00:00", "Z")
        approvals = [
            {"event": "pre_tool_call", "command": str(script), "script_mtime_at_approval": at}
            for script, at in ((approved, changed), (edited, "2026-01-01T00:00:00Z"))
        ]
        (gateway.home.root / "shell-hooks-allowlist.json").write_text(json.dumps({"approvals": approvals}))
        gateway.start()
        gateway.say("six", "six")
        assert last_result(gateway, "six") == "not by the script"
        gateway.say("clock", "clock")
        assert "not trusted as it is now" in last_result(gateway, "clock")
        assert not read_by(gateway, "two")
