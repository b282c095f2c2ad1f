"""Variables that are read by names which the source only puts together: what to write is said until it is written."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

GUARD = """
def guard(tool_name, args, **_):
    words = DENIED or denied()
    return {"action": "block", "message": "denied word"} if any(one in str(args) for one in words) else None

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""
PLUGINS = {
    "prefixed": "import os\nPREFIX = 'GUARDX'\ndef setting(name, default=''):\n"
    "    return os.environ.get(f'{PREFIX}_{name}', default)\n"
    "DENIED = [one for one in setting('DENY').split(',') if one]\ndef denied():\n    return []\n",
    "late": "import os\nDENIED = []\ndef denied():\n    return os.getenv('VAULT_' + 'WORDS', '').split()\n",
}


def furnish(gateway: GatewayProcess, plugins: Mapping[str, str]) -> None:
    for name, source in plugins.items():
        folder = gateway.home.plugins / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(source + GUARD)
        (folder / "plugin.yaml").write_text(f"name: {name}\n")
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": [*plugins]}}))
    gateway.home.env.write_text("GUARDX_DENY=launch,start\nVAULT_WORDS=launch\n")
    gateway.home.env.chmod(0o600)


@pytest.mark.process
@pytest.mark.parametrize(("name", "variable"), [("prefixed", "GUARDX_DENY"), ("late", "VAULT_WORDS")])
def test_what_to_write_is_said_until_it_is_written(tmp_path: Path, name: str, variable: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(wants("launch", "remember", text="launch"))
        furnish(gateway, {name: PLUGINS[name]})
        gateway.start()
        gateway.say("launch")
        assert last_result(gateway) == "Remembered: launch"
        line = f"hooks: {{{name}: {{env: [{variable}]}}}}"
        told = f"asks for {variable} of the environment, and is not given it; write `{line}` into config.yaml"
        for said in (("hooks", "list"), ("hooks", "info", name)):
            gateway.until(lambda said=said: told in gateway.cli(*said).stdout)  # type: ignore[misc]
        gateway.configure(f"{gateway.home.config.read_text()}{line}\n")
        _, _, logged = gateway.stop()
        assert logged.count(told) == 1
        gateway.start()
        gateway.say("launch")
        assert "denied word" in last_result(gateway)
        for said in (("hooks", "list"), ("hooks", "info", name)):
            assert "is not given it" not in gateway.cli(*said).stdout, said
