"""A plugin that was installed, or says what it reaches, is held to that from its import on."""

import json
from pathlib import Path

import pytest

from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.testing import GatewayProcess
from gateway.worker.sandbox import find_support

SUPPORT = find_support()
pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing)),
]

PLUGIN = """
import os, socket
from pathlib import Path
FOUND = []
for act in (Path(os.environ["HERMES_HOME"], "hermes-gateway", "config.yaml").read_text, socket.socket):
    try:
        act()
        FOUND.append("done")
    except OSError as error:
        FOUND.append(type(error).__name__)
print("found:", *FOUND)
def register(ctx):
    ctx.register_hook("on_session_start", lambda **more: None)
"""


@pytest.mark.parametrize(
    ("keys", "is_installed", "found"),
    [
        ("", False, "done done"),
        ("net: true\n", False, "PermissionError done"),
        ("", True, "PermissionError PermissionError"),
    ],
)
def test_a_plugin_is_held_as_a_hook_is(tmp_path: Path, keys: str, is_installed: bool, found: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("hooks: {enabled: [held]}\n")
        folder = gateway.home.plugins / "held"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(f"name: held\n{keys}")
        (folder / "__init__.py").write_text(PLUGIN)
        if is_installed:
            uses = ["emit", "send", "store", "submit", "tool", "llm", "session"]
            events = ["session:start", "session:end", "agent:start", "agent:end"]
            grants = {"uses": uses, "env": ["HERMES_HOME"], "events": events, "intercepts": events}
            digest = read_whole_folder(folder).digest
            entry = {"path": str(folder), "source": "x", "digest": digest, "grants": grants}
            gateway.home.hooks_lock.write_text(json.dumps({"version": 1, "hooks": {"held": entry}}))
        gateway.start()

        def has_said() -> bool:
            return "found:" in gateway.cli("hooks", "logs", "held").stdout

        gateway.until(has_said)
        assert f"found: {found}" in gateway.cli("hooks", "logs", "held").stdout
