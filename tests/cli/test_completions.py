"""Completions by Tab, from the shells themselves with the file that `hermes-gateway completions` prints."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waits import wait_readable

PROGRAM = Path(sys.executable).parent / "hermes-gateway"
CASES = {
    "hermes-gateway sess": "sessions",
    "hermes-gateway --home /tmp hooks dead": "dead-letters",
    "hermes-gateway hooks install --ye": "--yes",
    "hermes-gateway completions fi": "fish",
    "hermes-gateway run --log-level warn": "warning",
}
"""Of each there is one."""
BASH = "COMP_WORDS=({words}); COMP_CWORD={last}; COMPREPLY=(); _hermes_gateway; echo ${{COMPREPLY[@]}}"
pytestmark = pytest.mark.process


@pytest.fixture
def printed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    done = subprocess.run([PROGRAM, "completions", shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    file = tmp_path / "_hermes-gateway"
    file.write_text(done.stdout)
    return file


@pytest.mark.parametrize("printed", ["bash"], indirect=True)
def test_bash(printed: Path) -> None:
    asked = [BASH.format(words=line, last=len(line.split()) - 1) for line in CASES]
    done = subprocess.run(["bash", "-c", "\n".join([f". {printed}", *asked])], capture_output=True, text=True)
    assert done.stdout.splitlines() == list(CASES.values()), done.stderr


@pytest.mark.parametrize("printed", ["fish"], indirect=True)
def test_fish(printed: Path) -> None:
    asked = [f'complete -C "{line}"' for line in CASES]
    environ = {**os.environ, "HOME": str(printed.parent)}
    command = ["fish", "--no-config", "-c", "\n".join([f"source {printed}", *asked])]
    done = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == list(CASES.values()), done.stderr


@pytest.mark.parametrize("printed", ["zsh"], indirect=True)
def test_zsh(printed: Path) -> None:
    place = printed.parent
    (place / ".zshrc").write_text(f"PROMPT='ready> '\nfpath=({place} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n")
    for line, completed in CASES.items():
        press_tab(place, line, f"{line[: line.rindex(' ')]} {completed}")


def press_tab(place: Path, line: str, wanted: str) -> None:
    """Press Tab in an interactive zsh, and return the line."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(place)
        os.execvpe("zsh", ["zsh", "-d", "-i"], {**os.environ, "ZDOTDIR": str(place), "TERM": "dumb", "COLUMNS": "200"})
    try:
        read_until(terminal, "ready> ")
        os.write(terminal, f"{line}\t".encode())
        read_until(terminal, wanted)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_until(terminal: int, wanted: str) -> None:
    said = b""
    while wanted.encode() not in said:
        wait_readable(terminal, f"{wanted!r} behind {said!r}")
        said += os.read(terminal, 4096)
