"""The control socket tells a person at a terminal from what the gateway has started, however that detaches itself."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.daemon.callers import refuse_verb
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.reach import HookReach
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.sources import HookVersion
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

# Asks some verbs on the socket, and writes down what became of each. A program begins before the gateway's socket does:
# the first connection waits until there is one.
ASK = """
import json, socket, sys, time
out, path, wait = sys.argv[1], sys.argv[2], float(sys.argv[3])
time.sleep(wait)
found = {}

def connect(one):
    until = time.monotonic() + (0 if found else 600)
    while True:
        try:
            return one.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)

for verb, params in json.loads(sys.argv[4]).items():
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(600)
            connect(one)
            one.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": verb, "params": params}).encode() + b"\\n")
            line = one.makefile().readline()
            found[verb] = json.loads(line).get("error", {}).get("message", "answered") if line else "hung up"
    except OSError as error:
        found[verb] = type(error).__name__
with open(out + ".new", "w") as file:
    json.dump(found, file)
import os
os.rename(out + ".new", out)
"""
# All of these are answered to a person, if only by what is wrong with their parameters.
VERBS: dict[str, dict[str, Any]] = {
    "status": {},
    "hooks.list": {},
    "sessions.list": {},
    "pairing.list": {},
    "pairing.approve": {"code": "ABCDEFGH"},
    "approvals.answer": {"id": "x", "answer": "yes"},
    "hooks.enable": {"name": "asker"},
    "hooks.trust": {"name": "asker"},
    "chat.say": {"text": "/approve"},
}
FOR_PLACED = {"status", "hooks.list", "sessions.list", "pairing.list"}


class Askers:
    """Makes the words of a command that asks, and reads what it found."""

    def __init__(self, folder: Path, gateway: GatewayProcess) -> None:
        self.folder = folder
        self.gateway = gateway
        (folder / "ask.py").write_text(ASK)

    def command(self, name: str, wait: float = 0) -> str:
        words = [sys.executable, f"{self.folder}/ask.py", f"{self.folder}/{name}.json", str(self.gateway.home.socket)]
        return " ".join([*words, str(wait), f"'{json.dumps(VERBS)}'"])

    def detached(self, name: str) -> str:
        """Fork twice, in a session of its own; the first process is gone when it asks."""
        return f"(setsid {self.command(name, 0.5)} </dev/null >/dev/null 2>&1 &)"

    def both(self) -> str:
        """And wait for the detached one: what a command started ends with it."""
        wait = f"until [ -e {self.folder}/far.json ]; do sleep 0.1; done"
        return f"{self.command('near')}; {self.detached('far')}; {wait}"

    def answered(self, name: str) -> set[str]:
        """The verbs that were not refused."""
        file = self.folder / f"{name}.json"
        self.gateway.until(file.exists)
        found = json.loads(file.read_text())
        assert not {became for became in found.values() if became.endswith("Error") and "Permission" not in became}
        return {verb for verb, became in found.items() if not ("may not ask" in became or became == "PermissionError")}


@pytest.fixture
def askers(tmp_path: Path) -> Any:
    with GatewayProcess(tmp_path / "home") as gateway:
        (tmp_path / "out").mkdir()
        yield Askers(tmp_path / "out", gateway)


def test_a_person_is_answered(askers: Askers) -> None:
    askers.gateway.start()
    subprocess.run(["sh", "-c", askers.command("near")], check=True)
    assert askers.answered("near") == {*VERBS}


def handler(command: str) -> str:
    return f"import subprocess\nsubprocess.Popen(['sh', '-c', {command!r}])\ndef handle(e, c): pass\n"


def test_a_placed_hook_may_look_and_not_decide(askers: Askers) -> None:
    askers.gateway.add_hook("asker", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": handler(askers.both())})
    askers.gateway.start()
    assert askers.answered("near") == FOR_PLACED
    assert askers.answered("far") == FOR_PLACED


def test_a_placed_program_may_look_and_what_it_left_behind_not_even_that(askers: Askers) -> None:
    script = f"#!/bin/sh\n({askers.both()}) >/dev/null\nexec cat\n"
    folder = askers.gateway.add_hook("asker", {"HOOK.yaml": "events: [gateway:*]\ncommand: ./run\n", "run": script})
    (folder / "run").chmod(0o755)
    askers.gateway.start()
    assert askers.answered("near") == FOR_PLACED
    assert askers.answered("far") == {"status"}


def test_a_restricted_hook_does_not_even_reach_the_socket(askers: Askers) -> None:
    folder = askers.folder
    keys = f"events: [agent:end]\nreads: [{folder}/ask.py]\nwrites: [{folder}]\nnet: true\n"
    askers.gateway.add_hook("asker", {"HOOK.yaml": keys, "handler.py": handler(askers.both())})
    askers.gateway.start()
    assert askers.answered("near") == set()
    assert askers.answered("far") == set()


@pytest.mark.parametrize(("mode", "seen"), [("'off'", {"status"}), ("auto", set())])
def test_a_command_of_the_agent_sees_the_status_alone(askers: Askers, mode: str, seen: set[str]) -> None:
    """And in its sandbox not even that."""
    call = {"name": "shell", "args": {"command": askers.both()}}
    turn = {"user": "go", "answers": [{"tool_calls": [call]}, {"text": "ready"}]}
    askers.gateway.script(
        turn, settings=f"tools: {{shell: allow, roots: [{askers.folder}], sandbox: {{mode: {mode}}}}}\n"
    )
    askers.gateway.start()
    assert askers.gateway.say("go")["reply"] == "ready"
    assert {frozenset(askers.answered("near")), frozenset(askers.answered("far"))} == {frozenset(seen)}


def test_a_server_of_tools_sees_the_status_alone(askers: Askers) -> None:
    script = askers.folder / "server.sh"
    script.write_text(f"{askers.both()}\n")
    turn = {"user": "hello", "answers": [{"text": "ready"}]}
    askers.gateway.script(turn, settings=f"mcp_servers:\n  shop: {{command: sh, args: [{script}]}}\n")
    askers.gateway.start()
    askers.gateway.say("hello")  # servers are started for the first turn
    assert askers.answered("near") == {"status"}
    assert askers.answered("far") == {"status"}


@pytest.mark.parametrize("uses", [(), ("send", "store")])
def test_where_no_kernel_keeps_a_restricted_hook_from_the_socket_it_gets_what_it_uses(
    tmp_path: Path, uses: tuple[Any, ...]
) -> None:
    """The first line of defence is the filter: here it is looked at what stands behind that."""
    manifest = Manifest(folder="held", name="held", uses=uses)
    source = FolderSource(tmp_path, "home")
    held = HookVersion("held", tmp_path / "held", source, manifest=manifest, reach=HookReach("it was installed"))
    answered = {verb for verb in (*VERBS, "chat.send", "stop") if not refuse_verb(held, verb)}
    assert answered == {"status", *(["chat.send"] if uses else [])}
    assert "`uses`" in refuse_verb(held, "pairing.approve")


def test_who_hangs_up_before_anybody_looked_is_answered_nothing(askers: Askers) -> None:
    """The caller has ended: only a copy of its connection is left, with somebody who may be anybody."""
    askers.gateway.start()
    script = (
        "import os, socket, sys\n"
        "one = socket.socket(socket.AF_UNIX); one.connect(sys.argv[1])\n"
        "if os.fork(): os._exit(0)\n"
        "print(one.makefile().readline())\n"
    )
    assert askers.gateway.process
    os.kill(askers.gateway.process.pid, signal.SIGSTOP)
    asking = subprocess.Popen(
        [sys.executable, "-c", script, str(askers.gateway.home.socket)], stdout=subprocess.PIPE, text=True
    )
    asking.wait()
    os.kill(askers.gateway.process.pid, signal.SIGCONT)
    assert "has ended meanwhile" in asking.communicate()[0]


def test_the_daemons_own_memory_and_environment_belong_to_root_and_no_core_is_written(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        assert gateway.process
        pid = gateway.process.pid
        assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
        assert gateway.call("status")["sandbox"]["exposed"].startswith("the gateway runs as root") == (os.getuid() == 0)


@pytest.mark.machine
@pytest.mark.skipif(os.getuid() != 0, reason="it takes two users to see that one cannot look at the other")
def test_a_hidden_process_is_closed_to_its_own_user_and_still_counts_what_it_has_open(tmp_path: Path) -> None:
    source = """
import ctypes, json, os, sys
from gateway.daemon.own_process import isolate_process
from gateway.daemon.own_process import read_memory_kb
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program that this user has started
def look(pid):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            open(f"/proc/{pid}/environ").read()
            os.write(write, b"seen")
        except OSError as error:
            os.write(write, type(error).__name__.encode())
        os._exit(0)
    return os.read(read, 100).decode()
before = look(os.getpid())
isolate_process()
print(json.dumps([before, look(os.getpid()), len(os.listdir("/proc/self/fd")) > 3, read_memory_kb() > 0]))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["seen", "PermissionError", True, True]
