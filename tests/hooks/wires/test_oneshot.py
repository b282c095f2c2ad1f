"""A program that is started for each event: one object on stdin, an answer by its end; nothing of it stays."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from gateway.hooks.wires.program import OneshotProgram, ProgramSpec
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.worker.process_marks import make_mark
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import command, is_alive
from tests.spine import until

pytestmark = pytest.mark.process
DECIDES = CallMeta(decides=True)
DETACH = """#!/bin/sh
name=go
grep -q stay && name=stay
setsid sh -c "echo \\$\\$ > $name; exec sleep 3600" > /dev/null 2>&1 &
until [ -s $name ]; do sleep 0.02; done
until [ $name = go ] || [ -e end ]; do sleep 0.02; done
"""


def is_written(file: Path) -> bool:
    return file.exists() and file.read_text().endswith("\n")


async def once(hook: ProgramSpec, name: str = "tool:before", fields: Any = None, timeout: float = 60) -> HookAnswer:
    wire = OneshotProgram(hook)
    try:
        return await wire.call(name, fields or {}, DECIDES, timeout)
    finally:
        await wire.stop(1)


async def test_a_one_shot_program_reads_one_object_and_answers_by_its_end(tmp_path: Path) -> None:
    hook = command(tmp_path, "#!/bin/sh\ncat > seen.json\necho not this >&2\nexit 2\n")
    answer = await once(hook, fields={"tool": "shell", "args": {"command": "rm"}})
    assert answer.result == {"decision": "deny", "message": "not this"}
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "event": "tool:before",
        "hook_event_name": "PreToolUse",
        "cwd": str(tmp_path),
        "tool_name": "Bash",
        "tool_input": {"command": "rm"},
        "tool": "shell",
        "args": {"command": "rm"},
    }
    assert "not this" in hook.log.read_text()


async def test_one_that_does_not_read_its_stdin_is_none_the_worse(tmp_path: Path) -> None:
    hook = command(tmp_path, "#!/bin/sh\necho '{\"args\": {}}'\n")
    assert (await once(hook, fields={"text": "x" * 1_000_000})).result == {"args": {}}


@pytest.mark.row("T27")
async def test_one_that_is_over_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    hook = command(tmp_path, "#!/bin/sh\ntrap '' TERM\nsleep 60 & echo $! > child\nwait\n")
    for limit in (0.3, 3, 30):  # a machine that stands still may not have begun it by then
        with pytest.raises(HookFailed, match=rf"more than {limit} s") as caught:
            await once(hook, timeout=limit)
        assert caught.value.kind == "timeout"
        if is_written(tmp_path / "child"):
            break
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))


async def test_what_it_detaches_ends_with_each_run_and_that_of_another_run_does_not(tmp_path: Path) -> None:
    hook = command(tmp_path, DETACH)
    hook = msgspec.structs.replace(hook, mark=make_mark(make_mark("test")))
    wire = OneshotProgram(hook)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.call, "agent:end", {"message": "stay"}, DECIDES, 60)
            await until(lambda: is_written(tmp_path / "stay"))
            await wire.call("agent:end", {"message": "go"}, DECIDES, 60)
            stays, goes = (int((tmp_path / name).read_text()) for name in ("stay", "go"))
            await until(lambda: not is_alive(goes))
            assert is_alive(stays)
            (tmp_path / "end").touch()
        await until(lambda: not is_alive(stays))
    finally:
        await wire.stop(1)


async def test_what_it_leaves_in_the_background_neither_holds_the_answer_nor_stays(tmp_path: Path) -> None:
    hook = command(tmp_path, "#!/bin/sh\nsleep 3600 & echo $! > child\nexit 0\n")
    assert await once(hook) == HookAnswer()
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())))


async def test_a_gigabyte_on_stdout_is_cut_short(tmp_path: Path) -> None:
    hook = command(tmp_path, "#!/bin/sh\nexec cat /dev/zero\n")
    with pytest.raises(HookFailed, match="more than 8 MB to stdout"):
        await once(hook)


@pytest.mark.row("T27")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    hook = ProgramSpec(name="weather", command=("no-such-program",), folder=tmp_path, log=tmp_path / "log", memory=None)
    with pytest.raises(HookFailed, match="no-such-program cannot be started") as caught:
        await once(hook)
    assert caught.value.kind == "short", "no decision of it failed"
