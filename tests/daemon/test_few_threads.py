"""A gateway that may start no more threads and processes goes on, and all is well again when it may."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.daemon.own_process import FEWEST_THREADS
from gateway.testing import GatewayProcess
from gateway.worker.process_tree import find_descendants
from tests.hermes.test_plugins import last_result, wants

CGROUPS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
FOLDER = next((place for place in CGROUPS if (place / "cgroup.procs").exists() and os.access(place, os.W_OK)), None)
pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.thorough,
    pytest.mark.skipif(os.geteuid() == 0 and FOLDER is None, reason="nothing bounds the processes of root here"),
]
GUARD = {
    "HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: calculate}\n",
    "handler.py": "from gateway.hooks import Deny\ndef handle(name, context):\n    raise Deny('the guard says no')\n",
}
TOLD = {
    "HOOK.yaml": "events: [agent:end]\ndelivery: durable\n",
    "handler.py": "import os\ndef handle(name, context):\n"
    "    with open(os.environ['HERMES_HOME'] + '/told', 'a') as told:\n        told.write('x\\n')\n",
}
LASTING = {
    "HOOK.yaml": f"intercepts: [agent:start]\ncommand: [{sys.executable}, ./hook.py]\n",
    "hook.py": "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    if 'id' in asked:\n"
    "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': None}), flush=True)\n",
}
MESSAGES = 12


@contextmanager
def bounded(pid: int) -> Iterator[None]:
    """It and its children start nothing inside."""
    pids = [pid, *(one.pid for one in find_descendants({pid}))]
    if os.geteuid():
        before = {one: resource.prlimit(one, resource.RLIMIT_NPROC) for one in pids}
        for one, (_, hard) in before.items():
            resource.prlimit(one, resource.RLIMIT_NPROC, (1, hard))
        yield
        for one, limit in before.items():
            resource.prlimit(one, resource.RLIMIT_NPROC, limit)
        return
    assert FOLDER
    group = FOLDER / f"few-threads-{pid}"
    group.mkdir()
    for one in pids:
        (group / "cgroup.procs").write_text(str(one))
    (group / "pids.max").write_text("1")
    yield
    (group / "pids.max").write_text("max")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home", forks=False) as gateway:
        gateway.script(wants("six", "calculate", expression="6*7"), wants("files", "list_files", path="."))
        for name, files in (("guard", GUARD), ("told", TOLD), ("lasting", LASTING)):
            gateway.add_hook(name, files)
        yield gateway
    group = FOLDER and gateway.process and FOLDER / f"few-threads-{gateway.process.pid}"
    if group and group.exists():
        gateway.until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def told_of_hooks(gateway: GatewayProcess, what: str) -> dict[str, str]:
    return {one["name"]: one[what] for one in gateway.call("hooks.list")["hooks"] if one["origin"] == "home"}


def are_loaded(gateway: GatewayProcess) -> bool:
    return set(told_of_hooks(gateway, "state").values()) == {"loaded"}


def test_all_is_answered_nothing_is_unguarded_and_what_could_not_start_starts(gateway: GatewayProcess) -> None:
    gateway.start()
    gateway.until(lambda: are_loaded(gateway))
    assert gateway.process
    with ThreadPoolExecutor(MESSAGES) as people:
        with bounded(gateway.process.pid):
            said = ("six", "files")
            asked = [people.submit(gateway.say, said[number % 2], f"chat-{number}") for number in range(MESSAGES)]
            gateway.add_hook("new", GUARD)
            gateway.until(lambda: "no process could be made" in told_of_hooks(gateway, "reason").get("new", ""))
            answers = [one.result()["status"] for one in asked]
            os.kill(gateway.call("hooks.info", {"name": "lasting"})["pid"], 9)
            gateway.until(lambda: told_of_hooks(gateway, "state")["lasting"] == "waiting")
            assert "lasting guards this" in gateway.say("six", "shut")["reply"]
        assert set(answers) == {"ok"}
        assert {last_result(gateway, f"chat-{number}") for number in range(0, MESSAGES, 2)} == {"the guard says no"}
    gateway.until(lambda: are_loaded(gateway))
    assert gateway.say("files", "after")["status"] == "ok"
    gateway.until(lambda: (gateway.home.root / "told").read_text().count("x") == MESSAGES + 1)


def test_a_start_with_too_few_says_how_many_it_needs(tmp_path: Path) -> None:
    environ = {**os.environ, "HERMES_HOME": str(tmp_path / "home")}
    program = str(Path(sys.executable).with_name("hermes-gateway"))
    held = "import os, sys; sys.stdin.readline(); os.execv(sys.argv[1], sys.argv[1:])"
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(
            [sys.executable, "-c", held, program, "run"], env=environ, stdin=pipe, stderr=pipe, text=True
        ) as process,
        bounded(process.pid),
    ):
        _, said = process.communicate("go\n")
    if FOLDER and (group := FOLDER / f"few-threads-{process.pid}").exists():
        group.rmdir()
    assert process.returncode != 0
    assert f"can start 0 of the {FEWEST_THREADS} threads that it needs" in said
    assert "Traceback" not in said
