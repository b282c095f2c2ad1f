"""The gateway as on a system without /proc, subreapers, Landlock, files in memory and the like (macOS)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.doctor import DoctorTarget, check_kernel, check_sandbox
from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.testing import GatewayProcess
from gateway.worker.kernel import KernelSupport, find_kernel_support, is_live
from gateway.worker.landlock import OUTSIDERS
from gateway.worker.sandbox import SandboxSupport
from tests.worker.lesser_system import CANNOT

ROOT = Path(__file__).parent.parent.parent
LESSER = [sys.executable, "-m", "tests.worker.lesser_system"]
DENIES = "from gateway.hooks import Deny\n\n\ndef handle(event_type, context):\n    raise Deny('we do no sums')\n"
HANGS = """
import os, signal, time


def handle(event_type, context):
    if "hang" in context["message"]:
        with open(context.options["file"], "w") as file:
            file.write(str(os.getpid()))
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(1000)
"""
STARTS = """
import subprocess


def handle(event_type, context):
    with open(context.options["file"], "w") as file:
        file.write(str(subprocess.Popen(["sleep", "1000"]).pid))
"""
SEES = "def handle(event_type, context):\n    print('seen')\n"


class LesserProcess(GatewayProcess):
    """The daemon runs there; the commands beside it, where the test does."""

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*LESSER, *args],
            cwd=ROOT,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[LesserProcess]:
    tried = subprocess.run([*LESSER, "--version"], cwd=ROOT, capture_output=True, text=True)
    if tried.returncode == CANNOT:
        pytest.skip(tried.stderr)
    with LesserProcess(tmp_path / "home") as gateway:
        yield gateway


@pytest.mark.machine
@pytest.mark.process
def test_the_daemon_runs_hooks_and_ends_them(gateway: LesserProcess, tmp_path: Path) -> None:
    hanging, started = tmp_path / "hanging", tmp_path / "started"
    gateway.add_hook("denies", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": DENIES})
    limits = f"timeout: 1s\noptions: {{file: {hanging}}}\n"
    gateway.add_hook("hangs", {"HOOK.yaml": f"intercepts: [agent:start]\n{limits}", "handler.py": HANGS})
    gateway.add_hook(
        "starts", {"HOOK.yaml": f"events: [agent:end]\noptions: {{file: {started}}}\n", "handler.py": STARTS}
    )
    gateway.add_hook("held", {"HOOK.yaml": "events: [agent:end]\nreads: [/usr]\n", "handler.py": SEES})
    gateway.start()
    assert "we do no sums" in gateway.cli("chat", "-m", "what is 2 + 3").stdout
    assert gateway.cli("chat", "-m", "please hang").returncode == 0
    gateway.until(lambda: not is_live(int(hanging.read_text())))
    gateway.until(lambda: started.exists() and bool(started.read_text()))
    child = int(started.read_text())
    assert is_live(child)
    shutil.rmtree(gateway.home.hooks / "starts")
    gateway.until(lambda: not is_live(child))
    gateway.until(lambda: "cannot be restricted" in gateway.cli("hooks", "logs", "held").stdout)
    status = gateway.cli("status")
    assert status.returncode == 0
    assert "! hooks are restricted, and not in all of it: what a hook detaches is not found" in status.stdout
    assert gateway.stop()[0] == 0


def test_what_this_system_lacks_is_found_by_trying() -> None:
    assert find_kernel_support() == KernelSupport("linux", True, True, True, True)
    asked = (
        "from gateway.worker.kernel import find_kernel_support as f; found = f(); print(found.missing, found.has_proc)"
    )
    code = f"from tests.worker.lesser_system import *; hide_proc(); lose_calls(); {asked}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if "OSError" in done.stderr and os.geteuid() != 0:
        pytest.skip(done.stderr)
    assert "outlives it" in done.stdout
    assert "taken for you" in done.stdout
    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize(
    ("shell", "has_mounts", "is_told"), [("ask", False, True), ("ask", True, False), ("'off'", False, False)]
)
def test_the_doctor_says_where_commands_change_modes_elsewhere(
    tmp_path: Path, shell: str, has_mounts: bool, is_told: bool
) -> None:
    home = Home(tmp_path)
    home.own_folder.mkdir(mode=0o700)
    home.config.write_text(f"tools: {{shell: {shell}}}\n")
    configuration = load_configuration(load_settings_schema(), home, {})
    target = DoctorTarget(home, configuration, (), support=SandboxSupport(OUTSIDERS, True), has_mounts=has_mounts)
    said = [str(finding) for finding in check_sandbox(target)]
    assert any("can change modes, owners and times" in one for one in said) is is_told
    assert len(said) == is_told


def test_the_doctor_says_where_it_was_never_run(tmp_path: Path) -> None:
    def said(*support: str | bool) -> list[str]:
        target = DoctorTarget(Home(tmp_path), None, (), kernel=KernelSupport(*support))  # type: ignore[arg-type]
        return [finding.what for finding in check_kernel(target)]

    assert said("linux", True, True, True, True) == []
    found = said("darwin", False, False, False, False)
    assert found[0] == "the gateway is expected to work on darwin, and has not been tested there"
    assert len(found) == 4
