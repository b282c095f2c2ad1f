"""A gateway that may open few files: ten hooks work, a guard stays shut while none is free, and too few are refused."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.daemon.own_process import FEWEST_DESCRIPTORS
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = [pytest.mark.process, pytest.mark.thorough]

FEW = 256
GUARD = {
    "HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: calculate}\n",
    "handler.py": "from gateway.hooks import Deny\ndef handle(name, context):\n    raise Deny('the guard says no')\n",
}
NOTE = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(name, context): pass\n"}


def list_descriptors(pid: int) -> set[int]:
    return {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with GatewayProcess(tmp_path / "home", forks=False) as gateway:
        gateway.script(wants("six", "calculate", expression="6*7"))
        gateway.add_hook("guard", GUARD)
        for number in range(9):
            gateway.add_hook(f"note-{number}", NOTE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, before[1]))
        try:
            gateway.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        yield gateway


def states(gateway: GatewayProcess) -> dict[str, str]:
    return {one["name"]: one["state"] for one in gateway.call("hooks.list")["hooks"] if one["origin"] == "home"}


def test_a_guard_stays_shut_while_no_descriptor_is_free(gateway: GatewayProcess) -> None:
    process = gateway.process
    assert process
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FEW, hard))
    gateway.until(lambda: set(states(gateway).values()) == {"loaded"})
    gateway.say("six", "before")
    assert last_result(gateway, "before") == "the guard says no"
    free = next(one for one in range(FEW) if one not in list_descriptors(process.pid))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (free, hard))
    handler = gateway.home.hooks / "guard" / "handler.py"
    handler.write_text(handler.read_text() + "# edited\n")
    gateway.until(lambda: "Too many open files" in gateway.home.log.read_text())
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FEW, hard))
    gateway.say("six", "after")
    assert last_result(gateway, "after") == "the guard says no"
    gateway.until(lambda: not gateway.call("hooks.info", {"name": "guard"})["reason"])


def test_too_few_are_refused_with_the_number_that_it_needs(tmp_path: Path) -> None:
    script = f"ulimit -n {FEWEST_DESCRIPTORS - 1}; exec {Path(sys.executable).with_name('hermes-gateway')} run"
    environ = {**os.environ, "HERMES_HOME": str(tmp_path / "home")}
    done = subprocess.run(["/bin/sh", "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"needs {FEWEST_DESCRIPTORS}" in done.stderr
    assert "ulimit -n 1024" in done.stderr
    assert "Traceback" not in done.stderr
