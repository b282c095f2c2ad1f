"""The units as files: systemd understands every line, they expose little, and they agree with the daemon."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.cli.service.units import UNIT
from gateway.errors import ExitCode
from tests.systemd.private import ROOT, shipped

KINDS = ("system", "user")


@pytest.fixture
def analyze() -> str:
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("systemd is not installed")
    return program


def settings(kind: str) -> dict[str, str]:
    lines = (ROOT / "systemd" / kind / UNIT).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("kind", KINDS)
def test_systemd_has_nothing_to_say_about_it(kind: str, analyze: str, tmp_path: Path) -> None:
    """A misspelt key is only a line on stderr, with exit code 0."""
    (tmp_path / UNIT).write_text(shipped(kind))
    command = [analyze, f"--{kind}", "verify", str(tmp_path / UNIT)]
    environment = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_system_service_is_exposed_to_little(analyze: str, tmp_path: Path) -> None:
    (tmp_path / UNIT).write_text(shipped("system"))
    command = [analyze, "security", "--offline=yes", "--threshold=40", str(tmp_path / UNIT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_system_service_waits_for_the_time_and_the_user_service_for_what_is_not_there_does_not() -> None:
    assert all("time-sync.target" in settings("system")[key].split() for key in ("Wants", "After"))
    assert "target" not in settings("user").get("Wants", "") + settings("user").get("After", "")


@pytest.mark.parametrize("kind", KINDS)
def test_it_knows_our_exit_codes(kind: str) -> None:
    unit = settings(kind)
    assert unit["RestartForceExitStatus"] == str(int(ExitCode.RESTART))
    assert unit["RestartPreventExitStatus"] == str(int(ExitCode.CONFIG))


@pytest.mark.parametrize("kind", KINDS)
def test_both_units_treat_the_process_alike(kind: str) -> None:
    same = ["Type", "NotifyAccess", "WatchdogSec", "Restart", "KillMode", "TimeoutStopSec", "MemoryMax", "TasksMax"]
    same.append("LimitCORE")
    assert {key: settings(kind)[key] for key in same} == {key: settings("system")[key] for key in same}
