"""An answer that a plugin of Hermes may still change is held back; one that looks on leaves it to stream."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.control.client import ControlClient
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

RAW, CHANGED = "the code is 4711", "the code is ****"
SCRIPT = {"user": "say it", "answers": [{"chunks": ["the code ", "is ", "4711"], "delay": "100ms"}]}
MASKS = """
def register(ctx):
    ctx.register_hook("transform_llm_output", lambda response_text, **_: response_text.replace("4711", "****"))
"""
LOOKS_ON = """
def register(ctx):
    for name in ("post_llm_call", "pre_verify", "on_session_end"):
        ctx.register_hook(name, lambda **_: None)
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(SCRIPT)
        yield gateway


def start_with_plugin(gateway: GatewayProcess, source: str) -> None:
    folder = gateway.home.plugins / "mine"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: mine\n")
    (folder / "__init__.py").write_text(source)
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["mine"]}}))
    gateway.start()


def hear(gateway: GatewayProcess) -> tuple[str, str]:
    """What a chat at the terminal is shown while the answer comes, and the answer."""
    shown = ""
    with ControlClient(gateway.home.socket, timeout=None) as client:
        client.start("chat.say", {"text": "say it", "session": "main"})
        for message in client.messages():
            if message.get("method") == "delta":
                shown += message["params"]["text"]
            elif "result" in message:
                return shown, message["result"]["reply"]
    raise AssertionError("there was no answer")


def test_nothing_is_shown_before_transform_llm_output_had_its_say(gateway: GatewayProcess) -> None:
    start_with_plugin(gateway, MASKS)
    assert hear(gateway) == ("", CHANGED)


def test_a_plugin_that_changes_no_answer_leaves_it_to_stream(gateway: GatewayProcess) -> None:
    start_with_plugin(gateway, LOOKS_ON)
    gateway.until(lambda: "agent:end" in gateway.call("hooks.info", {"name": "mine"})["intercepts"])
    assert hear(gateway) == (RAW, RAW)


def test_an_observer_in_a_folder_leaves_it_to_stream(gateway: GatewayProcess) -> None:
    source = "def handle(event_type, context):\n    context['response'] = 'nobody reads this'\n"
    gateway.add_hook("notes", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": source})
    gateway.start()
    assert hear(gateway) == (RAW, RAW)
