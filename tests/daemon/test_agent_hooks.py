"""Hooks of single agents, as the configuration gives them, in a running gateway."""

import signal
from functools import partial

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

LOUD = {
    "HOOK.yaml": "intercepts: [llm:after]\n",
    "handler.py": "def handle(event_type, context):\n    context['content'] = context['content'].upper()\n",
}
SETTINGS = """
agents:
  main:
    agents: [expert]
    hooks: [no-such-hook]
  expert:
    description: knows everything
    hooks: [loud]
"""


@pytest.mark.row("SHE-41")
@pytest.mark.row("SHE-42")
@pytest.mark.row("WEB-6")
def test_an_agents_hooks_hear_its_turns_alone_and_follow_the_conversation_to_it(tmp_path):
    """They are given as a list where the agent is made, in a file; one that is none is named to the operator."""
    delegate = {"name": "delegate", "args": {"agent": "expert", "task": "hard one"}}
    transfer = {"name": "transfer", "args": {"agent": "expert"}}
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(
            {"user": "easy", "answers": [{"text": "by myself"}]},
            {"user": "hard", "answers": [{"text": "from the expert"}]},
            {"user": "ask", "answers": [{"tool_calls": [delegate]}, {"text": "it is done"}]},
            {"user": "hand over", "answers": [{"tool_calls": [transfer]}, {"text": "here I am"}]},
            settings=SETTINGS,
        )
        gateway.add_hook("loud", LOUD)
        gateway.start()
        assert gateway.say("easy")["reply"] == "by myself"
        assert gateway.say("ask")["reply"] == "it is done"
        assert gateway.say("hand over")["reply"] == "HERE I AM"
        attention = gateway.call("status")["attention"]
        assert any("agents.main.hooks names 'no-such-hook'" in one for one in attention)


def says(gateway, reply):
    return gateway.say("say")["reply"] == reply


def test_a_reload_passes_on_whose_hooks_they_are_and_a_hook_that_runs_goes_on(tmp_path):
    turn = {"user": "say", "text": "word"}
    owned = "agents: {main: {hooks: [loud]}, other: {description: waits}}\n"
    others = "agents: {main: {}, other: {description: waits, hooks: [loud]}}\n"
    pid = {
        **LOUD,
        "handler.py": "import os\n\n\n" + LOUD["handler.py"].replace("upper()", "upper() + str(os.getpid())"),
    }
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(turn, settings=owned)
        gateway.add_hook("loud", pid)
        gateway.start()
        before = gateway.say("say")["reply"]
        assert before.startswith("WORD")
        assert gateway.process
        for settings, reply in ((others, "word"), (owned, before), ("hooks: {disabled: [loud]}\n", "word")):
            gateway.script(turn, settings=settings)
            gateway.process.send_signal(signal.SIGHUP)
            gateway.until(partial(says, gateway, reply))
            assert gateway.call("status")["attention"] == []
