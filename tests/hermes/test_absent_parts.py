"""Parts of Hermes's own process that plugins reach for: each is reported by its name, and the rest goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from gateway.hermes.shim.session_shapes import SessionStore
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

PLUGINS = {
    "reaches-in": "def register(ctx):\n    ctx._manager._hooks.setdefault('pre_tool_call', []).append(print)\n",
    "wraps-calls": "import model_tools\nfrom tools.registry import registry\n\n"
    "def register(ctx):\n    before = model_tools.handle_function_call\n"
    "    model_tools.handle_function_call = lambda *a, **k: before(*a, **k)\n    registry.dispatch = print\n",
    "wraps-and-works": "import model_tools\n\ndef register(ctx):\n    model_tools.handle_function_call = print\n"
    "    ctx.register_command('wave', lambda raw_args: 'waves')\n",
    "wraps-a-method": """
from gateway.run import GatewayRunner
from tools.registry import registry

def register(ctx):
    if not getattr(GatewayRunner, "_wrapped", False) and not hasattr(registry, "wrapped"):
        before, dispatch = GatewayRunner.deliver, registry.dispatch
        GatewayRunner.deliver = lambda *a, **k: before(*a, **k)
        registry.dispatch = lambda *a, **k: dispatch(*a, **k)
        ctx.register_command("bow", lambda raw_args: "bows")
""",
    "hears-stops": """
import os, pathlib

def begun(**kwargs):
    pathlib.Path(os.environ["HERMES_HOME"], "begun").touch()

def stopped(**kwargs):
    pathlib.Path(os.environ["HERMES_HOME"], "stopped").write_text(str(kwargs["session_id"]))

def register(ctx):
    ctx.register_hook("on_stream_start", begun)
    ctx.register_hook("agent_loop_stopped", stopped)
""",
}
PLUGINS["asks-elsewhere"] = """
def guard(tool_name, args, **_):
    return {"action": "block", "message": "no"} if ctx_of["it"].call_mcp("policy", "judge", args) else None

ctx_of = {}

def register(ctx):
    ctx_of["it"] = ctx
    ctx.platform_actions.send("telegram", "hello")
    ctx.register_system_prompt_section("tone", "kind")
    ctx.register_hook("pre_tool_call", guard)
"""
BORROWER = """
import sys
for place in ["PLACE"]:
    sys.path.insert(0, place)
import lent

def handle(event_type, context):
    print(lent)
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        talk = {"user": "talk", "answers": [{"chunks": ["on "] * 400, "delay": "50ms"}]}
        gateway.script(wants("keep plain", "remember", text="plain"), talk)
        for name, source in PLUGINS.items():
            folder = gateway.home.plugins / name
            folder.mkdir(parents=True)
            (folder / "plugin.yaml").write_text(f"name: {name}\n")
            (folder / "__init__.py").write_text(source)
        lent = tmp_path_factory.mktemp("lent")
        (lent / "lent.py").write_text("x = 1\n")
        handler = BORROWER.replace("PLACE", str(lent))
        gateway.add_hook("borrower", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": handler})
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(PLUGINS)}}))
        gateway.start()
        gateway.until(
            lambda: not [one for one in found(gateway).values() if one["state"] in ("starting", "registered")]
        )
        yield gateway


def found(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in gateway.call("hooks.list")["hooks"] if one["origin"] != "built-in"}


def test_a_part_of_ctx_that_is_not_here_says_which_it_is(gateway: GatewayProcess) -> None:
    said = "ctx._manager has no '_hooks' here: it is a part of Hermes's own process"
    assert said in found(gateway)["reaches-in"]["reason"]


def test_what_patches_the_dispatch_of_tools_is_without_effect(gateway: GatewayProcess) -> None:
    one = found(gateway)["wraps-calls"]
    assert (one["state"], one["reason"]) == (
        "without effect",
        "it patches model_tools.handle_function_call and 1 more",
    )
    rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
    assert [row["verdict"] for row in rows if row["name"] == "wraps-calls"] == ["without effect"]


def test_what_else_it_does_goes_on(gateway: GatewayProcess) -> None:
    assert found(gateway)["wraps-and-works"]["state"] == "loaded"
    assert gateway.say("/wave")["reply"] == "waves"
    assert gateway.say("/bow")["reply"] == "bows"


def test_a_live_stop_is_told(gateway: GatewayProcess) -> None:
    talk = Thread(target=gateway.say, args=("talk", "long"))
    talk.start()
    gateway.until((gateway.home.root / "begun").exists)
    gateway.say("/stop", "long")
    gateway.until((gateway.home.root / "stopped").exists)
    talk.join()


def test_what_has_been_tried_is_no_question_any_more(gateway: GatewayProcess) -> None:
    def look(*words: str) -> dict[str, Any]:
        rows = json.loads(gateway.cli("doctor", "--hermes", "--json", *words, timeout=60).stdout)["hermes"]
        return next(row for row in rows if row["name"] == "borrower")

    assert any("whether lent is there cannot be seen" in why for why in look()["why"])
    tried = look("--load")
    assert (tried["verdict"], tried["why"]) == ("works", [])


def test_what_is_not_offered_does_nothing_in_register_and_stops_a_guard_that_asks_it(gateway: GatewayProcess) -> None:
    one = found(gateway)["asks-elsewhere"]
    assert one["state"] == "loaded"
    assert any("ctx.platform_actions is not offered here" in finding for finding in one["findings"])
    gateway.say("keep plain", "asked")
    assert "ctx.call_mcp is not offered here" in last_result(gateway, "asked")


def test_the_store_of_sessions_says_who_changes_what_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    store = SessionStore()
    assert (store.update_session("key", last_prompt_tokens=1), store.prune_old_entries(30)) == (None, 0)
    assert not store.mark_resume_pending("key")
    with pytest.raises(AttributeError, match="a person says /new"):
        store.reset_session("key")
    with pytest.raises(AttributeError, match=r"ctx\.inject_message"):
        store.append_to_transcript("session", {})
    store.update_session("key")
    said = capsys.readouterr().err
    assert said.count("session_store.update_session does nothing here") == 1
    assert said.count("session_store has no reset_session here") == 1
