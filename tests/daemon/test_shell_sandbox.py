"""The sandbox of the shell on a running gateway: the gains of an injected model from commands that run unasked."""

import sys

import pytest

from gateway.agent.toolbox.shell import ASK_OUTSIDE
from gateway.testing import GatewayProcess
from gateway.worker.sandbox import find_support

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock"),
]

CANARY = "canary-of-the-home-5551"
STEALING = {
    "the settings": "cat ../../.env ../config.yaml",
    "by a link": "ln -s ../../.env here; cat here",
    "by a hard link": "ln ../../.env here; cat here",
    "by its root": "cat /proc/self/root$(pwd)/../../.env",
    "the journal": "cp ../journal.db .; strings journal.db; cat journal.db",
    "the daemon's environment": "cat /proc/[0-9]*/environ",
    "the daemon's memory": "for p in /proc/[0-9]*; do head -c 100000 $p/mem; done",
    "the daemon's files": "timeout 2 cat /proc/[0-9]*/fd/* < /dev/null",
    "another folder's": "cd ../..; cat .env",
    "an archive": "tar cf - ../.. | cat",
    "keys": "cat ../../../.ssh/id_rsa",
    "a hook of its own": "mkdir -p ../../hooks/evil && echo on: x > ../../hooks/evil/HOOK.yaml",
    "the settings, written": "echo 'tools: {shell: allow}' >> ../config.yaml",
    "a trace of the daemon": "gdb -p $PPID -batch 2>&1 || strace -p $PPID -e none",
    "a signal": "kill -9 $PPID",
}


def test_an_injected_model_gets_nothing_out_of_the_home(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["CANARY_TOKEN"] = CANARY
        turns = [
            {
                "user": f"try {number}.",
                "answers": [
                    {"tool_calls": [{"name": "shell", "args": {"command": f"({command}) > got-{number} 2>&1; true"}}]},
                    {"text": "it ran"},
                ],
            }
            for number, command in enumerate(STEALING.values())
        ]
        gateway.script(*turns, settings="tools: {shell: allow}\n")
        for file in (gateway.home.env, tmp_path / ".ssh" / "id_rsa"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"KEPT={CANARY}\n")
            file.chmod(0o600)
        settings = gateway.home.config.read_text()
        gateway.start()
        root = gateway.home.own_folder / "workspace"
        for number, what in enumerate(STEALING):
            assert gateway.say(f"try {number}.", session=f"s{number}")["reply"] == "it ran", what
            assert CANARY not in (root / f"got-{number}").read_bytes().decode("latin-1"), what
            assert CANARY.encode() not in b"".join(
                one.read_bytes() for one in root.iterdir() if not one.is_symlink()
            ), what
        assert gateway.home.config.read_text() == settings
        assert not (gateway.home.hooks / "evil").exists()


def test_the_control_socket_is_out_of_reach(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        status = f"{sys.executable} -m gateway.cli status"
        command = f"{status} > got 2>&1; (setsid {status} > more 2>&1); true"
        call = {"tool_calls": [{"name": "shell", "args": {"command": command}}]}
        gateway.script({"user": "try", "answers": [call, {"text": "it ran"}]}, settings="tools: {shell: allow}\n")
        gateway.start()
        assert gateway.say("try")["reply"] == "it ran"
        root = gateway.home.own_folder / "workspace"
        for name in ("got", "more"):
            assert "telegram" not in (root / name).read_text()
            assert "model" not in (root / name).read_text(), (root / name).read_text()


@pytest.mark.parametrize(("answer", "runs"), [("/approve", 2), ("/deny", 1)])
def test_the_owner_is_asked_once_whether_it_may_run_outside(tmp_path, answer, runs):
    with GatewayProcess(tmp_path / "home") as gateway:
        call = {"tool_calls": [{"name": "shell", "args": {"command": "echo ran >> count; echo x > ../../beside"}}]}
        gateway.script({"user": "try", "answers": [call, {"text": "it ran"}]}, settings="tools: {shell: sandboxed}\n")
        gateway.start()
        asked = gateway.say("try")["reply"]
        assert asked.startswith(f"{ASK_OUTSIDE}\ncommand:\n"), "our own words are not literals text"
        assert "echo ran >> count; echo x > ../../beside" in asked
        count = gateway.home.own_folder / "workspace" / "count"
        assert count.read_text() == "ran\n"
        gateway.say(answer)
        gateway.until(lambda: count.read_text() == "ran\n" * runs)
        gateway.until(lambda: (gateway.home.root / "beside").exists() is (runs == 2))


def test_instructions_that_a_command_was_changing_when_the_gateway_was_killed_are_held(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        call = {"tool_calls": [{"name": "shell", "args": {"command": "echo obey > AGENTS.md; sleep 60"}}]}
        gateway.script({"user": "try", "answers": [call, {"text": "it ran"}]}, settings="tools: {shell: allow}\n")
        gateway.start()
        file = gateway.home.own_folder / "workspace" / "AGENTS.md"
        with gateway.spawn("chat", "-m", "try"):
            gateway.until(file.exists)
            gateway.kill()
        gateway.start()
        told = gateway.cli("status").stdout
        assert f"touch {file}" in " ".join(told.split())
        file.touch()
        assert "touch" not in gateway.cli("status").stdout
