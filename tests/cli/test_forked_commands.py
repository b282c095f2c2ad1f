"""A command forked from a warm process equals the program; and each verb starts as a program, too."""

import signal
import subprocess
from pathlib import Path

import pytest

from gateway.cli.program import COMMANDS
from gateway.testing import GatewayProcess
from gateway.testing.forked_command import PROGRAM, ForkedCommand, begin_command

pytestmark = pytest.mark.process


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_verb_says_the_same_as_a_program(verb: str, gateway: GatewayProcess) -> None:
    words, environ = [verb, "--help"], gateway.environ
    program = subprocess.run([*PROGRAM, *words], env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    forked = gateway.cli(*words)
    assert program.returncode == 0
    assert (forked.returncode, forked.stdout, forked.stderr) == (0, program.stdout, program.stderr)


@pytest.mark.parametrize("words", [["status"], ["nonsense"], ["send", "--to"], ["--home", "elsewhere", "status"]])
def test_a_command_ends_as_the_program_does(
    words: list[str], gateway: GatewayProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = subprocess.run([*PROGRAM, *words], env=gateway.environ, capture_output=True, text=True)
    forked = gateway.cli(*words)
    assert (forked.returncode, forked.stdout, forked.stderr) == (program.returncode, program.stdout, program.stderr)


def test_a_forked_gateway_is_a_process_of_its_own(gateway: GatewayProcess) -> None:
    gateway.start()
    assert isinstance(gateway.process, ForkedCommand)
    with pytest.raises(subprocess.TimeoutExpired):
        gateway.process.communicate(timeout=0.01)
    assert gateway.process.poll() is None
    code, printed, logged = gateway.stop(signal.SIGINT)
    assert (code, "talk to it" in printed, "SIGINT: stopping" in logged) == (0, True, True)
    gateway.start()
    gateway.kill()
    assert gateway.process.returncode == -signal.SIGKILL


def test_what_python_reads_as_it_starts_takes_a_program(gateway: GatewayProcess) -> None:
    assert begin_command(["status"], {**gateway.environ, "PYTHONPATH": "/elsewhere"}) is None
