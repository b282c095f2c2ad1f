"""Guards of several plugins judge a tool's call at the same time, and decide as if one came after the other."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

MEETS = """
import os, time
from pathlib import Path


def meet(tool_name, **_):
    here, other = (Path(os.environ["HERMES_HOME"], name) for name in {names!r})
    here.touch()
    while not other.exists():  # one after the other, the first would wait until it is given up
        time.sleep(0.01)


def register(ctx):
    ctx.register_hook("pre_tool_call", meet)
"""
CHANGES = """
def change(args, **_):
    args["expression"] = "6 * 7"


def register(ctx):
    ctx.register_hook("pre_tool_call", change)
"""
GUARDS = """
def guard(args, **_):
    return None if args["expression"] == "6 * 7" else {"action": "block", "message": "not that"}


def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""


def test_guards_are_asked_side_by_side_and_about_what_the_one_before_has_left(tmp_path: Path) -> None:
    plugins = {
        "a-meets": MEETS.format(names=("a", "b")),
        "b-meets": MEETS.format(names=("b", "a")),
        "c-changes": CHANGES,
        "d-guards": GUARDS,
    }
    with GatewayProcess(tmp_path / "home") as gateway:
        call = {"name": "calculate", "args": {"expression": "1 + 1"}}
        gateway.script({"user": "add", "answers": [{"tool_calls": [call]}, {"text": "done"}]})
        for name, source in plugins.items():
            folder = gateway.home.plugins / name
            folder.mkdir(parents=True)
            (folder / "plugin.yaml").write_text(f"name: {name}\nversion: 1.0.0\n")
            (folder / "__init__.py").write_text(source)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": [*plugins]}}))
        gateway.start()
        for session in ("first", "second"):
            assert gateway.say("add", session)["reply"] == "done"
            shown = gateway.cli("sessions", "show", f"agent:main:terminal:dm:{session}", "--json").stdout
            assert [one["content"] for one in json.loads(shown)["entries"] if one["role"] == "tool"] == ["42"]
