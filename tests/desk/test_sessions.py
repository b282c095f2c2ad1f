"""The history of a session of a program: what was asked and who answered, with `desk.record` also what was said."""

import json

import pytest
from anyio import to_thread

from gateway.testing.networks.wire import ANN
from tests.desk.desk_program import GUARD, Desk, add_hook, make_call, make_event

pytestmark = pytest.mark.process


def read_histories(desk: Desk) -> list[str]:
    """Read what is kept of each session of a program, as an export has it."""
    listed = desk.gateway.call("sessions.list")["sessions"]
    ours = [one["session_id"] for one in listed if one["platform"] == "desk"]
    return [desk.gateway.call("sessions.export", {"session": one, "format": "markdown"})["text"] for one in ours]


async def test_a_session_has_what_was_asked_and_who_answered(desk: Desk) -> None:
    await add_hook(desk, "guard", "intercepts: [tool:before]\n", GUARD)
    assert (await desk.ask(make_call(command="rm -r x")))[0] == 2
    asked = desk.ask(make_call(command="git push"))
    await desk.wire.press(await desk.question(), "Yes", by=ANN)
    await asked
    assert await desk.ask(make_call(command="ls")) == (0, "", "")
    for event in ("UserPromptSubmit", "PostToolUse", "Stop"):
        assert await desk.ask(make_event(event)) == (0, "", "")
    [kept] = read_histories(desk)
    assert kept.startswith("# Claude Code in /home/ann/proj\n")
    for words in (
        "Denied by guard: nothing is removed here",
        "The hook guard asks: May it push?",
        "Allowed by ",
        '"git push"',
    ):
        assert words in kept
    assert not any(words in kept for words in ('"ls"', "say hello with bash", "RESULT SEEN")), kept


async def test_a_record_has_the_prompts_the_results_and_the_answers_too(desk: Desk) -> None:
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {record: true}\n")
    await to_thread.run_sync(desk.gateway.cli, "reload")
    for event, fields in (
        ("UserPromptSubmit", {}),
        ("PostToolUse", {"tool_response": {"stdout": "made it"}}),
        ("PostToolUseFailure", {"error": "it fell"}),
        ("Stop", {}),
    ):
        sent = json.loads(make_event(event, **fields))
        if event in ("UserPromptSubmit", "Stop"):
            sent |= {"tool_name": ""}
        assert await desk.ask(json.dumps(sent)) == (0, "", "")
    [kept] = read_histories(desk)
    for words in (
        "say hello with bash",
        '"touch made"',
        '{"stdout": "made it"}',
        "Bash (failed)",
        "it fell",
        "RESULT SEEN",
    ):
        assert words in kept
    assert desk.gateway.call("sessions.search", {"query": "hello"})["hits"]
