"""Hooks that ask the person."""

import pytest

from gateway.events import Pause
from gateway.hooks import Deny, HookRegistry, Retry

TURN = {"turn_id": "t1", "scope": "user"}


def turn(hooks: HookRegistry, answers=None):
    return hooks.scope(TURN, answers={} if answers is None else answers)


@pytest.fixture
def hooks() -> HookRegistry:
    return HookRegistry()


@pytest.mark.row("STR-51")
@pytest.mark.row("STR-54")
async def test_all_hooks_run_and_all_their_questions_leave_together(hooks) -> None:
    seen = []
    hooks.on("tool:before", lambda event: event.ask("May I?", name="may"), key="first")
    hooks.on("tool:before", lambda event: seen.append("between"))
    hooks.on("tool:before", lambda event: event.ask("Sure?"), key="second")
    with pytest.raises(Pause) as pause:
        await turn(hooks).run("tool:before", tool="x", call_id="c1")
    assert [(question.hook, question.name, question.prompt) for question in pause.value.questions] == [
        ("first", "may", "May I?"),
        ("second", "Sure?", "Sure?"),
    ]
    assert [question.id for question in pause.value.questions] == [
        "t1/tool:before/c1/first/may",
        "t1/tool:before/c1/second/Sure?",
    ]
    assert seen == ["between"]


@pytest.mark.parametrize(
    ("name", "fields", "about"),
    [
        ("tool:before", {"tool": "x", "call_id": "c1", "args": {"a": 1}}, [("c1", "x", {"a": 2})]),
        (
            "tools:before",
            {"calls": [{"id": "c1", "name": "x", "args": {"a": 1}}, {"id": "c2", "name": "y", "args": {}}]},
            [("c1", "x", {"a": 1}), ("c2", "y", {})],
        ),
        ("tool:after", {"tool": "x", "call_id": "c1", "args": {"a": 1}}, []),
        ("agent:start", {"message": "hi"}, []),
    ],
)
async def test_a_question_before_a_tool_is_an_approval_of_the_call_as_all_hooks_left_it(
    hooks, name, fields, about
) -> None:
    hooks.on(name, lambda event: event.ask("May I?"))
    hooks.on("tool:before", lambda event: event["args"].update(a=2))
    with pytest.raises(Pause) as pause:
        await turn(hooks).run(name, **fields)
    (question,) = pause.value.questions
    assert question.is_approval is bool(about)
    assert [(call.call_id, call.tool, call.args) for call in question.calls] == about


@pytest.mark.row("STR-52")
@pytest.mark.row("STR-69")
@pytest.mark.parametrize(("answer", "denied"), [(True, False), (False, True)])
async def test_with_the_answers_the_hooks_run_again_and_go_on(hooks, answer, denied) -> None:
    @hooks.on("tool:before", key="guard")
    def guard(event):
        if not event.ask("May I?"):
            return Deny("no")
        return None

    with pytest.raises(Pause) as pause:
        await turn(hooks).run("tool:before", tool="x", call_id="c1")
    answers = {question.id: answer for question in pause.value.questions}
    event = await turn(hooks, answers).run("tool:before", tool="x", call_id="c1")
    assert isinstance(event.outcome, Deny) is denied


@pytest.mark.row("STR-56")
async def test_an_answer_for_one_call_is_no_standing_approval(hooks) -> None:
    hooks.on("tool:before", lambda event: event.ask("May I?"), key="guard")
    answers = {"t1/tool:before/c1/guard/May I?": True}
    with pytest.raises(Pause):
        await turn(hooks, answers).run("tool:before", tool="x", call_id="c2")
    scope = turn(hooks, answers)
    await scope.run("tool:before", tool="x", call_id="c1")
    with pytest.raises(Pause):
        await scope.run("tool:before", tool="x", call_id="c1")


async def test_the_same_scope_may_be_asked_again_once_the_answer_is_there(hooks) -> None:
    hooks.on("tool:before", lambda event: {"result": event.ask("May I?")}, key="guard")
    answers: dict[str, object] = {}
    scope = turn(hooks, answers)
    with pytest.raises(Pause) as pause:
        await scope.run("tool:before", tool="x", call_id="c1")
    answers[pause.value.questions[0].id] = "sure"
    assert (await scope.run("tool:before", tool="x", call_id="c1"))["result"] == "sure"


@pytest.mark.row("STR-53")
async def test_an_answer_by_name_or_at_hand_spares_the_question(hooks) -> None:
    hooks.on("tool:before", lambda event: {"result": event.ask("May I?", "may")})
    assert (await turn(hooks, {"may": False}).run("tool:before", tool="x"))["result"] is False
    hooks.on("my:event", lambda event: {"result": event.ask("May I?", answer="yes")})
    assert (await hooks.run("my:event"))["result"] == "yes"


@pytest.mark.row("STR-54")
async def test_the_same_name_twice_by_one_hook_is_its_failure(hooks, caplog) -> None:
    def twice(event) -> None:
        event.ask("May I?", "may")
        event.ask("May I really?", "may")

    hooks.on("tool:before", twice, key="twice", on_error="raise")
    hooks.on("tool:before", lambda event: event.ask("And?", "may"))
    with pytest.raises(ValueError, match="twice asks 'may' twice at tool:before"):
        await turn(hooks, {"may": True}).run("tool:before", tool="x")


@pytest.mark.row("STR-74")
@pytest.mark.parametrize("on_error", ["skip", "raise", "deny"])
async def test_a_question_passes_whatever_the_error_policy_is(hooks, on_error) -> None:
    async def ask(event) -> None:
        try:
            event.ask("May I?")
        except Exception:  # noqa: BLE001 - what a careless hook does
            pytest.fail("no except Exception holds a question up")

    hooks.on("tool:before", ask, on_error=on_error)
    with pytest.raises(Pause):
        await turn(hooks).run("tool:before", tool="x")
    assert hooks.hooks[0].failures == 0


@pytest.mark.parametrize("soft", [True, False])
async def test_what_is_denied_anyway_asks_nobody(hooks, soft) -> None:
    hooks.on("tool:before", lambda event: event.ask("May I?"))
    hooks.on("tool:before", lambda event: Deny("no", soft=soft))
    event = await turn(hooks).run("tool:before", tool="x")
    assert isinstance(event.outcome, Deny)


async def test_a_question_goes_before_another_try(hooks) -> None:
    hooks.on("tool:after", lambda event: Retry(), order=1)
    hooks.on("tool:after", lambda event: event.ask("Again?"), order=2)
    with pytest.raises(Pause):
        await turn(hooks).run("tool:after", tool="x")


async def test_where_nobody_can_answer_the_answer_is_no(hooks) -> None:
    hooks.on("tool:before", lambda event: {"result": event.ask("May I?")})
    event = await hooks.scope(TURN, answers=None).run("tool:before", tool="x")
    assert event["result"] is False


@pytest.mark.row("STR-76")
@pytest.mark.parametrize(("answer", "passes"), [(True, True), ("yes", True), ("no", False), (False, False)])
async def test_a_question_as_plain_data_is_an_approval(hooks, answer, passes) -> None:
    hooks.on("tool:before", lambda context: {"decision": "ask", "name": "may", "prompt": "May I?"}, key="shell")
    with pytest.raises(Pause) as pause:
        await turn(hooks).run("tool:before", tool="x", call_id="c1")
    (question,) = pause.value.questions
    assert (question.hook, question.prompt, question.id) == ("shell", "May I?", "t1/tool:before/c1/shell/may")
    event = await turn(hooks, {question.id: answer}).run("tool:before", tool="x", call_id="c1")
    assert isinstance(event.outcome, Deny) is not passes


async def test_an_observer_cannot_ask(hooks, caplog) -> None:
    hooks.watch("tool:before", lambda name, context: context.ask("May I?"), key="watcher")
    async with hooks:
        await turn(hooks).run("tool:before", tool="x")
        hooks.emit("tool:before", tool="y")
        await hooks.settled()
    assert "watcher only observes tool:before: a hook that asks must intercept it" in caplog.text
    assert hooks.hooks[0].failures == 2


async def test_an_observer_is_told_that_the_event_waits_for_an_answer(hooks) -> None:
    told = []
    hooks.watch("tool:before", lambda name, context: told.append(context.outcome))
    hooks.on("tool:before", lambda event: event.ask("May I?"))
    async with hooks:
        with pytest.raises(Pause):
            await turn(hooks).run("tool:before", tool="x")
        await hooks.settled()
    assert [type(outcome) for outcome in told] == [Pause]
