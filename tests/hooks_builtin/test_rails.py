"""The hooks that stop, ask and limit: safety-guardrail, plan-mode, loop-detector, token-budget."""

import pytest

from gateway.agent import tool
from gateway.messages.transcript import Entry


def calling(name, id_, **args):
    return {"tool_calls": [{"name": name, "args": args, "id": id_}]}


@pytest.fixture
def ran():
    return []


@pytest.fixture
def echo(ran):
    @tool()
    async def echo(text: str) -> str:
        """Say it again."""
        ran.append(text)
        return text

    return echo


@pytest.mark.row("EDG-41")
@pytest.mark.parametrize(
    ("options", "text", "ended"),
    [
        ({"blocklist": ["bomb"]}, "how to build a BOMB?", "blocklist match: bomb"),
        ({"blocklist": ["bomb"]}, "how to build a boat?", ""),
        ({"allowlist": ["boat", "ship"]}, "how to build a bomb?", "not in allowlist"),
        ({"allowlist": ["Boat"], "blocklist": ["bomb"]}, "a boat with a bomb", "blocklist match: bomb"),
        ({"allowlist": ["boat"], "blocklist": ["bomb"]}, "a bomb", "not in allowlist"),
        ({"allowlist": ["boat"]}, "   ", ""),
    ],
)
async def test_the_guardrail_ends_a_turn_by_list_whatever_the_case(stage, enable, options, text, ended):
    await enable("safety-guardrail", reply="Let us talk of boats.", **options)
    result = await stage.play(stage.agent("fine"), text)
    assert (result.reply, result.hook_ended) == (("Let us talk of boats.", ended) if ended else ("fine", ""))


@pytest.mark.row("EDG-42")
@pytest.mark.parametrize(
    ("answer", "runs"), [(True, True), ("Yes", True), ("always", True), (False, False), ("no way", False)]
)
async def test_plan_mode_asks_for_the_named_tools_and_goes_on_when_declined(stage, enable, echo, ran, answer, runs):
    await enable("plan-mode", confirm=["echo"])
    agent = stage.agent(calling("echo", "e", text="hi"), "Then so.", tools=[echo])
    (question,) = (await stage.play(agent)).questions
    assert question.prompt == 'May echo run with {"text": "hi"}'
    stage.answers[question.id] = answer
    result = await stage.again(agent)
    assert (result.reply, ran) == ("Then so.", ["hi"] if runs else [])
    assert runs or result.entries[2].content.startswith('{"ok":false,"error":"The person declined')


@pytest.mark.row("EDG-42")
async def test_plan_mode_lets_other_tools_run_and_shows_arguments_that_are_no_object(stage, enable, echo, ran):
    await enable("plan-mode", confirm=["other"])
    agent = stage.agent(calling("echo", "e", text="hi"), calling("other", "o", __raw__="{broken"), "ok", tools=[echo])
    (question,) = (await stage.play(agent)).questions
    assert (question.prompt, ran) == ('May other run with {"__raw__": "{broken"}', ["hi"])


@pytest.mark.row("EDG-61")
async def test_the_second_identical_call_gets_a_hint_and_the_third_ends_the_turn(stage, enable, echo, ran):
    await enable("loop-detector", hint="Again?", reply="I stop.")
    turns = [calling("echo", f"e{n}", text="same") for n in range(3)]
    result = await stage.play(stage.agent(*turns, "never said", tools=[echo]))
    assert ran == ["same"]
    assert [entry.content for entry in result.entries if entry.role == "tool"][:2] == ["same", "Again?"]
    assert (result.reply, result.hook_ended) == ("I stop.", "loop: echo x3")


@pytest.mark.row("EDG-61")
async def test_other_arguments_and_other_turns_are_no_loop(stage, enable, echo, ran):
    await enable("loop-detector")
    agent = stage.agent(*(calling("echo", f"e{n}", text=str(n)) for n in range(4)), "ok", tools=[echo])
    assert (await stage.play(agent)).reply == "ok"
    for _ in range(3):
        agent = stage.agent(calling("echo", "e", text="same"), "ok", tools=[echo])
        assert (await stage.play(agent)).reply == "ok"
    assert ran == ["0", "1", "2", "3", "same", "same", "same"]


@pytest.mark.row("EDG-43")
async def test_below_the_budget_all_is_sent_above_it_the_last_ones_and_of_those_what_fits(stage, enable):
    await enable("token-budget", max_context_tokens=100, keep_last=4)
    history = [Entry("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 38) for n in range(8)]
    await stage.play(stage.agent("ok"), history=history)
    assert len(stage.sent().messages) == 9
    history = [Entry(entry.role, entry.content * 3) for entry in history]
    await stage.play(stage.agent("ok"), history=history)
    assert [entry.content[0] for entry in stage.sent().messages] == ["5", "6", "7", "h"]
    await stage.play(stage.agent("ok", instructions="s" * 200), history=history)
    assert [entry.content[0] for entry in stage.sent().messages] == ["7", "h"]


@pytest.mark.row("EDG-43")
async def test_the_budget_never_leaves_a_result_without_its_call(stage, enable, echo):
    await enable("token-budget", max_context_tokens=30, keep_last=1)
    agent = stage.agent(calling("echo", "e", text="y" * 300), "ok", tools=[echo])
    await stage.play(agent)
    assert [entry.role for entry in stage.sent().messages] == ["assistant", "tool"]
