"""A secret of one hook appears nowhere else: not in a log, an error, a table, an event, nor in its own log."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

SECRET = "hunter2-canary-hunter2"
LEAKY = {
    "HOOK.yaml": "description: raises with what it was given\nevents: ['leak:*']\nenv: [HOOK_PW, PORT]\n",
    "handler.py": (
        "import os\n\nasync def handle(event_type, context):\n"
        "    print('I have', os.environ['HOOK_PW'], os.environ['PORT'], flush=True)\n"
        "    raise RuntimeError(f\"cannot log in with {os.environ['HOOK_PW']}\")\n"
    ),
}
WATCHER = {
    "HOOK.yaml": "name: watcher\ndescription: sees everything\nevents: ['*']\n",
    "handler.py": "async def handle(event_type, context):\n    print(event_type, dict(context), flush=True)\n",
}


@pytest.mark.row("T28")
@pytest.mark.parametrize("source", ["file", "process"])
def test_what_a_hook_was_given_by_name_stands_nowhere(tmp_path: Path, source: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("hooks: {trust: placed}\n")
        gateway.add_hook("leaky", LEAKY)
        gateway.add_hook("watcher", WATCHER)
        given = {"HOOK_PW": SECRET, "PORT": "80808080"}
        if source == "file":
            gateway.home.env.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            gateway.home.env.chmod(0o600)
        gateway.start(environ={} if source == "file" else given)
        said = gateway.cli("hooks", "fire", "leaky", "leak:now", "--json")
        trial = json.loads(said.stdout)["trial"]
        assert not trial["ok"]
        gateway.until(lambda: "hook:failed" in gateway.cli("hooks", "logs", "watcher").stdout)
        commands = [
            ["hooks", "list", "--json"],
            ["hooks", "list"],
            ["hooks", "info", "leaky"],
            ["hooks", "info", "leaky", "--json"],
            ["hooks", "logs", "leaky"],
            ["hooks", "logs", "watcher"],
            ["hooks", "test", "leaky", "--event", "leak:now"],
            ["status", "--json"],
            ["logs"],
            ["doctor"],
        ]
        shown = {" ".join(words): gateway.cli(*words) for words in commands}
        texts = {name: done.stdout + done.stderr for name, done in shown.items()}
        files = [path for path in gateway.home.own_folder.rglob("*.log*") if path.is_file()]
        texts |= {str(path): path.read_text() for path in files}
        assert len(files) >= 3
        assert [name for name, text in {**texts, "fire": said.stdout}.items() if SECRET in text] == []
        assert "cannot log in with [secret]" in texts["hooks info leaky"]
        assert "I have [secret] 80808080" in texts["hooks logs leaky"]


def test_what_people_say_is_never_changed(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"text": f"you said {SECRET}"})
        gateway.home.env.write_text(f"HOOK_PW={SECRET}\n")
        gateway.home.env.chmod(0o600)
        gateway.start()
        assert SECRET in gateway.cli("chat", "-m", f"the word is {SECRET}").stdout
        (session,) = json.loads(gateway.cli("sessions", "list", "--json").stdout)["sessions"]
        told = gateway.cli("sessions", "show", session["session_id"]).stdout
        assert f"the word is {SECRET}" in told
        assert f"you said {SECRET}" in told
