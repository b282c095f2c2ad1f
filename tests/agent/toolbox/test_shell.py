"""The agent's shell: bounded in time, in output and in what it leaves behind, and asked for."""

import os
import time

import anyio
import pytest

from gateway.agent.toolbox.shell import ShellOptions, make_shell_tool, run_command
from gateway.config.settings import ToolSettings


def shell_options(folder, **settings):
    return ShellOptions(ToolSettings(**settings), folder, {"PATH": os.environ["PATH"]})


@pytest.fixture
def shell(tmp_path):
    return shell_options(tmp_path, shell_allow=("ls", "git"))


async def test_output_and_errors_come_together_with_the_exit_code(shell):
    assert await run_command(shell, "echo one; echo two >&2; exit 3") == "one\ntwo\n[exit code 3]"
    assert await run_command(shell, "true") == "[no output]"


async def test_it_runs_in_its_folder_with_its_environment_alone(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert await run_command(shell, "pwd") == str(tmp_path)
    assert "SECRET" not in await run_command(shell, "env")


async def test_it_has_no_input_to_wait_for(shell):
    assert await run_command(shell, "cat") == "[no output]"


async def test_at_its_limit_everything_that_it_started_is_ended(tmp_path):
    shell = shell_options(tmp_path, shell_timeout=0.2)
    began = time.monotonic()
    text = await run_command(shell, "echo begun; (trap '' TERM; sleep 77.25) & sleep 77.25")
    assert text == "begun\n[ended: it still ran after 0.2 seconds]"
    assert time.monotonic() - began < 4
    assert "sleep 77.25" not in await run_command(shell, "ps -eo args | grep '[s]leep 77.25' || true")


async def test_what_it_leaves_in_the_background_neither_holds_it_nor_outlives_it(shell):
    with anyio.fail_after(4):
        assert await run_command(shell, "sleep 78.25 & echo done") == "done"
    assert "sleep 78.25" not in await run_command(shell, "ps -eo args | grep '[s]leep 78.25' || true")


async def test_a_stopped_turn_ends_it(shell):
    with anyio.move_on_after(0.1):
        await run_command(shell, "sleep 79.25")
    assert "sleep 79.25" not in await run_command(shell, "ps -eo args | grep '[s]leep 79.25' || true")


async def test_a_flood_of_output_is_kept_at_both_ends_in_bounded_memory(tmp_path):
    shell = shell_options(tmp_path, output_limit=1000)
    text = await run_command(shell, "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert text.startswith("first\nxxx")
    assert text.endswith("xxx\nlast")
    assert "bytes left out" in text
    assert len(text) < 1100


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("ls -la /tmp", False),
        ("git status", False),
        ("rm -rf /", True),
        ("ls; rm -rf /", True),
        ("ls && rm x", True),
        ("ls $(rm x)", True),
        ("ls `rm x`", True),
        ("ls > x", True),
        ("ls | sh", True),
        ("ls\nrm x", True),
        ("/bin/ls", True),
        ("lsof", True),
        (" ", True),
        ("GIT_PAGER=x git log", True),
    ],
)
def test_only_plain_commands_of_allowed_programs_run_unasked(shell, command, asks):
    assert shell.needs_approval(command) is asks


async def test_the_tool_asks_before_it_runs(stage, shell, tmp_path):
    call = {"tool_calls": [{"name": "shell", "args": {"command": "touch made"}}]}
    agent = stage.agent(call, "ok", tools=[make_shell_tool(shell)])
    paused = await stage.play(agent)
    assert paused.questions[0].prompt == "May I run shell: touch made"
    assert not (tmp_path / "made").exists()
    stage.answers[paused.questions[0].id] = "once"
    assert (await stage.again(agent)).reply == "ok"
    assert (tmp_path / "made").exists()


async def test_a_shell_that_is_allowed_everything_does_not_ask(stage, tmp_path):
    call = {"tool_calls": [{"name": "shell", "args": {"command": "echo hi"}}]}
    tool = make_shell_tool(shell_options(tmp_path, shell="allow"))
    result = await stage.play(stage.agent(call, "ok", tools=[tool]))
    assert result.entries[2].content == "hi"
