"""A program of any language is a hook: lasting, by JSON lines, or one process a call, by its end."""

import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import HookError
from gateway.hooks.wires.executable import CommandSpec, Executable, Oneshot
from gateway.hooks.wires.verdict import input_for, verdict
from gateway.hooks.wires.wire import Answer, CallMeta, HookFailed

pytestmark = pytest.mark.process
DECIDES = CallMeta(decides=True)

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}), flush=True)
"""


def spec(folder: Path, code: str, *words: str, **more: Any) -> CommandSpec:
    """A program in Python, or whatever `code` begins with."""
    folder.mkdir(exist_ok=True)
    program = folder / "hook"
    program.write_text(code if code.startswith("#!") else f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    log = folder / "hook.log"
    env = {"PATH": os.environ["PATH"], **more.pop("env", {})}
    return CommandSpec(name="weather", command=("./hook", *words), folder=folder, log=log, env=env, **more)


async def nothing(verb: str, params: dict[str, Any], during: str) -> Any:
    raise AssertionError(f"{verb} was asked for")


@asynccontextmanager
async def lasting(spec: CommandSpec, serve: Any = nothing, grace: float = 0.5) -> AsyncIterator[Executable]:
    async with anyio.create_task_group() as tasks:
        program = await Executable.start(spec, serve, tasks)
        try:
            yield program
        finally:
            await program.stop(grace)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(what: Any) -> None:
    with anyio.fail_after(5):
        while not what():  # noqa: ASYNC110 - what other processes do sets no event of ours
            await anyio.sleep(0.01)


async def test_a_lasting_program_is_asked_line_by_line(tmp_path: Path) -> None:
    code = ECHO.replace("ANSWER", '{"n": asked["params"]["n"] + 1, "method": asked["method"]}')
    async with lasting(spec(tmp_path, code)) as program:
        for n in range(3):
            answer = await program.call("my:event", {"n": n}, DECIDES, 5)
            assert answer.result == {"n": n + 1, "method": "my:event"}
        assert await program.call("my:event", b'{"n": 1}', CallMeta(), 5) == Answer()
    assert program.gone.reason == "it was stopped"


async def test_calls_go_side_by_side_and_answers_come_in_any_order(tmp_path: Path) -> None:
    code = """
import json, sys
first = json.loads(sys.stdin.readline())
second = json.loads(sys.stdin.readline())
for asked in (second, first):
    print(json.dumps({"id": asked["id"], "result": asked["params"]}), flush=True)
sys.stdin.read()
"""
    results: dict[int, Any] = {}

    async def ask(program: Executable, n: int) -> None:
        results[n] = (await program.call("my:event", {"n": n}, DECIDES, 5)).result

    async with lasting(spec(tmp_path, code)) as program, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, program, 1)
        tasks.start_soon(ask, program, 2)
    assert results == {1: {"n": 1}, 2: {"n": 2}}


async def test_it_may_ask_the_gateway_on_the_same_wire(tmp_path: Path) -> None:
    code = """
import json, sys
asked = json.loads(sys.stdin.readline())
request = {"id": "q", "method": "gateway.send", "params": {"text": "hi"}, "during": asked["meta"]["event"]}
print(json.dumps(request), flush=True)
said = json.loads(sys.stdin.readline())
print(json.dumps({"id": asked["id"], "result": {"said": said["result"]}}), flush=True)
"""

    async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
        return [verb, params, during]

    async with lasting(spec(tmp_path, code), serve) as program:
        answer = await program.call("my:event", {}, CallMeta(decides=True, event="e7"), 5)
    assert answer.result == {"said": ["send", {"text": "hi"}, "e7"]}


async def test_it_sees_its_declared_environment_and_options_alone(tmp_path: Path) -> None:
    code = "import os\n" + ECHO.replace("ANSWER", "dict(os.environ, cwd=os.getcwd(), group=str(os.getpgid(0)))")
    hook = spec(tmp_path, code, env={"API_KEY": "k"}, options={"threshold": 10})
    async with lasting(hook) as program:
        seen = (await program.call("my:event", {}, DECIDES, 5)).result
        assert seen.pop("group") == str(program.pid)
    assert seen.pop("cwd") == str(tmp_path)
    assert {name for name in seen if name not in ("LC_CTYPE", "PWD", "SHLVL", "_")} == {
        "PATH",
        "API_KEY",
        "HOOK_NAME",
        "HOOK_OPTIONS",
    }
    assert json.loads(seen["HOOK_OPTIONS"]) == {"threshold": 10}


async def test_what_it_writes_to_stderr_is_its_log(tmp_path: Path) -> None:
    hook = spec(tmp_path, "import sys\nsys.stderr.write('hello from here\\n')\n" + ECHO.replace("ANSWER", "None"))
    async with lasting(hook) as program:
        await program.call("my:event", {}, DECIDES, 5)
    assert "hello from here" in hook.log.read_text()


@pytest.mark.parametrize(
    ("answer", "kind", "what"),
    [
        ('"text"', "garbled", "not str"),
        ("[1]", "garbled", "not list"),
        ('{"decision": "perhaps"}', "garbled", "unknown decision"),
    ],
)
async def test_an_answer_that_means_nothing_is_a_failure(tmp_path: Path, answer: str, kind: str, what: str) -> None:
    async with lasting(spec(tmp_path, ECHO.replace("ANSWER", answer))) as program:
        with pytest.raises(HookFailed, match=what) as caught:
            await program.call("my:event", {}, DECIDES, 5)
    assert caught.value.kind == kind


async def test_an_error_is_what_it_says(tmp_path: Path) -> None:
    code = ECHO.replace('"result": ANSWER', '"error": {"code": 1, "message": "nope"}')
    async with lasting(spec(tmp_path, code)) as program:
        with pytest.raises(HookFailed, match="weather says: nope") as caught:
            await program.call("my:event", {}, DECIDES, 5)
    assert caught.value.kind == "raised"


async def test_a_question_comes_back_as_one(tmp_path: Path) -> None:
    code = ECHO.replace("ANSWER", '{"decision": "ask", "name": "may", "prompt": "May I?"}')
    async with lasting(spec(tmp_path, code)) as program:
        asked = (await program.call("tool:before", {}, DECIDES, 5)).ask
    assert asked
    assert (asked.name, asked.prompt) == ("may", "May I?")


async def test_chatter_on_stdout_ends_it_with_the_reason(tmp_path: Path) -> None:
    async with lasting(spec(tmp_path, "print('debugging', flush=True)\ninput()\n")) as program:
        with pytest.raises(HookFailed, match="debugging"):
            await program.call("my:event", {}, DECIDES, 5)
        assert program.gone


async def test_when_it_ends_the_call_ends_and_says_how(tmp_path: Path) -> None:
    async with lasting(spec(tmp_path, "import os, sys\nsys.stdin.readline()\nos._exit(7)\n")) as program:
        with pytest.raises(HookFailed, match="exit code 7") as caught:
            await program.call("my:event", {}, DECIDES, 5)
        assert caught.value.kind == "died"
        with pytest.raises(HookFailed, match="exit code 7"):
            await program.call("my:event", {}, DECIDES, 5)


async def test_over_its_time_it_is_told_and_may_go_on(tmp_path: Path) -> None:
    code = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said["method"] == "$cancel":
        print(json.dumps({"id": said["params"]["id"], "error": {"message": "cancelled"}}), flush=True)
    elif said["method"] == "my:fast":
        print(json.dumps({"id": said["id"], "result": None}), flush=True)
"""
    async with lasting(spec(tmp_path, code)) as program:
        with pytest.raises(HookFailed, match=r"over its 0.05 s") as caught:
            await program.call("my:slow", {}, DECIDES, 0.05)
        assert caught.value.kind == "timeout"
        assert await program.call("my:fast", {}, DECIDES, 5) == Answer()


async def test_what_ignores_everything_is_killed_with_its_children(tmp_path: Path) -> None:
    code = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
open("child", "w").write(str(child.pid))
while True:
    time.sleep(60)
"""
    async with lasting(spec(tmp_path, code)) as program:
        await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
        child = int((tmp_path / "child").read_text())
        before = time.monotonic()
        with pytest.raises(HookFailed) as caught:
            await program.call("my:event", {}, DECIDES, 0.05)
        assert caught.value.kind == "timeout"
        assert time.monotonic() - before < 2
        await until(lambda: not is_alive(child) and not is_alive(program.pid))


async def test_stopping_lets_it_end_by_itself_when_stdin_closes(tmp_path: Path) -> None:
    code = "import sys\nsys.stdin.read()\nopen('bye', 'w')\n"
    async with lasting(spec(tmp_path, code), grace=5):
        pass
    assert (tmp_path / "bye").exists()


@pytest.mark.row("T27")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    hook = CommandSpec(name="weather", command=("no-such-program",), folder=tmp_path, log=tmp_path / "log")
    async with anyio.create_task_group() as tasks:
        with pytest.raises(HookError, match="no-such-program cannot be started: No such file"):
            await Executable.start(hook, nothing, tasks)
    with pytest.raises(HookFailed, match="no-such-program cannot be started") as caught:
        await Oneshot(hook).call("my:event", {}, DECIDES, 5)
    assert caught.value.kind == "died"


async def once(hook: CommandSpec, name: str = "tool:before", fields: Any = None, timeout: float = 5) -> Answer:
    wire = Oneshot(hook)
    try:
        return await wire.call(name, fields or {}, DECIDES, timeout)
    finally:
        await wire.stop(1)


async def test_a_one_shot_program_reads_one_object_and_answers_by_its_end(tmp_path: Path) -> None:
    hook = spec(tmp_path, "#!/bin/sh\ncat > seen.json\necho not this >&2\nexit 2\n")
    answer = await once(hook, fields={"tool": "shell", "args": {"command": "rm"}})
    assert answer.result == {"decision": "deny", "message": "not this"}
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "event": "tool:before",
        "hook_event_name": "PreToolUse",
        "cwd": str(tmp_path),
        "tool_name": "shell",
        "tool_input": {"command": "rm"},
        "tool": "shell",
        "args": {"command": "rm"},
    }
    assert "not this" in hook.log.read_text()


async def test_one_that_does_not_read_its_stdin_is_none_the_worse(tmp_path: Path) -> None:
    hook = spec(tmp_path, "#!/bin/sh\necho '{\"args\": {}}'\n")
    assert (await once(hook, fields={"text": "x" * 1_000_000})).result == {"args": {}}


@pytest.mark.row("T27")
async def test_one_that_is_over_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    hook = spec(tmp_path, "#!/bin/sh\ntrap '' TERM\nsleep 60 & echo $! > child\nwait\n")
    with pytest.raises(HookFailed, match=r"more than 0.3 s") as caught:
        await once(hook, timeout=0.3)
    assert caught.value.kind == "timeout"
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))


async def test_what_it_leaves_in_the_background_neither_holds_the_answer_nor_stays(tmp_path: Path) -> None:
    hook = spec(tmp_path, "#!/bin/sh\nsleep 60 & echo $! > child\nexit 0\n")
    before = time.monotonic()
    assert await once(hook) == Answer()
    assert time.monotonic() - before < 2
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))


async def test_a_gigabyte_on_stdout_is_cut_short(tmp_path: Path) -> None:
    hook = spec(tmp_path, "#!/bin/sh\nexec cat /dev/zero\n")
    with pytest.raises(HookFailed, match="more than 8 MB to stdout"):
        await once(hook)


VERDICTS = [
    ("tool:before", 0, b"", False, None),
    ("tool:before", 0, b"looks fine", False, None),
    ("tool:before", 0, b'{"decision":"approve"}', False, None),
    ("tool:before", 0, b'{"suppressOutput":true,"systemMessage":"x"}', False, None),
    ("tool:before", 0, b'{"decision":"block","reason":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"action":"block","message":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"decision":"deny","message":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"continue":false,"stopReason":"enough"}', False, {"decision": "end", "reply": "enough"}),
    ("tool:before", 2, b"", False, {"decision": "deny", "message": "why"}),
    ("agent:end", 2, b"", False, {"decision": "retry", "message": "why"}),
    ("agent:end", 0, b'{"decision":"block","reason":"more"}', False, {"decision": "retry", "message": "more"}),
    ("agent:start", 0, b'{"context":"be kind"}', False, {"context": ["be kind"]}),
    ("tool:before", 0, b'{"args":{"a":1}}', True, {"args": {"a": 1}}),
    (
        "tool:before",
        0,
        b'{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}',
        False,
        {"decision": "deny", "message": "no"},
    ),
    (
        "tool:before",
        0,
        b'{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}',
        False,
        {"args": {"command": "ls"}},
    ),
]


@pytest.mark.parametrize(("name", "code", "stdout", "guard", "result"), VERDICTS)
def test_an_end_means_what_it_means_to_claude_code(
    name: str, code: int, stdout: bytes, guard: bool, result: Any
) -> None:
    assert verdict(name, code, stdout, "why", guard).result == result


def test_an_end_may_ask() -> None:
    said = b'{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"Really?"}}'
    asked = verdict("tool:before", 0, said, "", False).ask
    assert asked
    assert asked.prompt == "Really?"


@pytest.mark.row("T27")
@pytest.mark.parametrize(
    ("code", "stdout", "guard", "what"),
    [
        (1, b"", False, "exit code 1: why"),
        (127, b"", False, "exit code 127"),
        (-9, b"", False, "signal 9"),
        (0, b"{not json", False, "no JSON"),
        (0, b"looks fine", True, "no JSON"),
        (0, b"[]", True, "is a list"),
        (0, b'{"decision":"perhaps"}', False, "unknown decision"),
    ],
)
def test_every_other_end_is_a_failure(code: int, stdout: bytes, guard: bool, what: str) -> None:
    with pytest.raises(HookFailed, match=what):
        verdict("tool:before", code, stdout, "why", guard)


def test_names_of_the_event_win_over_names_of_claude_code() -> None:
    assert input_for("my:event", {"prompt": "mine", "text": "t"}, "/f", {"may": "yes"}) == {
        "event": "my:event",
        "hook_event_name": "my:event",
        "cwd": "/f",
        "prompt": "mine",
        "text": "t",
        "answers": {"may": "yes"},
    }


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["tool:before", "agent:end"]),
    st.integers(-9, 3),
    st.binary(max_size=60)
    | st.dictionaries(
        st.sampled_from(["decision", "action", "continue", "hookSpecificOutput", "reason", "args", "prompt"]),
        st.none()
        | st.booleans()
        | st.text(max_size=9)
        | st.sampled_from(["block", "deny", "ask", "allow", "retry"])
        | st.dictionaries(st.sampled_from(["permissionDecision", "updatedInput"]), st.text(max_size=4)),
    ).map(lambda said: json.dumps(said).encode()),
    st.booleans(),
)
def test_whatever_a_program_says_there_is_a_verdict_or_a_failure(
    name: str, code: int, stdout: bytes, guard: bool
) -> None:
    try:
        answer = verdict(name, code, stdout, "", guard)
    except HookFailed:
        return
    assert answer.result is None or isinstance(answer.result, dict)
