"""`hooks dev`: what one writes is what one sees, in a gateway that goes with it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.daemon.home_lock import lock_holder_of
from gateway.errors import NotRunning
from gateway.hooks.folders.own_changes import MOST_WHILE_LOADED
from gateway.testing import GatewayProcess
from tests.cli.typist import Typist

pytestmark = pytest.mark.process

LIMIT = 120.0  # seconds, on a busy machine
HANDLER = """
import os
from pathlib import Path


def handle(event_type, context):
    context["text"] = "what is 6 * 7"
    print("the key is", os.environ["SHOUT_KEY"])
    try:
        Path(os.environ["SHOUT_DIARY"]).write_text("seen")
    except OSError as error:
        print("it is held:", type(error).__name__)
"""

CHANGES_ITSELF = """
with open({loads!r}, "a") as file:
    file.write("x")
Path(__file__).with_name("made.py").write_text(f"AT = {{os.getpid()}}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shout"
    folder.mkdir()
    (folder / "HOOK.yaml").write_text("intercepts: [message:received]\nenv: [SHOUT_KEY, SHOUT_DIARY]\n")
    (folder / "handler.py").write_text(HANDLER)
    return folder


@pytest.fixture
def shell(tmp_path: Path) -> GatewayProcess:
    """Make the environment of a person with a home of their own, where nothing runs, and a forbidden token."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    given = {"SHOUT_KEY": "loud", "SHOUT_DIARY": str(tmp_path / "diary"), "TELEGRAM_BOT_TOKEN": "1:nobody"}
    shell = GatewayProcess(tmp_path / "home")
    shell.environ |= {**given, "TMPDIR": str(temporary)}
    return shell


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "gateway.cli", "hooks", "dev", str(folder), *words]


def has_left_nothing(shell: GatewayProcess) -> bool:
    return not shell.home.root.exists() and not list(Path(shell.environ["TMPDIR"]).iterdir())


@pytest.mark.timeout(3 * LIMIT)
def test_lines_of_a_pipe_go_through_it_with_the_limits_of_an_install_or_as_placed(
    folder: Path, shell: GatewayProcess, tmp_path: Path
) -> None:
    for words, is_held in (((), True), (("--trusted",), False)):
        ran = subprocess.run(
            command(folder, *words), env=shell.environ, input="hello\n", capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert "The result is 42." in ran.stdout
        assert "message:received agent:main:terminal:dm:main" in ran.stdout
        assert ("it is held:" in ran.stdout, (tmp_path / "diary").exists()) == (is_held, not is_held)
        assert ("is given    SHOUT_KEY, SHOUT_DIARY" in ran.stdout) == is_held
        assert has_left_nothing(shell)


@pytest.mark.timeout(3 * LIMIT)
def test_a_save_counts_at_once_and_a_broken_one_changes_nothing(folder: Path, shell: GatewayProcess) -> None:
    with Typist(shell, "hooks", "dev", str(folder)) as person:
        person.sees("Ctrl-C ends")
        person.type("hello\r")
        person.sees("The result is 42.")
        (folder / "handler.py").write_text("def broken(:\n")
        person.sees("shout would not run:")
        (folder / "handler.py").write_text(HANDLER)
        person.sees("shout is as it was before, and runs on")
        (folder / "handler.py").write_text(HANDLER.replace("6 * 7", "6 * 8"))
        person.sees("shout is loaded")
        person.type("hello again\r")
        person.sees("The result is 48.")
        person.type("\x03")
        assert person.leaves() == 0
    assert has_left_nothing(shell)


@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize("words", [(), ("--trusted",)])
def test_an_editor_that_saves_by_itself_is_followed(
    folder: Path, shell: GatewayProcess, words: tuple[str, ...]
) -> None:
    with Typist(shell, "hooks", "dev", str(folder), *words) as person:
        person.sees("Ctrl-C ends")
        for n in range(2 * MOST_WHILE_LOADED):
            saved = folder.with_name("saved")  # in one step: a file that is half written may be loaded, and fails
            saved.write_text(HANDLER.replace("6 * 7", f"6 * {n}"))
            saved.replace(folder / "handler.py")
            assert "hook:failed" not in person.sees("shout is loaded")
        person.type("hello\r")
        assert "hook:failed" not in person.sees("The result is 54.")


@pytest.mark.timeout(3 * LIMIT)
def test_one_that_changes_itself_is_held_back_and_that_is_said(folder: Path, shell: GatewayProcess) -> None:
    loads = folder.with_name("loads")
    with Typist(shell, "hooks", "dev", str(folder), "--trusted") as person:
        person.sees("Ctrl-C ends")
        (folder / "handler.py").write_text(HANDLER + CHANGES_ITSELF.format(loads=str(loads)))
        person.sees("it changes its own code as it is loaded; it is looked at again in 2 s")
        assert MOST_WHILE_LOADED < len(loads.read_text()) <= 2 * MOST_WHILE_LOADED + 2


@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_ends_its_gateway(folder: Path, shell: GatewayProcess, ending: signal.Signals) -> None:
    (folder / "HOOK.yaml").write_text("intercept: [message:received]\n")
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        command(folder), env=shell.environ, stdin=pipe, stdout=pipe, stderr=both, text=True
    ) as running:
        assert running.stdout
        said = iter(running.stdout.readline, "")
        assert any("no event is named" in line for line in said)
        (folder / "HOOK.yaml").write_text("intercepts: [message:received]\nenv: [SHOUT_KEY, SHOUT_DIARY]\n")
        assert any("shout is loaded" in line for line in said)
        running.send_signal(ending)
        assert running.wait() == 0
    assert has_left_nothing(shell)


@pytest.mark.timeout(3 * LIMIT)
def test_one_that_was_killed_is_cleared_away_by_the_next(folder: Path, shell: GatewayProcess) -> None:
    with Typist(shell, "hooks", "dev", str(folder)) as first:
        first.sees("Ctrl-C ends")
        left = next(Path(shell.environ["TMPDIR"]).glob("hermes-dev-*"))
        beside = subprocess.run(command(folder), env=shell.environ, input="hello\n", capture_output=True, text=True)
        assert (beside.returncode, left.exists()) == (0, True)  # that one lives
        first.process.kill()
        first.process.wait()
    if sys.platform == "linux":  # elsewhere the next one ends it
        shell.until(lambda: not lock_holder_of(Home(left / "home").lock), LIMIT)
    again = subprocess.run(command(folder), env=shell.environ, input="hello\n", capture_output=True, text=True)
    assert (again.returncode, has_left_nothing(shell)) == (0, True), again.stderr
    with pytest.raises(NotRunning):
        call_gateway(Home(left / "home").socket, "status")


@pytest.mark.timeout(3 * LIMIT)
def test_another_name_has_another_log_and_a_folder_that_went_is_named(folder: Path, shell: GatewayProcess) -> None:
    with Typist(shell, "hooks", "dev", str(folder)) as person:
        person.sees("Ctrl-C ends")
        person.type("hello\r")
        person.sees("the key is loud")
        manifest = (folder / "HOOK.yaml").read_text()
        (folder / "HOOK.yaml").write_text(f"name: louder\n{manifest}")
        person.sees("louder is loaded")
        (folder / "handler.py").write_text(HANDLER.replace("the key is", "louder has"))
        person.sees("louder is loaded")
        person.type("hello again\r")
        person.sees("louder has loud")
        folder.rename(folder.with_name("elsewhere"))
        person.sees("shout is not there any more")
        person.type("\x03")
        assert person.leaves() == 0
    assert has_left_nothing(shell)


def test_what_is_no_hook_is_refused_before_anything_starts(shell: GatewayProcess, tmp_path: Path) -> None:
    ran = subprocess.run(command(tmp_path), env=shell.environ, capture_output=True, text=True)
    assert (ran.returncode, "has no HOOK.yaml" in ran.stderr, "hooks new" in ran.stderr) == (1, True, True)
