"""The changes and decisions of an interceptor."""

import asyncio
import logging
from types import MappingProxyType
from typing import Any

import pytest

from gateway.hooks import Deny, End, Event, HookRegistry, Retry

TOOL = {"tool": "shell", "args": {"command": "ls"}, "hop": 0}


@pytest.fixture
def hooks() -> HookRegistry:
    return HookRegistry()


@pytest.mark.row("SHE-6")
@pytest.mark.row("WEB-11")
async def test_an_event_that_nobody_knows_is_free_all_fields_all_outcomes(hooks) -> None:
    hooks.on("my:event", lambda event: {"a": 2, "new": 3})
    hooks.on("my:event", lambda event: Retry())
    event = await hooks.run("my:event", a=1)
    assert (event["a"], event["new"]) == (2, 3)
    assert isinstance(event.outcome, Retry)


@pytest.mark.row("SHE-8")
async def test_where_nobody_listens_the_event_has_the_fields_and_no_outcome(hooks) -> None:
    event = await hooks.run("tool:before", **TOOL)
    assert event == TOOL
    assert (event.name, event.outcome) == ("tool:before", None)


@pytest.mark.row("SHE-3")
@pytest.mark.row("WEB-9")
@pytest.mark.row("EDG-5")
async def test_none_is_unchanged_and_a_mapping_changes_what_it_names(hooks) -> None:
    hooks.on("tool:before", lambda event: None)
    hooks.on("tool:before", lambda event: {"tool": "other"})
    hooks.on("tool:before", lambda event: {})
    hooks.on("tool:before", lambda event: MappingProxyType({"args": {"x": 1}}))
    event = await hooks.run("tool:before", **TOOL)
    assert (event["tool"], event["args"]) == ("other", {"x": 1})


@pytest.mark.row("SHE-4")
@pytest.mark.row("STR-70")
async def test_a_change_in_place_counts_without_an_answer_and_those_who_follow_see_it(hooks) -> None:
    seen: list[Any] = []
    hooks.on("tool:before", lambda event: event.update(tool="other"))
    hooks.on("tool:before", lambda event: event["args"].update(x=1))
    hooks.on("tool:before", lambda event: seen.append((event["tool"], dict(event["args"]))))
    event = await hooks.run("tool:before", tool="shell", args={})
    assert seen == [("other", {"x": 1})]
    assert event["tool"] == "other"


@pytest.mark.row("EDG-6")
@pytest.mark.row("WEB-53")
async def test_each_sees_what_the_one_before_left(hooks) -> None:
    for letter in "abc":
        hooks.on("my:event", lambda event, letter=letter: {"text": event["text"] + letter})
    assert (await hooks.run("my:event", text=""))["text"] == "abc"


@pytest.mark.row("WEB-8")
async def test_a_hook_may_give_back_the_event_itself_or_a_copy_of_it(hooks, caplog) -> None:
    def itself(event):
        event["tool"] = "other"
        return event

    hooks.on("tool:before", itself)
    hooks.on("tool:before", dict)
    event = await hooks.run("tool:before", **TOOL)
    assert event["tool"] == "other"
    assert not caplog.records, "a copy with read-only fields that are as they were is nothing to warn of"


async def test_a_read_only_field_in_an_answer_is_dropped_with_a_warning(hooks, caplog) -> None:
    hooks.on("tool:before", lambda event: {"hop": 7, "added": 1, "tool": "other"}, key="wrong")
    event = await hooks.run("tool:before", **TOOL)
    assert (event["tool"], event["hop"], "added" in event) == ("other", 0, False)
    assert [record.getMessage() for record in caplog.records] == [
        "wrong cannot change 'hop' at tool:before; that is left as it was",
        "wrong cannot change 'added' at tool:before; that is left as it was",
    ]


@pytest.mark.row("STR-15")
async def test_a_read_only_field_that_is_written_is_the_hooks_failure(hooks, caplog) -> None:
    def wrong(event) -> None:
        event["tool"] = "other"
        event["hop"] = 7

    hooks.on("tool:before", wrong, key="wrong")
    event = await hooks.run("tool:before", **TOOL)
    assert (event["tool"], event["hop"]) == ("other", 0)
    assert "wrong failed at tool:before: KeyError" in caplog.text


@pytest.mark.row("STR-11")
@pytest.mark.row("STR-13")
@pytest.mark.row("WEB-10")
@pytest.mark.row("EDG-3")
@pytest.mark.row("EDG-9")
async def test_whatever_can_be_called_is_a_hook_and_what_can_be_awaited_is_awaited(hooks) -> None:
    class Callable:
        async def __call__(self, event) -> dict[str, Any]:
            return {"text": event["text"] + "o"}

    class Awaitable:
        def __init__(self, answer) -> None:
            self.answer = answer

        def __await__(self):
            yield from ()
            return self.answer

    async def coroutine(event) -> dict[str, Any]:
        return {"text": event["text"] + "c"}

    hooks.on("my:event", lambda event: {"text": event["text"] + "f"})
    hooks.on("my:event", coroutine)
    hooks.on("my:event", Callable())
    hooks.on("my:event", lambda event: asyncio.ensure_future(coroutine(event)))
    hooks.on("my:event", lambda event: Awaitable({"text": event["text"] + "a"}))
    assert (await hooks.run("my:event", text=""))["text"] == "fcoca"


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.row("EDG-5")
@pytest.mark.row("STR-67")
@pytest.mark.row("WEB-55")
@pytest.mark.parametrize("outcome", [End("bye", "because"), Deny("no")])
async def test_the_first_end_or_denial_stops_the_chain_returned_or_raised(hooks, outcome, raises) -> None:
    seen: list[Any] = []

    def decide(event):
        if raises:
            raise outcome
        return outcome

    hooks.on("tool:before", decide)
    hooks.on("tool:before", seen.append)
    event = await hooks.run("tool:before", **TOOL)
    assert event.outcome is outcome
    assert seen == []


@pytest.mark.row("WEB-17")
async def test_an_outcome_may_be_raised_from_any_depth_and_be_an_error_of_ones_own(hooks: HookRegistry) -> None:
    class RateLimit(Deny):
        text = "too fast"

    async def deep() -> None:
        raise RateLimit

    @hooks.on("tool:before")
    async def limit(event) -> None:
        await deep()

    event = await hooks.run("tool:before", **TOOL)
    assert isinstance(event.outcome, RateLimit)
    assert event.outcome.text == "too fast"


@pytest.mark.row("STR-68")
async def test_soft_denials_let_all_speak_and_are_joined(hooks) -> None:
    hooks.on("tool:before", lambda event: Deny("use less", soft=True))
    hooks.on("tool:before", lambda event: {"tool": "other"})
    hooks.on("tool:before", lambda event: Deny("and slower", soft=True))
    event = await hooks.run("tool:before", **TOOL)
    assert isinstance(event.outcome, Deny)
    assert (event.outcome.text, event.outcome.soft) == ("use less\nand slower", True)
    assert event["tool"] == "other"


@pytest.mark.row("STR-71")
@pytest.mark.parametrize("soft_first", [True, False])
async def test_a_hard_denial_beats_soft_ones(hooks, soft_first) -> None:
    for is_soft in (soft_first, not soft_first):
        hooks.on("tool:before", lambda event, soft=is_soft: Deny("soft" if soft else "hard", soft=soft))
    event = await hooks.run("tool:before", **TOOL)
    assert isinstance(event.outcome, Deny)
    assert (event.outcome.text, event.outcome.soft) == ("hard", False)


@pytest.mark.row("STR-33")
async def test_of_several_retries_the_last_word_counts_and_none_stops_the_chain(hooks) -> None:
    hooks.on("tool:after", lambda event: Retry("one", delay=1), order=1)
    hooks.on("tool:after", lambda event: Retry("two", delay=2), order=2)
    event = await hooks.run("tool:after", result="x", error=None)
    assert isinstance(event.outcome, Retry)
    assert (event.outcome.message, event.outcome.delay) == ("two", 2)


async def test_an_end_beats_a_retry(hooks) -> None:
    hooks.on("tool:after", lambda event: Retry(), order=1)
    hooks.on("tool:after", lambda event: End("bye"), order=2)
    assert isinstance((await hooks.run("tool:after")).outcome, End)


@pytest.mark.row("STR-72")
@pytest.mark.parametrize(
    ("name", "outcome"),
    [("tool:before", Retry()), ("tools:after", Deny("no")), ("agent:end", End("x")), ("gateway:startup", Deny("no"))],
)
async def test_an_outcome_that_is_not_honoured_is_a_warning_without_effect(hooks, caplog, name, outcome) -> None:
    seen: list[Any] = []
    hooks.on(name, lambda event: outcome, key="hopeful", order=1)
    hooks.on(name, seen.append, order=2)
    event = await hooks.run(name)
    assert event.outcome is None
    assert len(seen) == 1
    assert f"hopeful answered {type(outcome).__name__} at {name}, which has no effect there" in caplog.text


@pytest.mark.row("EDG-23")
@pytest.mark.row("SHE-21")
async def test_a_result_before_an_operation_is_a_field_and_the_rest_still_run(hooks) -> None:
    seen: list[Any] = []
    hooks.on("tool:before", lambda event: {"result": "made up"})
    hooks.on("tool:before", lambda event: seen.append(event["result"]))
    event = await hooks.run("tool:before", **TOOL)
    assert (event["result"], event.outcome, seen) == ("made up", None, ["made up"])


@pytest.mark.row("SHE-32")
@pytest.mark.row("SHE-33")
@pytest.mark.row("SHE-34")
@pytest.mark.row("SHE-35")
@pytest.mark.row("WEB-57")
async def test_an_error_can_be_left_consumed_or_replaced_and_each_sees_what_the_one_before_left(hooks) -> None:
    seen: list[Any] = []

    def note(event) -> None:
        seen.append((event["tool"], event["error"]))

    hooks.on("tool:after", note, order=1)
    hooks.on("tool:after", lambda event: {"error": "replaced"}, order=2)
    hooks.on("tool:after", note, order=3)
    hooks.on("tool:after", lambda event: event.update(error=None), order=4)
    hooks.on("tool:after", note, order=5)
    event = await hooks.run("tool:after", tool="shell", result=None, error="broken")
    assert [error for _, error in seen] == ["broken", "replaced", None]
    assert event["error"] is None


@pytest.mark.parametrize(
    ("answer", "fields", "outcome"),
    [
        ({"decision": "allow"}, {}, None),
        ({"decision": "deny", "message": "no"}, {}, Deny),
        ({"decision": "handled", "message": "done"}, {"result": "done"}, None),
        ({"decision": "rewrite", "command_name": "/new", "raw_args": "x"}, {"command": "new", "args": "x"}, None),
        ({"decision": "rewrite", "command_name": ""}, {"command": "old"}, None),
        ("chatter", {"command": "old"}, None),
    ],
)
async def test_a_handler_that_imports_nothing_of_ours_answers_with_plain_data(hooks, answer, fields, outcome) -> None:
    hooks.on("command:*", lambda context: answer)
    event = await hooks.run("command:old", command="old", args="", result=None)
    assert fields.items() <= event.items()
    assert event.outcome is None if outcome is None else isinstance(event.outcome, outcome)


async def test_an_unknown_decision_is_the_hooks_failure_and_a_guard_then_denies(hooks, caplog) -> None:
    hooks.on("tool:before", lambda event: {"decision": "dney"}, on_error="deny", key="guard")
    event = await hooks.run("tool:before", **TOOL)
    assert isinstance(event.outcome, Deny)
    assert "unknown decision 'dney'; did you mean 'deny'?" in caplog.text


@pytest.mark.row("WEB-33")
async def test_a_filter_is_asked_when_the_hooks_turn_comes(hooks) -> None:
    seen: list[Any] = []
    hooks.on("tool:before", lambda event: {"tool": "shell"}, when={"tool": "sh"}, order=1)
    hooks.on("tool:before", lambda event: seen.append(event["tool"]), when={"tool": "shell"}, order=2)
    hooks.on("tool:before", lambda event: seen.append("admin only"), when={"scope": "admin"}, order=3)
    await hooks.run("tool:before", tool="sh", scope="user")
    await hooks.run("tool:before", tool="cat", scope="admin")
    assert seen == ["shell", "admin only"]


@pytest.mark.row("WEB-5")
async def test_to_register_and_remove_while_an_event_runs_counts_from_the_next_one_on(hooks: HookRegistry) -> None:
    seen: list[Any] = []

    def late(event) -> None:
        seen.append("late")

    @hooks.on("my:event")
    def changer(event) -> None:
        seen.append("changer")
        hooks.on("my:event", late)
        remove()

    remove = hooks.on("my:event", lambda event: seen.append("removed"))
    await hooks.run("my:event")
    assert seen == ["changer", "removed"]
    await hooks.run("my:event")
    assert seen == ["changer", "removed", "changer", "late"]


async def test_every_event_has_an_id_a_time_and_a_cause(hooks) -> None:
    seen: list[Event] = []
    hooks.on("my:event", seen.append)
    await hooks.run("my:event")
    await hooks.run("my:event")
    await hooks.run("my:event", id="given", time=1.0, cause="other")
    first, second, given = seen
    assert first["id"] != second["id"]
    assert first["time"] <= second["time"]
    assert first["cause"] is None
    assert (given["id"], given["time"], given["cause"]) == ("given", 1.0, "other")


async def test_one_that_fails_is_told_with_its_traceback_once_and_then_only_counted(hooks, caplog) -> None:
    def broken(event) -> None:
        raise RuntimeError("always")

    hooks.on("my:event", broken, key="broken")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            await hooks.run("my:event")
    assert [record.getMessage() for record in caplog.records] == ["broken failed at my:event: RuntimeError: always"]
    assert caplog.records[0].exc_info
    assert hooks.hooks[0].failures == 5


async def test_the_short_form_of_a_text_changes_with_it(hooks) -> None:
    seen: list[Any] = []
    hooks.on("agent:end", lambda event: event.update(response_full="b" + event["response_full"]))
    hooks.on("agent:end", lambda event: {"response_full": "c" + event["response_full"]})
    hooks.on("agent:end", lambda event: seen.append((event["response"], event["response_full"])))
    await hooks.run("agent:end", response="a" * 500, response_full="a" * 600)
    assert seen == [("cb" + "a" * 498, "cb" + "a" * 600)]
