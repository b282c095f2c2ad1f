"""A plugin puts a `MEDIA:` line with a picture of its own folder below the answer, as under Hermes."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SMILES = """
from pathlib import Path

HERE = Path(__file__).parent


def add(response_text, **_):
    return f"{response_text}\\nMEDIA:{HERE}/{response_text}"


def register(ctx):
    ctx.register_hook("transform_llm_output", add)
"""


def test_its_picture_goes_out_and_its_other_files_do_not(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*({"user": name, "text": name} for name in ("happy.png", "keys.txt", "link.png")))
        folder = gateway.home.plugins / "smiles"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: smiles\nversion: 1.0.0\n")
        (folder / "__init__.py").write_text(SMILES)
        for name in ("happy.png", "keys.txt"):
            (folder / name).write_bytes(b"x")
        (tmp_path / "private.png").write_bytes(b"x")
        (folder / "link.png").symlink_to(tmp_path / "private.png")
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["smiles"]}}))
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "plugin:smiles"})["state"] == "loaded")
        assert "[file happy.png: " in gateway.say("happy.png")["reply"]
        for name in ("keys.txt", "link.png"):
            assert f"[the file {name} is not sent" in gateway.say(name)["reply"]
