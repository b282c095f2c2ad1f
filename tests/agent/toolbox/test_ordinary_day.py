"""The number of questions on an ordinary day under each setting: people approve unread if there are too many."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from gateway.agent.toolbox.shell import run_command
from gateway.config.shell_presets import PRESETS
from gateway.worker.sandbox import find_support
from tests.agent.toolbox.test_shell_sandbox import OWNER, fork_server, shell_in

__all__ = ["fork_server", "shell_in"]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock"),
]

DAY = tomllib.loads(Path(__file__).with_name("ordinary_day.toml").read_text())
COMMANDS = [command for kind in DAY.values() for command in kind]
FILES = {
    "README.md": "About this.\n",
    "main.py": "# TODO: more\nprint('hello')\n",
    "data.csv": "a,x,1\nb,y,2\n",
    "notes.txt": "one\n",
    "config.json": "{}\n",
    "Makefile": "test:\n\tpython3 main.py\n",
}


@pytest.fixture
def workspace(shell_in):
    root = shell_in().find_places({}).folder
    for name, text in FILES.items():
        (root / name).write_text(text)
    (root / "link").unlink()
    commit = ("-c", "user.name=me", "-c", "user.email=me@example.org", "commit", "-qm", "begun")
    for words in (("init", "-q"), ("add", "-A"), commit):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


async def test_what_stays_in_the_workspace_runs_in_the_sandbox_without_a_question(shell_in, workspace):
    shell = shell_in(shell="sandboxed")
    failed = {}
    for command in DAY["inside"]:
        output = await run_command(shell, command, OWNER)
        if "[exit code" in output.text:
            failed[command] = output.text
    assert failed == {}


# Under `ask` a command that needs more than the sandbox asks twice; under `sandboxed` what needs the network asks too.
@pytest.mark.parametrize(
    ("setting", "rules", "questions"),
    [("ask", (), 55), ("ask", tuple(PRESETS), 34), ("sandboxed", (), 8), ("allow", (), 5)],
)
def test_how_often_an_owner_is_asked(shell_in, workspace, setting, rules, questions):
    assert len(COMMANDS) == 50
    shell = shell_in(shell=setting, rules=rules)
    first = [command for command in COMMANDS if shell.needs_approval(command, OWNER)]
    beyond = DAY["outside"] + (DAY["network"] if setting == "sandboxed" else [])
    assert len(first) + len(beyond) == questions
