"""An agent on the desk asks, an owner answers in a chat: a real gateway, and a process that plays the agent's call."""

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.config.desk_settings import DeskSettings
from gateway.desk import ask
from gateway.desk.decision import list_home_names
from gateway.desk.programs import PROGRAMS
from gateway.desk.settings_file import connect, list_connections, write_file
from gateway.errors import ConfigError
from gateway.events.catalogue import EVENT_SPECS
from gateway.testing.networks.wire import ANN, BEN
from gateway.worker.process_tree import find_children
from tests.desk.desk_program import ALLOWED, CALL, GUARD, PROGRAM, Desk, add_hook, make_call, make_event
from tests.spine import until

pytestmark = pytest.mark.process


async def test_an_owner_allows_in_their_chat_what_claude_asks(desk: Desk) -> None:
    asked = desk.ask()
    shown = await desk.question()
    for words in ("Bash", "touch made", "say hello", "/home/ann/proj"):
        assert words in shown.text
    listed = await to_thread.run_sync(desk.gateway.cli, "approvals")
    assert ("(desk claude)" in listed.stdout, "change_gateway" in listed.stdout) == (True, False)
    assert desk.gateway.call("proposals.list")["proposals"] == [], "the page shows these to admins"
    await desk.wire.press(shown, "Yes", by=BEN)  # an admin is not an owner
    await desk.wire.press(shown, "Yes", by=ANN)
    code, out, err = await asked
    assert (code, json.loads(out), err) == (0, ALLOWED, "")
    await desk.closed(shown, "Allowed by")
    done = [(one["who"], one["on"]) for one in desk.gateway.call("activity.list")["activity"]]
    assert any(who == f"telegram:{ANN}" and on.endswith("Bash in /home/ann/proj: done") for who, on in done)


async def test_a_no_is_a_denial_with_a_reason(desk: Desk) -> None:
    asked = desk.ask()
    await desk.wire.press(await desk.question(), "No", by=ANN)
    code, out, _ = await asked
    decision = json.loads(out)["hookSpecificOutput"]["decision"]
    assert (code, decision["behavior"], "refused" in decision["message"]) == (0, "deny", True)


async def test_a_yes_is_for_one_call_alone(desk: Desk) -> None:
    """The same call of the same session is another question, also while the first one is open."""
    first, second = desk.ask(), desk.ask()
    await until(lambda: len(desk.list_open()) == 2, "two questions", 20)
    one, other = desk.list_open()
    await desk.wire.press(one, "Yes", by=ANN)
    await desk.closed(one, "Allowed")
    assert [first.done(), second.done()].count(True) <= 1
    await desk.wire.press(other, "No", by=ANN)
    answers = [json.loads((await asked)[1])["hookSpecificOutput"]["decision"]["behavior"] for asked in (first, second)]
    assert sorted(answers) == ["allow", "deny"]


async def test_a_caller_that_hangs_up_withdraws_its_question(desk: Desk) -> None:
    asker = desk.start(CALL, {})
    shown = await desk.question()
    asker.send_signal(signal.SIGTERM)
    await to_thread.run_sync(asker.communicate)
    await desk.closed(shown, "does not ask any more")


@pytest.mark.parametrize("event", ["PostToolUse", "Stop"])
async def test_what_the_desk_answered_is_withdrawn_in_the_chat(desk: Desk, event: str) -> None:
    asked = desk.ask()
    shown = await desk.question()
    assert await desk.ask(make_event("PostToolUse", tool_input={"command": "ls"})) == (0, "", "")  # of another call
    assert await desk.ask(make_event("Stop", session_id="another", tool_name="")) == (0, "", "")
    assert desk.list_open()
    told = make_event(event) if event == "PostToolUse" else make_event(event, tool_name="", tool_input={})
    assert await desk.ask(told) == (0, "", "")
    assert await asked == (0, "", "")
    await desk.closed(shown, "answered at the desk")


async def test_an_event_from_before_the_question_does_not_withdraw_it(desk: Desk) -> None:
    """Programs send such events in the background: a slow command comes after the call that followed it."""
    late = desk.begin("UserPromptSubmit", {})
    await until(lambda: find_children(late.pid), "the command")
    asked = desk.ask()
    shown = await desk.question()
    told = partial(late.communicate, make_event("UserPromptSubmit", prompt_id="another"))
    assert await to_thread.run_sync(told) == ("", "")
    await desk.wire.press(shown, "Yes", by=ANN)
    assert json.loads((await asked)[1]) == ALLOWED


async def test_the_begin_of_a_turn_withdraws_the_questions_of_other_turns_alone(desk: Desk) -> None:
    """Its command may begin after that of the turn's first call, since Claude Code does not wait for it."""
    asked = desk.ask()
    shown = await desk.question()
    assert await desk.ask(make_event("UserPromptSubmit")) == (0, "", "")
    assert desk.list_open()
    assert await desk.ask(make_event("UserPromptSubmit", prompt_id="another")) == (0, "", "")
    assert await asked == (0, "", "")
    await desk.closed(shown, "answered at the desk")


async def test_a_question_outlives_the_gateway(desk: Desk) -> None:
    asked = desk.ask()
    shown = await desk.question()
    await to_thread.run_sync(desk.gateway.kill)
    await to_thread.run_sync(desk.gateway.start)
    await desk.wire.press(shown, "Yes", by=ANN)
    assert json.loads((await asked)[1]) == ALLOWED
    ends = [one for one in desk.gateway.call("activity.list")["activity"] if one["what"] == "desk.end"]
    assert len(ends) == 1


async def test_a_question_of_a_dead_caller_is_withdrawn_after_a_restart(desk: Desk) -> None:
    asker = desk.start(CALL, {})
    shown = await desk.question()
    is_noted = lambda: not sum(desk.gateway.call("status")["backlog"]["replies"].values())  # noqa: E731
    await until(is_noted, "the note of what was sent")
    await to_thread.run_sync(desk.gateway.kill)
    asker.send_signal(signal.SIGTERM)
    await to_thread.run_sync(asker.communicate)
    await to_thread.run_sync(desk.gateway.start)
    await desk.closed(shown, "does not ask any more")


async def test_nothing_is_said_for_a_person_who_says_nothing(desk: Desk) -> None:
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {wait: 1s}\n")
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert await desk.ask() == (0, "", "")
    desk.gateway.configure(desk.gateway.home.config.read_text().replace("wait: 1s", "wait: 1s, unanswered: deny"))
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert '"deny"' in (await desk.ask())[1]


async def test_without_a_gateway_the_program_asks_for_itself(desk: Desk) -> None:
    await to_thread.run_sync(desk.gateway.kill)
    assert await desk.ask() == (0, "", "")
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {down: deny}\n")
    await desk.connect()
    assert '"deny"' in (await desk.ask())[1]


async def test_connect_leaves_what_is_there_as_it_is(desk: Desk) -> None:
    theirs = {
        "model": "opus",
        "hooks": {
            "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
            "PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "say hello"}]}],
        },
    }
    desk.file.write_text(json.dumps(theirs))
    await desk.connect()
    kept = json.loads(desk.file.read_text())
    assert desk.file.stat().st_mode & 0o777 == 0o600
    assert list(kept) == ["model", "hooks"]
    for event, groups in theirs["hooks"].items():  # type: ignore[attr-defined]
        assert kept["hooks"][event][:-1] == groups
    assert "already" in (await to_thread.run_sync(desk.gateway.cli, "connect", "claude", "--yes")).stdout
    gone = await to_thread.run_sync(desk.gateway.cli, "disconnect", "claude", "--yes")
    assert (gone.returncode, json.loads(desk.file.read_text())) == (0, theirs)


PLUGIN = """
def register(ctx):
    deny = {"action": "block", "message": "hosts is private"}
    ctx.register_hook("pre_tool_call", lambda tool_name, args, **_: deny if "hosts" in args["command"] else None)
"""
HEARS = """
def handle(event_type, context):
    said = context.get("result") or context.get("response_full") or context.get("message_full")
    print(event_type, context.get("tool"), said, context.get("error"), *sorted(context))
"""


async def test_hooks_decide_about_a_call_of_the_desk(desk: Desk) -> None:
    assert await desk.ask(make_call(command="rm -r x")) == (0, "", "")  # nothing is connected to it yet
    await add_hook(desk, "guard", "intercepts: [tool:before]\n", GUARD)
    assert await desk.ask(make_call(command="ls")) == (0, "", "")
    code, out, err = await desk.ask(make_call(command="rm -r x"))
    assert (code, out, "nothing is removed here" in err) == (2, "", True)
    code, out, err = await desk.ask(make_call("Write", file_path="/tmp/x", content="theirs"))
    assert (code, out, '"file_path": "/tmp/x", "content": "changed"' in err) == (2, "", True)
    assert await desk.ask(make_call("Write", file_path="/tmp/x", content="changed")) == (0, "", "")
    asked = desk.ask(make_call(command="git push"))
    shown = await desk.question()
    assert "guard: May it push?" in shown.text
    await desk.wire.press(shown, "Yes", by=ANN)
    assert json.loads((await asked)[1])["hookSpecificOutput"]["permissionDecision"] == "allow"
    asked = desk.ask(make_call(command="git push"))
    await desk.wire.press(await desk.question(), "No", by=ANN)
    assert (await asked)[0] == 2


@pytest.mark.parametrize(
    ("event", "sent", "heard"),
    [
        ("PostToolUse", {"tool_response": "made"}, "tool:after shell made None"),
        ("PostToolUseFailure", {"error": "fell"}, "tool:after shell None {'type': 'ToolError', 'message': 'fell'}"),
        ("UserPromptSubmit", {"prompt": "make it"}, "agent:start None make it None"),
        ("Stop", {"last_assistant_message": "done"}, "agent:end None done None"),
    ],
)
async def test_a_hook_observes_what_the_program_reports(
    desk: Desk, event: str, sent: dict[str, Any], heard: str
) -> None:
    """A durable one, too, whose event is no part of a turn here."""
    for name, manifest in (("hears", "events: ['*']\n"), ("keeps", "events: ['*']\ndelivery: durable\n")):
        await add_hook(desk, name, manifest, HEARS)
    told = json.loads(make_call(event=event, command="echo hello")) | sent
    if event in ("UserPromptSubmit", "Stop"):
        told = json.loads(make_event(event)) | sent
    assert await desk.ask(json.dumps(told)) == (0, "", "")
    fields = " ".join(sorted(one.name for one in EVENT_SPECS[heard.split()[0]].all_fields))
    for name, shown in (("hears", f"{heard} {fields}"), ("keeps", heard)):  # each delivery has a field `delivery`, too
        log = desk.gateway.home.hook_logs / f"{name}.log"
        await until(partial(has_words, log, shown), f"{shown} by {name}")


def has_words(path: Path, words: str) -> bool:
    return path.exists() and words in path.read_text()


async def test_a_plugin_decides_here_and_the_settings_of_the_agent_s_tools_do_not(desk: Desk) -> None:
    settings = 'tools: {shell: "off", roots: [/srv]}\nhooks: {enabled: [stern]}\n'
    desk.gateway.configure(desk.gateway.home.config.read_text() + settings)
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert await desk.ask(make_call(command="cat /etc/hosts")) == (0, "", "")
    plugin = desk.gateway.home.root / "plugins" / "stern"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(PLUGIN)
    (plugin / "plugin.yaml").write_text("name: stern\nversion: 1.0.0\n")
    await to_thread.run_sync(desk.gateway.until, lambda: "'stern'" in str(desk.gateway.call("hooks.list")))
    code, out, err = await desk.ask(make_call(command="cat /etc/hosts"))
    assert (code, out, "hosts is private" in err) == (2, "", True)


async def test_a_question_of_a_hook_without_an_answer_is_asked_at_the_desk_or_denied(desk: Desk) -> None:
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {wait: 1s}\n")
    await to_thread.run_sync(desk.gateway.cli, "reload")
    await add_hook(desk, "guard", "intercepts: [tool:before]\n", GUARD)
    call = make_call(command="git push")
    assert json.loads((await desk.ask(call))[1])["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert (await desk.ask(call, CLAUDE_CODE_SESSION_ATTENDED="0"))[0] == 2
    await to_thread.run_sync(desk.gateway.kill)
    assert json.loads((await desk.ask(call))[1])["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert (await desk.ask(call, CLAUDE_CODE_SESSION_ATTENDED="0"))[0] == 2


# Asks first, as a program does, and tries to approve itself at each line; its answers go to the standard output.
GUARDED = """
import json, socket, subprocess, sys
command, path, tries = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
subprocess.run(["sh", "-c", f"exec {command}"], input=sys.argv[4].encode(), check=True)
for _ in iter(sys.stdin.readline, ""):
    for verb, params in tries.items():
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(path)
            one.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": verb, "params": params}).encode() + b"\\n")
            print(verb, one.makefile().readline().strip(), flush=True)
"""
TRIES: dict[str, dict[str, Any]] = {
    "approvals.list": {},
    "approvals.answer": {"id": "x", "allowed": True},
    "questions.answer": {"id": "x", "text": "yes"},
    "hooks.disable": {"name": "guard"},
    "chat.say": {"text": "/approve"},
    "web.open": {},
    "keys.create": {"name": "mine", "role": "operator", "agent": ""},
    "stop": {},
}


@asynccontextmanager
async def start_guarded(desk: Desk, command: str) -> AsyncIterator[Callable[[], Awaitable[list[str]]]]:
    """Start a program that asks by this command; each call of what this yields has it try to approve itself."""
    event = make_event(desk.program.events.before, desk.program.name)
    words = [command, str(desk.gateway.home.socket), json.dumps(TRIES), event]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", GUARDED, *words], text=True, **pipes) as asker:  # noqa: ASYNC220
        stdin, stdout = asker.stdin, asker.stdout
        assert stdin
        assert stdout

        async def try_all() -> list[str]:
            stdin.write("\n")
            stdin.flush()
            return [await to_thread.run_sync(stdout.readline) for _ in TRIES]

        yield try_all
        stdin.close()


def list_passed(rows: list[str]) -> list[str]:
    return [row for row in rows if "asks this gateway before it runs a tool" not in row]


def read_command(desk: Desk) -> str:
    [group] = json.loads(desk.file.read_text())["hooks"][desk.program.events.before]
    return str(group["hooks"][0]["command"])


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_connected_program_cannot_approve_itself(desk: Desk, program: str) -> None:
    """Neither at once, nor after a restart of the gateway."""
    await desk.connect(program)
    async with start_guarded(desk, read_command(desk)) as try_all:
        assert list_passed(await try_all()) == []
        await to_thread.run_sync(desk.gateway.kill)
        await to_thread.run_sync(desk.gateway.start)
        assert list_passed(await try_all()) == []
    assert desk.gateway.call("status")["state"] == "ready"


async def test_a_script_between_a_program_and_the_command_hides_no_program(desk: Desk) -> None:
    """A person wrote it; it is called as the program is, and so is the shell whose command contains ours."""
    script = desk.home / ".claude" / "ask.sh"
    script.write_text(f"{read_command(desk)}\nexit $?\n")
    for command in (f"bash {script}", f"timeout 60 bash -c {shlex.quote(read_command(desk) + '; exit $?')}"):
        async with start_guarded(desk, command) as try_all:
            assert list_passed(await try_all()) == []
    assert desk.gateway.call("status")["state"] == "ready"


STARTS_GATEWAY = """
import subprocess, sys
asker = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
subprocess.run([sys.executable, "-c", sys.argv[2], str(asker.pid)], check=True)
asker.communicate()
print(__import__("os").getpid())
"""
LOOKS = """
import sys
from gateway.desk.programs import PROGRAMS
from gateway.desk.room import find_programs
from gateway.worker.process_tree import read_process
print(*(one.pid for one in find_programs(PROGRAMS["claude"], read_process(int(sys.argv[1])))), flush=True)
"""


def test_a_program_that_started_the_gateway_is_known() -> None:
    words = [sys.executable, "-c", STARTS_GATEWAY, "claude", LOOKS]
    found, program = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert found == program


async def test_what_names_the_gateway_is_asked_whatever_hooks_say(desk: Desk) -> None:
    settings = "/home/ann/proj/.claude/settings.local.json"
    for args in ({"command": "hermes-gateway approvals yes x"}, {"file_path": settings}):
        asked = desk.ask(make_call("Bash" if "command" in args else "Edit", **args))
        await desk.wire.press(await desk.question(), "No", by=ANN)
        assert (await asked)[0] == 2


async def test_lines_of_ours_stay_in_effect_when_the_settings_lose_them(desk: Desk) -> None:
    whole = desk.file.read_text()
    ours = json.loads(whole)["hooks"]
    [group] = ours["ConfigChange"]
    words = [sys.executable, "-c", PROGRAM, group["hooks"][0]["command"]]
    [[entry]] = [one["hooks"] for one in ours["PreToolUse"]]
    matched = [{"matcher": "Read", "hooks": [entry]}]
    ended = [{"hooks": [entry | {"timeout": 1}]}]
    texts = ["{}", "{", *(json.dumps({"hooks": ours | {"PreToolUse": one}}) for one in (matched, ended))]
    off = json.dumps({"hooks": ours, "disableAllHooks": True})
    rows = [("user_settings", text) for text in (whole, *texts, off)]
    found = []
    for source, text in [*rows, ("project_settings", "{}"), ("project_settings", off)]:
        desk.file.write_text(text)
        change = make_event("ConfigChange", source=source, file_path=str(desk.file))
        run = lambda text=change: subprocess.run(words, input=text, capture_output=True, text=True)  # noqa: E731
        found.append('"block"' in (await to_thread.run_sync(run)).stdout)
    assert found == [False, *[True] * 5, False, True]


def ask_as_orphan(command: str, text: str) -> str:
    """Give the command its call when the shell that started it has ended, and return the answer."""
    reader, writer = os.pipe()
    with subprocess.Popen(["sh", "-c", f"exec 3<&0; {command} <&3 &"], stdin=reader, stdout=subprocess.PIPE) as shell:
        os.close(reader)
        shell.wait()
        os.write(writer, text.encode())
        os.close(writer)
        assert shell.stdout
        return shell.stdout.read().decode()


async def test_an_orphan_makes_nobody_a_program(desk: Desk) -> None:
    """Its parent adopted it, and is an ancestor of the person's terminal too."""
    [group] = json.loads(desk.file.read_text())["hooks"]["PreToolUse"]
    assert await to_thread.run_sync(ask_as_orphan, group["hooks"][0]["command"], make_call(command="ls")) == ""
    assert desk.gateway.call("status")["state"] == "ready"


async def open_call(desk: Desk, **args: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Put the program's own question about a call; the command does the same."""
    body = make_call(event="PermissionRequest", **args).encode()
    reader, writer = await asyncio.open_unix_connection(str(desk.gateway.home.desk_socket))
    writer.write(f"claude PermissionRequest 1 {len(body)}\n".encode() + body)
    return reader, writer


async def test_a_caller_that_says_more_than_its_call_is_denied(desk: Desk) -> None:
    reader, writer = await open_call(desk, command="ls")
    shown = await desk.question()
    writer.write(b"x")
    assert b'"deny"' in await reader.read()
    writer.close()
    await desk.closed(shown, "does not ask any more")


async def test_what_cannot_be_shown_is_denied_with_its_reason(desk: Desk) -> None:
    reader, long = await open_call(desk, command="x" * 200_001)
    assert b"Split it." in await reader.read()
    callers = [await open_call(desk, command=f"sleep {number}") for number in range(21)]
    answers = [asyncio.ensure_future(reader.read()) for reader, _ in callers]
    done, waiting = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    assert [b"20 questions wait" in one.result() for one in done] == [True]
    for one in waiting:
        one.cancel()
    for writer in (long, *(writer for _, writer in callers)):
        writer.close()


ASKS = """
import socket
def handle(event_type, context):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(PATH)
        one.sendall(BODY)
        print(one.recv(1000))
"""


async def test_the_gateway_s_own_processes_put_no_questions(desk: Desk) -> None:
    body = make_call(command="ls").encode()
    call = f"claude PreToolUse 1 {len(body)}\n".encode() + body
    given = f"PATH, BODY = {str(desk.gateway.home.desk_socket)!r}, {call!r}\n"
    await add_hook(desk, "asks", "events: [tool:after]\n", given + ASKS)
    assert await desk.ask(make_event("PostToolUse")) == (0, "", "")
    log = desk.gateway.home.hook_logs
    await until(lambda: "has started this itself" in "".join(one.read_text() for one in log.iterdir()))


def test_the_home_has_more_than_one_name() -> None:
    home = Path.home() / ".hermes"
    assert list_home_names(home) == (str(home), "/.hermes", ".hermes")
    assert list_home_names(Path("/srv/work")) == ("/srv/work",)


def test_a_home_with_blanks_is_one_gateway_and_odd_settings_are_named(tmp_path: Path) -> None:
    path, program = tmp_path / ".claude" / "settings.json", PROGRAMS["claude"]
    at = tmp_path / "my home" / "desk.sock"
    write_file(connect(program, path, at, DeskSettings()))
    again = connect(program, path, at, DeskSettings())
    assert (again.others, again.after) == ((), again.before)
    [(_, file)] = list_connections({"HOME": str(tmp_path)})
    write_file(file)
    assert (path.read_text(), list_connections({"HOME": str(tmp_path)})) == ("{}\n", [])
    path.write_text('{"hooks": {"Stop": [{"hooks": null}]}}')
    with pytest.raises(ConfigError, match="another form"):
        connect(program, path, at, DeskSettings())


def test_an_answer_of_another_form_is_none(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-E", ask.__file__, "claude", "PreToolUse", "ask", "9", str(tmp_path / "s")]
    with socket.socket(socket.AF_UNIX) as accepting:
        accepting.bind(command[-1])
        accepting.listen()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as asker:
            for answer in (b"2 x\n", b"\n\n0 2\nok"):
                with accepting.accept()[0] as connection:
                    assert connection.recv(100) == b"claude PreToolUse - 0\n"
                    connection.sendall(answer)
            assert asker.communicate()[0] == "ok"


def test_a_gateway_that_hangs_is_none_within_the_seconds_of_the_line(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-E", ask.__file__, "claude", "PreToolUse", "ask", "1", str(tmp_path / "s")]
    with socket.socket(socket.AF_UNIX) as accepting:
        accepting.bind(command[-1])
        accepting.listen()
        done = subprocess.run(command, input="{}", capture_output=True, text=True, timeout=ask.LONGEST_SILENCE)
    assert (done.returncode, done.stderr) == (ask.DENIED, ask.REASON)


def test_a_gateway_to_which_nothing_is_connected_loads_none_of_this() -> None:
    words = "import sys, gateway.daemon.process; print([one for one in sys.modules if 'gateway.desk' in one])"
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_imports_next_to_nothing(tmp_path: Path) -> None:
    """Each tool of the program waits for its start."""
    words = "import sys; before = {*sys.modules}\n"
    file = Path(__file__).parents[2] / "gateway" / "desk" / "ask.py"
    program = f"{words}exec(compile(open({str(file)!r}).read(), 'ask', 'exec'), {{'__name__': 'ask'}})\n"
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-E", "-c", f"{program}print({{*sys.modules}} - before)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "{'_socket'}"


def make_program(folder: Path, version: str) -> None:
    """Put a program into this folder that says its version, as Claude Code does."""
    folder.mkdir(exist_ok=True)
    (folder / "claude").write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    (folder / "claude").chmod(0o755)


async def test_the_doctor_says_what_stays_open_on_a_desk(desk: Desk, tmp_path: Path) -> None:
    desk.gateway.environ["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{desk.gateway.environ['PATH']}"
    doctor = lambda: to_thread.run_sync(desk.gateway.cli, "doctor", "--desk")  # noqa: E731
    make_program(tmp_path / "bin", "2.1.332")
    fine = await doctor()
    assert fine.returncode == 0, fine.stdout
    assert ("Claude Code 2.1.332: fine" in fine.stdout, "Codex: not connected" in fine.stdout) == (True, True)
    make_program(tmp_path / "bin", "2.1.197")
    assert "2.1.197 runs a tool if our command is missing" in " ".join((await doctor()).stdout.split())
    whole = json.loads(desk.file.read_text())
    desk.file.write_text(json.dumps(whole | {"disableAllHooks": True}))
    assert "`disableAllHooks` ends all hooks" in " ".join((await doctor()).stdout.split())
    del whole["hooks"]["PermissionRequest"]
    desk.file.write_text(json.dumps(whole).replace(str(desk.gateway.home.desk_socket), "/srv/other/desk.sock", 1))
    await to_thread.run_sync(desk.gateway.kill)
    said = " ".join((await doctor()).stdout.split())
    for words in ("ask another gateway, at /srv/other/desk.sock", "lines of ours are missing", "no gateway answers"):
        assert words in said
