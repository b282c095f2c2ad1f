"""Hooks written for Hermes, unmodified, in the running gateway: their loading, their calls, and their fields."""

import json

import pytest

from tests.hermes.conftest import Seen, hooks

pytestmark = pytest.mark.process

# Each event, with the keys that Hermes gives it.
KEYS = {
    "gateway:startup": "platforms",
    "session:start": "platform user_id session_id session_key",
    "session:end": "platform user_id session_key",
    "session:reset": "platform user_id session_key",
    "agent:start": "platform user_id chat_id thread_id chat_type session_id message",
    "agent:step": "platform user_id session_id iteration tool_names tools",
    "agent:end": "platform user_id chat_id thread_id chat_type session_id message response",
    "command:new": "platform user_id command raw_command args raw_args",
}


@pytest.fixture(scope="module", autouse=True)
def talk(seen: Seen) -> None:
    """What a person says: a tool is used, answers are long or fail, a session begins anew."""
    for text in ("hello", "use a tool", "long " + "x" * 1200, "fail", "/reset", "please send"):
        seen.gateway.say(text)


@pytest.mark.row("HRM-4", "HRM-7", "HRM-8", "HRM-11", "HRM-13", "HRM-14")
@pytest.mark.parametrize("name", KEYS)
def test_every_event_has_the_keys_that_hermes_gives_it_and_no_others(seen: Seen, name: str) -> None:
    assert seen.event(name).keys() == set(KEYS[name].split())


def test_the_module_has_its_name_and_file_and_is_known_while_it_runs(seen: Seen) -> None:
    ((_, name, file, known),) = [line for line in seen.wait("every-event") if line[0] == "imported"]
    assert (name, known) == ("hermes_hook_every-event", True)
    assert file == str(seen.gateway.home.hooks / "every-event" / "handler.py")


def test_message_and_response_are_cut_at_500_and_whole_beside(seen: Seen) -> None:
    end = next(one for one in seen.events("agent:end") if one["message"].startswith("long"))
    assert (len(end["message"]), len(end["response"])) == (500, 500)
    whole = next(line for line in seen.wait("by-name", 3) if line[0] > 600)
    assert whole == [1205, 1200, 1205, True, True, "nothing", False]


@pytest.mark.row("HRM-12")
def test_a_step_tells_names_results_and_arguments(seen: Seen) -> None:
    step = seen.event("agent:step")
    (tool,) = step["tools"]
    assert (step["iteration"], step["tool_names"], tool["name"]) == (1, ["memory"], "memory")
    assert isinstance(tool["result"], str)
    assert json.loads(tool["arguments"]) == {"content": "x", "action": "add", "target": "memory"}


def test_a_turn_that_fails_ends_with_agent_end_too(seen: Seen) -> None:
    assert seen.event("agent:end", message="fail")["response"]


@pytest.mark.row("HRM-14")
def test_an_alias_tells_the_commands_own_name_and_what_was_typed(seen: Seen) -> None:
    told = seen.event("command:new")
    assert (told["command"], told["raw_command"], told["args"], told["raw_args"]) == ("new", "reset", "", "")


@pytest.mark.row("HRM-9", "HRM-10")
def test_the_session_ends_and_begins_anew(seen: Seen) -> None:
    first = seen.events("session:start", platform="terminal")[0]["session_id"]
    assert seen.event("session:end")["session_key"] == seen.event("session:reset")["session_key"]
    assert seen.event("agent:start", message="please send")["session_id"] != first


@pytest.mark.row("HRM-3", "HRM-5", "HRM-6")
@pytest.mark.parametrize(
    ("hook", "seen_first"),
    [
        ("forward-refs", [["child", "child"]]),
        ("callable-object", ["agent:start", ["chat_id", "chat_type", "message"]]),
        ("by-globals", ["made", "agent:start"]),
        ("re-exported", ["agent:start", "reexported_helper.py"]),
        ("carries-over", [{"n": 7}]),
        ("lasting", [True, "done", "done", True]),
        ("own-tools", ["agent:end"]),
    ],
)
def test_it_is_found_and_called_as_hermes_would(seen: Seen, hook: str, seen_first: list[object]) -> None:
    assert seen.wait(hook)[0] == seen_first


def test_the_conversation_is_in_the_context_variables_in_threads_too(seen: Seen) -> None:
    told = (line for line in seen.wait("session-vars", 2) if line[0]["PLATFORM"] == "terminal")
    here, there, key, session = next(told)
    assert here == there
    assert (here["PLATFORM"], here["KEY"], here["ID"]) == ("terminal", key, session)
    assert (here["CHAT_ID"], here["USER_ID"]) == ("main", "owner")


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("/title deny", "not today"),
        ("/title plainly", "/title was refused by a hook."),
        ("/title handled", "done already"),
        ("/title silent", ""),
        ("/sessions rewrite", "This session is now called: rewritten"),
        ("/title nowhere", "This session is now called: nowhere"),
        ("/title allow", "This session is now called: allow"),
        ("/title unknown", "This session is now called: unknown"),
        ("/title text", "This session is now called: text"),
        ("/title number", "This session is now called: number"),
    ],
)
def test_a_decision_about_a_command_counts_as_in_hermes(seen: Seen, said: str, reply: str) -> None:
    assert seen.gateway.say(said)["reply"] == reply


def test_what_hermes_passes_over_is_no_failure_here(seen: Seen) -> None:
    (hook,) = (one for one in hooks(seen.gateway) if one["name"] == "decides")
    assert (hook["failures"], hook["breaker"], hook["intercepts"]) == (0, "closed", ["command:*"])


def test_a_rewritten_command_tells_no_hook_again(seen: Seen) -> None:
    told = [line[1:] for line in seen.all("decides")]
    assert ["sessions", "sessions", "rewrite"] in told
    assert ["title", "title", "rewritten"] not in told


def test_a_name_that_nobody_tells_is_accepted_and_reported(seen: Seen) -> None:
    (hook,) = (one for one in hooks(seen.gateway) if one["name"] == "every-event")
    assert any("before_message" in finding and "message:received" in finding for finding in hook["findings"])
