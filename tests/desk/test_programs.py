"""Claude Code, Codex and Gemini CLI: what they sent is asked, and each answer is one that they took as it is meant."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.config.desk_settings import DeskSettings
from gateway.desk.ask import DENY, REASON, make_own_answer
from gateway.desk.codex import HookEntry, check_trust, read_patch
from gateway.desk.open_shells import RISK, find_open_shell
from gateway.desk.programs import PROGRAMS
from gateway.desk.settings_file import connect, find_file, list_own_hooks, write_file
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN
from tests.desk.desk_program import RECORDED, Desk, add_hook, make_event

RULES = """
def handle(event_type, context):
    command = str(context["args"])
    if "forbidden" in command:
        return {"decision": "deny", "reason": "{}"}
    if "dangerous" in command and not context.ask("May it?"):
        return {"decision": "deny", "reason": "no"}
"""
WITHOUT_PERSON = {"CLAUDE_CODE_SESSION_ATTENDED": "0"}


async def play(desk: Desk, event: str, command: str = "touch made") -> str:
    """Play an event without a person, and return what the program did with our answer when it was recorded."""
    given = {"tool_input": {"command": command}}
    code, out, _ = await desk.ask(make_event(event, desk.program.name, **given), **WITHOUT_PERSON)
    answer: dict[str, Any] = json.loads(out or "{}").get("hookSpecificOutput", {})
    name = answer.get("permissionDecision") or answer.get("decision", {}).get("behavior", "")
    taken: str = RECORDED[desk.program.name]["taken"][event][f"exit {code}" if code else name]
    return taken


async def answer(desk: Desk, event: str, word: str, command: str = "touch dangerous") -> str:
    played = desk.ask(make_event(event, desk.program.name, tool_input={"command": command}), **WITHOUT_PERSON)
    await desk.wire.press(await desk.question(), word, by=ANN)
    code, out, _ = await played
    return f"exit {code}" if code else out


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS)
async def test_each_answer_is_taken_as_it_is_meant(desk: Desk, program: str) -> None:
    await desk.connect(program)
    events = desk.program.events
    assert await play(desk, events.before) == "runs"
    await add_hook(desk, "rules", "intercepts: [tool:before]\n", RULES)
    assert await play(desk, events.before) == "runs"
    assert await play(desk, events.before, "touch forbidden") == "denied"
    assert "allow" in await answer(desk, events.before, "Yes") or not desk.program.has_dialog
    assert await answer(desk, events.before, "No") == "exit 2"
    for event in events.ends & RECORDED[program]["sent"].keys():
        assert await desk.ask(make_event(event, program)) == (0, "", "")
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {wait: 1s}\n")
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert await play(desk, events.before, "touch dangerous") == "denied"
    await to_thread.run_sync(desk.gateway.kill)
    assert await play(desk, events.before) == "denied"
    for event in events.ends & RECORDED[program]["sent"].keys():
        assert await desk.ask(make_event(event, program)) == (0, "", "")


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_call_that_could_approve_itself_is_asked(desk: Desk, program: str) -> None:
    await desk.connect(program)
    own = desk.program.settings
    commands = [
        "hermes-gateway approvals yes 1",
        f"nc -U {desk.gateway.home.desk_socket}",
        f"rm -r {desk.gateway.home.root}/hooks",
        f"rm ~/{own.folder}/{own.file}",
        f"cd ~/{own.folder} && rm *",
        f"echo > '{desk.file}'",
        f"{own.variable}=/tmp/mine {program} 'go on'",
        "sed -i s/false/true/ x # disableAllHooks",
    ]
    given = [make_event(desk.program.events.before, program, tool_input={"command": one}) for one in commands]
    played = [desk.ask(one, **WITHOUT_PERSON) for one in given]
    for _ in commands:
        await desk.wire.press(await desk.question(), "No", by=ANN)
    assert [(await one)[0] for one in played] == [2] * len(commands)
    harmless = {"command": f"cat {own.folder}x/notes; ls /home/ann/{own.folder}/skills"}
    assert await desk.ask(make_event(desk.program.events.before, program, tool_input=harmless)) == (0, "", "")


@pytest.mark.process
async def test_codex_asks_before_its_dialog(desk: Desk) -> None:
    await desk.connect("codex")
    for word, behaviour in (("Yes", "allow"), ("No", "deny")):
        out = await answer(desk, "PermissionRequest", word)
        assert json.loads(out)["hookSpecificOutput"]["decision"]["behavior"] == behaviour


@pytest.mark.process
async def test_a_line_of_a_person_s_own_asks_the_same(desk: Desk) -> None:
    """A call is denied that no gateway has seen, since programs run a tool whose hook ends with exit code 1."""

    async def run(program: str, command: str) -> tuple[int, str]:
        words = [sys.executable, "-m", "gateway.cli", "hooks", "ask", program]
        given = make_event("BeforeTool", "gemini", tool_input={"command": command})
        start = partial(subprocess.run, env=desk.gateway.environ, input=given, capture_output=True, text=True)
        done = await to_thread.run_sync(start, words)
        return done.returncode, done.stderr

    await add_hook(desk, "rules", "intercepts: [tool:before]\n", RULES)
    assert await run("gemini", "touch made") == (0, "")
    assert (await run("gemini", "touch forbidden"))[0] == 2
    assert (await run("other", "touch made"))[0] == 2
    await to_thread.run_sync(desk.gateway.kill)
    code, reason = await run("gemini", "touch made")
    assert (code, "does not answer" in reason) == (2, True)


def test_without_a_gateway_the_setting_decides_and_no_dialog_is_asked_for() -> None:
    """Codex runs what it gets `ask` for, and Gemini CLI waits for ever."""
    for program, event in (("codex", "PreToolUse"), ("gemini", "BeforeTool")):
        answers = [make_own_answer(program, event, down) for down in ("ask", "deny", "pass")]
        assert answers == [(2, REASON), (2, REASON), (0, "")]
    assert [make_own_answer("codex", "PermissionRequest", down)[1] for down in ("ask", "deny", "pass")] == [
        "",
        DENY,
        "",
    ]


def test_codex_s_checksum_of_a_hook_is_ours() -> None:
    """As Codex 0.171.0 wrote it when a person trusted this hook."""
    hook = HookEntry("PreToolUse", 0, 0, {"command": "python3 /tmp/k1/rec.py PreToolUse", "timeout": 30})
    assert hook.checksum == "sha256:796d840d79744001576d9beafb0fd97b1103b25cbb5d5121e96e682b557feea1"


def test_the_doctor_names_hooks_that_codex_does_not_trust(tmp_path: Path) -> None:
    codex = PROGRAMS["codex"]
    path = find_file(codex, {"HOME": str(tmp_path)})
    write_file(connect(codex, path, tmp_path / "desk.sock", DeskSettings()))
    hooks = list_own_hooks(codex, path)
    assert check_trust(path, hooks) == [hook.event for hook in hooks] != []
    key = "[hooks.state.{}]\ntrusted_hash = {}\n"
    trusted = [(f"{path}:{hook.label}:{hook.group}:{hook.at}", hook.checksum) for hook in hooks]
    text = "".join(key.format(json.dumps(place), json.dumps(checksum)) for place, checksum in trusted)
    for words, left in (("", 0), ("enabled = false\n", 1), ("[features]\nhooks = false\n", len(hooks))):
        (path.parent / "config.toml").write_text(text + words)
        assert len(check_trust(path, hooks)) == left
    gateway = GatewayProcess(tmp_path / "home")
    gateway.environ["HOME"] = str(tmp_path)
    with gateway:
        assert "Codex does not run these hooks" in gateway.cli("doctor", "--offline").stdout


@pytest.mark.parametrize(
    "command",
    ["bash", "cd x && /bin/bash -l", "sudo -u root sh 2>&1", "cat | python3", "python -i x.py", "ssh host", "A=1 node",
     "psql work", "ls\nbash", "(zsh)", "bash -l # it's", "sqlite3 x.db", "timeout 60 bash",
     "sudo -u sudo " * 500, "x" * 20_000],
)  # fmt: skip
def test_a_command_that_opens_a_shell_is_a_risk(command: str) -> None:
    assert find_open_shell("Bash", {"command": command}) == RISK


@pytest.mark.parametrize(
    "command",
    ["ls", "bash -lc ls", "bash x.sh", "python3 -m pytest", "python3 - <<'END'\nbash\nit's\nEND", "ssh host ls",
     "psql -c 'select 1' work", "echo bash", "node --test", "bash < x.sh", "cat <<END > x.sh\nbash\nEND",
     "perl -pe 1 x", "sudo apt install python3", "sqlite3 x.db 'select 1'", "# it's\nnpm run bash"],
)  # fmt: skip
def test_a_command_with_a_script_is_none(command: str) -> None:
    assert find_open_shell("Bash", {"command": command}) == ""


PATCH = """*** Begin Patch
*** Add File: new file.txt
+hello
*** Update File: a.py
*** Move to: b.py
@@ def x
 kept
-old
+new
  *** Delete File: c.py
*** End Patch
"""


def test_a_patch_is_a_call_for_each_of_its_files() -> None:
    calls = [
        ("write_file", {"path": "new file.txt", "content": "hello\n"}),
        ("edit_file", {"path": "a.py", "old": "kept\nold\n", "new": "kept\nnew\n"}),
        ("write_file", {"path": "b.py", "content": "kept\nnew\n"}),
        ("edit_file", {"path": "c.py", "old": "", "new": ""}),
    ]
    assert read_patch("apply_patch", {"command": PATCH}) == calls
    command = {"command": f"apply_patch <<'END'\n{PATCH}END"}
    assert read_patch("Bash", command) == [("shell", command), *calls]
    assert read_patch("Bash", {"command": "ls"}) == read_patch("view_image", {"command": PATCH}) == []


def test_a_variable_moves_the_settings(tmp_path: Path) -> None:
    for program, place in (("claude", "settings.json"), ("codex", "hooks.json"), ("gemini", ".gemini/settings.json")):
        row = PROGRAMS[program]
        moved = find_file(row, {"HOME": "/home/ann", row.settings.variable: str(tmp_path)})
        assert moved == tmp_path.resolve() / place
        assert find_file(row, {"HOME": str(tmp_path)}) == tmp_path.resolve() / RECORDED[program]["file"]
