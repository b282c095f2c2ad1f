"""A program of any language is a hook that lasts: JSON lines on its stdin and stdout."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.errors import HookError
from gateway.hooks.wires.program import LastingProgram, ProgramSpec
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.testing.patience import wait_until
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import command, is_alive
from tests.spine import until

pytestmark = pytest.mark.process
DECIDES = CallMeta(decides=True)

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER}), flush=True)
"""


async def nothing(verb: str, params: dict[str, Any], during: str) -> Any:
    raise AssertionError(f"{verb} was asked for")


@asynccontextmanager
async def lasting(spec: ProgramSpec, serve: Any = nothing, grace: float = 0.5) -> AsyncIterator[LastingProgram]:
    async with anyio.create_task_group() as tasks:
        program = await LastingProgram.start(spec, serve, tasks)
        try:
            yield program
        finally:
            await program.stop(grace)


async def test_a_lasting_program_is_asked_line_by_line(tmp_path: Path) -> None:
    code = ECHO.replace("ANSWER", '{"n": asked["params"]["n"] + 1, "method": asked["method"]}')
    async with lasting(command(tmp_path, code)) as program:
        for n in range(3):
            answer = await program.call("my:event", {"n": n}, DECIDES, 60)
            assert answer.result == {"n": n + 1, "method": "my:event"}
        assert await program.call("my:event", b'{"n": 1}', CallMeta(), 5) == HookAnswer()
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

    async def ask(program: LastingProgram, n: int) -> None:
        results[n] = (await program.call("my:event", {"n": n}, DECIDES, 60)).result

    async with lasting(command(tmp_path, code)) as program, anyio.create_task_group() as tasks:
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

    async with lasting(command(tmp_path, code), serve) as program:
        answer = await program.call("my:event", {}, CallMeta(decides=True, event="e7"), 60)
    assert answer.result == {"said": ["send", {"text": "hi"}, "e7"]}


async def test_it_sees_its_declared_environment_and_options_alone(tmp_path: Path) -> None:
    code = "import os\n" + ECHO.replace("ANSWER", "dict(os.environ, cwd=os.getcwd(), group=str(os.getpgid(0)))")
    hook = command(tmp_path, code, env={"API_KEY": "k"}, options={"threshold": 10})
    async with lasting(hook) as program:
        seen = (await program.call("my:event", {}, DECIDES, 60)).result
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
    hook = command(tmp_path, "import sys\nsys.stderr.write('hello from here\\n')\n" + ECHO.replace("ANSWER", "None"))
    async with lasting(hook) as program:
        await program.call("my:event", {}, DECIDES, 60)
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
    async with lasting(command(tmp_path, ECHO.replace("ANSWER", answer))) as program:
        with pytest.raises(HookFailed, match=what) as caught:
            await program.call("my:event", {}, DECIDES, 60)
    assert caught.value.kind == kind


async def test_an_error_is_what_it_says(tmp_path: Path) -> None:
    code = ECHO.replace('"result": ANSWER', '"error": {"code": 1, "message": "nope"}')
    async with lasting(command(tmp_path, code)) as program:
        with pytest.raises(HookFailed, match="weather says: nope") as caught:
            await program.call("my:event", {}, DECIDES, 60)
    assert caught.value.kind == "raised"


async def test_a_question_comes_back_as_one(tmp_path: Path) -> None:
    code = ECHO.replace("ANSWER", '{"decision": "ask", "name": "may", "prompt": "May I?"}')
    async with lasting(command(tmp_path, code)) as program:
        asked = (await program.call("tool:before", {}, DECIDES, 60)).ask
    assert asked
    assert (asked.name, asked.prompt) == ("may", "May I?")


async def test_chatter_on_stdout_ends_it_with_the_reason(tmp_path: Path) -> None:
    async with lasting(command(tmp_path, "print('debugging', flush=True)\ninput()\n")) as program:
        with pytest.raises(HookFailed, match="debugging"):
            await program.call("my:event", {}, DECIDES, 60)
        assert program.gone


async def test_when_it_ends_the_call_ends_and_says_how(tmp_path: Path) -> None:
    async with lasting(command(tmp_path, "import os, sys\nsys.stdin.readline()\nos._exit(7)\n")) as program:
        with pytest.raises(HookFailed, match="exit code 7") as caught:
            await program.call("my:event", {}, DECIDES, 60)
        assert caught.value.kind == "died"
        with pytest.raises(HookFailed, match="exit code 7"):
            await program.call("my:event", {}, DECIDES, 60)


async def test_what_it_says_last_counts(tmp_path: Path) -> None:
    """However busy the gateway is when it answers and ends."""
    code = "import json, sys\nsys.stdin.readline()\nprint(json.dumps({'id': 1, 'result': {'last': 'x' * 30_000}}))\n"
    async with lasting(command(tmp_path, code)) as program, anyio.create_task_group() as tasks:
        tasks.start_soon(hold_until, lambda: not is_alive(program.pid))
        answer = await program.call("my:event", {}, DECIDES, 60)
    assert len(answer.result["last"]) == 30_000


async def hold_until(what: Callable[[], bool]) -> None:
    """Block the loop until then, so that no other task runs."""
    wait_until(what)


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
    async with lasting(command(tmp_path, code)) as program:
        with pytest.raises(HookFailed, match=r"over its 0.05 s") as caught:
            await program.call("my:slow", {}, DECIDES, 0.05)
        assert caught.value.kind == "timeout"
        assert await program.call("my:fast", {}, DECIDES, 60) == HookAnswer()


async def test_what_ignores_everything_is_killed_with_its_children(tmp_path: Path) -> None:
    code = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "3600"])
open("child", "w").write(str(child.pid))
while True:
    time.sleep(60)
"""
    async with lasting(command(tmp_path, code)) as program:
        await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
        child = int((tmp_path / "child").read_text())
        with pytest.raises(HookFailed) as caught:
            await program.call("my:event", {}, DECIDES, 0.05)
        assert caught.value.kind == "timeout"
        await until(lambda: not is_alive(child) and not is_alive(program.pid))


async def test_stopping_lets_it_end_by_itself_when_stdin_closes(tmp_path: Path) -> None:
    code = "import sys\nsys.stdin.read()\nopen('bye', 'w')\n"
    async with lasting(command(tmp_path, code), grace=5):
        pass
    assert (tmp_path / "bye").exists()


@pytest.mark.row("T27")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    hook = ProgramSpec(name="weather", command=("no-such-program",), folder=tmp_path, log=tmp_path / "log", memory=None)
    async with anyio.create_task_group() as tasks:
        with pytest.raises(HookError, match="no-such-program cannot be started: No such file"):
            await LastingProgram.start(hook, nothing, tasks)
    assert not (tmp_path / "log").exists()
