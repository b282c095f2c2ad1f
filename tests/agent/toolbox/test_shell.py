"""The agent's shell: bounded in time, in output and in what it leaves behind, and asked for."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from functools import partial

import anyio
import pytest

from gateway.agent.context_files import ContextFiles
from gateway.agent.toolbox.chat import make_chat_tools
from gateway.agent.toolbox.shell import ShellOptions, make_shell_tool, run_command
from gateway.agent.toolbox.shell_rules import ShellPlaces
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.config.settings import SandboxSettings, ToolSettings
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.worker.process_tree import find_descendants, list_processes
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.sandbox import find_support
from tests.spine import until

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
async def fork_server():
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        yield fork_server


@pytest.fixture
def options(fork_server, tmp_path):
    return partial(make_options, fork_server, tmp_path)


def make_options(fork_server, folder, **settings):
    places = ShellPlaces(folder, (folder,), (), os.environ["PATH"])
    tools = ToolSettings(**settings)
    sandbox = ShellSandbox(tools.sandbox, find_support())
    return ShellOptions(
        tools,
        lambda _facts: places,
        {"PATH": os.environ["PATH"]},
        fork_server.run,
        sandbox,
        partial(ContextFiles(folder).watch, ()),
    )


async def output_of(shell, command, **facts):
    return (await run_command(shell, command, facts)).text


async def test_a_question_about_jobs_needs_no_approval_and_a_job_that_would_ask_it_does(options):
    args = {"command": "hermes cron list", "when": "20m"}
    (schedule,) = (one for one in make_chat_tools(options()) if one.name == "schedule")
    shell = make_shell_tool(options())
    assert callable(shell.asks)
    assert callable(schedule.asks)
    assert (shell.asks(args, {}), schedule.asks(args, {})) == (False, True)


@pytest.fixture
def shell(options):
    return options(shell_allow=("ls", "git"))


async def test_output_and_errors_come_together_with_the_exit_code(shell):
    assert await output_of(shell, "echo one; echo two >&2; exit 3") == "one\ntwo\n[exit code 3]"
    assert await output_of(shell, "true") == "[no output]"


async def test_it_runs_in_its_folder_with_its_environment_alone(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert await output_of(shell, "pwd") == str(tmp_path)
    assert "SECRET" not in await output_of(shell, "env")


async def test_it_has_no_input_to_wait_for(shell):
    assert await output_of(shell, "cat") == "[no output]"


async def test_at_its_limit_everything_that_it_started_is_ended(options):
    shell = options(shell_timeout=0.2)
    text = await output_of(shell, "echo begun; (trap '' TERM; sleep 7700.25) & sleep 7700.25")
    assert text == "begun\n[ended: it still ran after 0.2 seconds]"
    assert "sleep 7700.25" not in await output_of(shell, "ps -eo args | grep '[s]leep 7700.25' || true")


async def test_what_it_leaves_in_the_background_neither_holds_it_nor_outlives_it(shell):
    assert await output_of(shell, "sleep 7800.25 & echo done") == "done"
    assert "sleep 7800.25" not in await output_of(shell, "ps -eo args | grep '[s]leep 7800.25' || true")


async def test_a_stopped_turn_ends_it(shell):
    with anyio.move_on_after(0.1):
        await output_of(shell, "sleep 7900.25")
    assert "sleep 7900.25" not in await output_of(shell, "ps -eo args | grep '[s]leep 7900.25' || true")


# The five ways by which a process gets away from who started it.
DOUBLE_FORK = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        {}"
LEAVING = {
    "in the background": "sleep 8000.25 &",
    "a session of its own": "setsid sleep 8000.25 & sleep 0.1",
    "a subshell's session": "(setsid sleep 8000.25 &); sleep 0.1",
    "a double fork": DOUBLE_FORK.format("os.execvp('sleep', ['sleep', '8000.25'])"),
    "a fresh environment": DOUBLE_FORK.format("os.execve('/bin/sleep', ['sleep', '8000.25'], {})"),
}


@pytest.mark.parametrize("way", LEAVING)
@pytest.mark.parametrize("end", ["by itself", "at its limit", "stopped", "the server killed"])
async def test_nothing_that_a_command_started_outlives_it(fork_server, options, tmp_path, way, end):
    command, last = LEAVING[way], "" if end == "by itself" else "\nsleep 8000.25"
    if "fork" in command:
        (tmp_path / "leave.py").write_text(command)
        command = f"{sys.executable} leave.py; sleep 0.1"
    shell = options(shell_timeout=1 if end == "at its limit" else 3600)
    before, lost = find_sleepers(), pytest.raises(AgentError, match="the fork server ended")
    with anyio.move_on_after(1 if end == "stopped" else None):
        async with anyio.create_task_group() as tasks:
            if end == "the server killed":
                tasks.start_soon(kill_server, fork_server, before)
            with lost if end == "the server killed" else nullcontext():
                await output_of(shell, command + last)
    if end == "the server killed":
        await until(lambda: find_sleepers() == before)
    assert find_sleepers() == before


def find_sleepers(what="sleep 8000.25"):
    found = subprocess.run(["/bin/ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in found.splitlines() if line.split(None, 1)[1] == what}


async def kill_server(fork_server, before):
    await until(lambda: len(find_sleepers() - before) >= 2)
    os.kill(fork_server.pid, signal.SIGKILL)


async def test_a_command_that_kills_its_keeper_leaves_nothing_either(fork_server, options):
    shell = options(sandbox=SandboxSettings(mode="off"))
    assert await output_of(shell, "setsid sleep 81.25 & kill -9 $PPID; sleep 81.25") == "[exit code -9]"
    await until(lambda: not find_descendants({fork_server.pid}))


DAEMON = """
import os, sys, anyio
from pathlib import Path
from gateway.hooks.wires.fork_client import ForkServerClient
from tests.agent.toolbox.test_shell import make_options, output_of
from gateway.worker.protocol import ForkServerSettings
async def main():
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        fork_server.begin()
        print(fork_server.pid, flush=True)
        await output_of(make_options(fork_server, Path(sys.argv[1])), "(setsid sleep 82.25 &); sleep 82.25")
anyio.run(main)
"""


async def test_when_the_daemon_is_killed_nothing_of_its_commands_is_left(tmp_path):
    daemon = await anyio.open_process([sys.executable, "-c", DAEMON, str(tmp_path)])
    assert daemon.stdout
    fork_server = int(await daemon.stdout.receive())
    await until(lambda: len(find_sleepers("sleep 82.25")) >= 2)
    family = {fork_server, *(one.pid for one in find_descendants({fork_server}))}
    daemon.kill()
    await daemon.aclose()
    await until(lambda: not family & {one.pid for one in list_processes()})


async def test_a_program_finds_signals_descriptors_and_input_as_from_a_terminal(shell):
    text = await output_of(shell, "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd; yes | head -1")
    assert text.split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16, "0", "1", "2", "3", "y"]


async def test_a_flood_of_output_is_kept_at_both_ends_in_bounded_memory(options):
    shell = options(output_limit=1000)
    text = await output_of(shell, "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last")
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
    assert shell.needs_approval(command, {}) is asks


async def test_the_tool_asks_before_it_runs(stage, shell, tmp_path):
    call = {"tool_calls": [{"name": "shell", "args": {"command": "touch made"}}]}
    agent = stage.agent(call, "ok", tools=[make_shell_tool(shell)])
    paused = await stage.play(agent)
    assert paused.questions[0].prompt == "May I run shell?"
    assert not (tmp_path / "made").exists()
    stage.answers[paused.questions[0].id] = "once"
    assert (await stage.again(agent)).reply == "ok"
    assert (tmp_path / "made").exists()


async def test_a_shell_that_is_allowed_everything_does_not_ask(stage, options):
    call = {"tool_calls": [{"name": "shell", "args": {"command": "echo hi"}}]}
    tool = make_shell_tool(options(shell="allow"))
    result = await stage.play(stage.agent(call, "ok", tools=[tool]))
    assert result.entries[2].content == "hi"
