"""The system unit as it is shipped, under a real systemd in private namespaces, with the real daemon."""

import shutil
import sys
from pathlib import Path

import pytest

from gateway.cli.service.units import UNIT
from tests.systemd.private import System

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

HOME = "/var/lib/hermes-gateway"


def test_it_is_ready_says_so_and_stops_well(system: System) -> None:
    """`start` returns when it serves; it has a status in words; stopped, it ends by itself."""
    system.systemctl("start", UNIT)
    assert system.show("ActiveState") == "active", system.words.read_text()
    assert system.show("StatusText")
    system.systemctl("stop", UNIT)
    assert (system.show("Result"), system.show("ActiveState")) == ("success", "inactive")
    assert system.show("ExecMainCode") == "1", "it exited, and was not killed"


def test_a_hung_process_is_killed_and_started_again(system: System) -> None:
    system.systemctl("start", UNIT)
    hung = system.show("MainPID")
    system.systemctl("kill", "--signal=SIGSTOP", "--kill-whom=main", UNIT)
    system.wait("NRestarts", "1")
    system.wait("ActiveState", "active")
    assert system.show("MainPID") != hung


def test_a_reload_leaves_it_serving(system: System) -> None:
    system.systemctl("start", UNIT)
    before = system.show("MainPID")
    system.systemctl("reload", UNIT)
    system.wait("ActiveState", "active")
    assert (system.show("MainPID"), system.show("NRestarts")) == (before, "0")


def test_a_wrong_configuration_is_not_tried_again(system: System) -> None:
    config = system.path(f"{HOME}/hermes-gateway/config.yaml")
    config.parent.mkdir(parents=True)
    config.write_text("gateway: [this is not a mapping")
    system.systemctl("start", UNIT)
    system.wait("ActiveState", "failed")
    assert (system.show("ExecMainStatus"), system.show("NRestarts")) == ("78", "0")


def test_what_it_writes_is_its_own_alone(system: System) -> None:
    system.systemctl("start", UNIT)
    ours = [path for path in system.path(HOME).rglob("*") if not path.is_symlink()]
    assert ours
    assert [str(path) for path in ours if path.stat().st_mode & 0o077] == []


def test_a_secret_in_the_credential_store_reaches_it(system: System) -> None:
    system.systemctl("start", UNIT)
    secret = system.path(f"/run/credentials/{UNIT}/OPENAI_API_KEY", of=int(system.show("MainPID")))
    assert secret.read_text() == "from-the-credstore"


def test_the_hardening_lets_hooks_live(system: System, tmp_path: Path) -> None:
    """Node makes its code executable while it runs; a hook may be nicer than the gateway, and start threads."""
    if not (node := shutil.which("node")):
        pytest.skip("Node is not installed")
    threads = "new (require('worker_threads').Worker)('', {eval: true}).on('exit', code => process.exit(code))"
    nicer = "import os, threading; os.nice(1); threading.Thread(target=int).start()"
    drop_in = tmp_path / "units" / f"{UNIT}.d" / "hooks.conf"
    drop_in.write_text(f'[Service]\nExecStartPre={node} -e "{threads}"\nExecStartPre={sys.executable} -c "{nicer}"\n')
    system.systemctl("daemon-reload")
    system.systemctl("start", UNIT)
    assert system.show("ActiveState") == "active", system.words.read_text()
