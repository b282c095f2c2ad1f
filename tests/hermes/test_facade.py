"""Hermes's modules, as its hooks import them, answered by the running gateway."""

import pytest

from tests.hermes.conftest import Seen, hooks

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", autouse=True)
def talk(seen: Seen) -> None:
    seen.gateway.say("please send")


def test_hermess_modules_have_hermess_shapes(seen: Seen) -> None:
    (found,) = seen.wait("facade")[0]
    assert (found["logs"], found["home"], found["own setting"]) == (True, True, {"volume": 11})
    assert found["platform"] == ["telegram", True]
    assert found["keys"] == [
        "agent:main:telegram:group:-5:7",
        "agent:main:discord:dm:9:4",
        "agent:main:telegram:group:-5",
    ]
    assert found["command"] == [True, "deploy", "now fast"]
    assert (found["source"], found["entry"][:2], found["sent"]) == (True, [True, 2026], "1")
    assert seen.wait("libraries")[0] == ["aiohttp", "httpx", "yaml"]


def test_the_configuration_is_that_of_this_gateway_and_has_no_secret(seen: Seen) -> None:
    (found,) = seen.wait("facade-here")[0]
    assert (found["home"], found["variable"]) == (["42", "Ops"], "42")
    assert (found["connected"], found["token"], found["hooks"]) == ([], None, ["facade"])
    assert found["model"] == "demo"
    assert {"api_key", "base_url", "provider", "api_mode"} <= set(found["runtime"])


def test_send_message_tool_sends_and_says_what_it_cannot(seen: Seen) -> None:
    said = [line[0] for line in seen.wait("sends", 5)]
    assert (said[0]["success"], said[0]["platform"], said[0]["chat_id"]) == (True, "terminal", "other")
    assert said[0]["warnings"] == ["files are not sent by this call here; the text was"]
    assert "not configured" in said[1]["error"]
    assert "`message`" in said[2]["error"]
    assert "platform:chat" in said[3]["targets"]
    assert "'react'" in said[4]["error"]


def test_an_agent_of_hermes_is_our_agent(seen: Seen) -> None:
    assert seen.wait("asks-agent")[0] == ["booted", True, None]
    assert seen.log("asks-agent").count("max_iterations, skip_context_files: not used") == 1


def test_what_is_patched_is_named_once_and_the_rest_works(seen: Seen) -> None:
    assert seen.wait("patches")[0] == ["gateway.run.GatewayRunner exists inside Hermes alone, not here"]
    log = seen.log("patches")
    for name in ("gateway.run.GatewayRunner exists", "gateway.platforms.telegram.TelegramAdapter exists"):
        assert log.count(name) == 1
    for name in ("GatewayRunner._handle_message", "TelegramAdapter.send", "AIAgent.run_conversation", "START_TIME"):
        assert log.count(f"{name} is patched, which changes nothing outside this hook") == 1


def test_what_a_hook_does_through_hermess_modules_is_granted_and_shown(seen: Seen) -> None:
    found = {one["name"]: one["found"] for one in hooks(seen.gateway)}
    assert "send" in found["sends"]
    assert "submit" in found["asks-agent"]
    assert found["by-globals"] == ["HERMES_HOME"]
