"""What a person has allowed for good, in a gateway that dies and is started again."""

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

RUN = {"tool_calls": [{"name": "shell", "args": {"command": "echo from the shell"}}]}
TURN = {"user": "run", "answers": [RUN, {"text": "it ran"}]}


@pytest.mark.parametrize(("how", "in_a_new_session"), [("always", "it ran"), ("session", "May I run shell")])
def test_an_approval_survives_a_crash_as_long_as_it_was_meant_to_hold(tmp_path, how, in_a_new_session):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(TURN, settings="tools: {shell: ask}\n")
        gateway.start()
        assert gateway.say("run it")["reply"].startswith("May I run shell?")
        gateway.say(f"/approve {how}")
        gateway.until(lambda: how in gateway.say("/approvals")["reply"])
        gateway.kill()
        gateway.start()
        assert gateway.say("run it again")["reply"] == "it ran"
        gateway.say("/new")
        assert gateway.say("run it anew")["reply"].startswith(in_a_new_session)
