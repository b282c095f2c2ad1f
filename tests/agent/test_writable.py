"""Features that hook systems elsewhere ship as their own parts, written here with hooks alone, in a few lines each."""

import json
import time
from typing import Any

import anyio
import pytest

from gateway.agent import Agent, tool
from gateway.agent.models.fallback import FallbackModel, RetryPolicy
from gateway.agent.models.script import script
from gateway.backoff import Backoff
from gateway.events import Deny, Retry, on
from gateway.hooks import HookRegistry
from gateway.messages.transcript import Entry

THROTTLED = {"error": {"kind": "rate", "message": "slow down"}}


def calling(tool_name, id_="c", **args):
    return {"tool_calls": [{"name": tool_name, "args": args, "id": id_}]}


@tool(repeatable=True)
async def read(name: str) -> str:
    """Read a long text."""
    return f"{name} " * 100


@pytest.mark.row("STR-82")
async def test_storage_retry_and_trimming_are_hooks(stage, tmp_path):
    """The loop knows none of the three; each is an object with marked methods."""

    class Back:
        @on("llm:after")
        def again(self, event):
            tries = event.own["tries"] = event.own.get("tries", 0) + 1
            if event["error"] and event["error"]["kind"] == "rate" and tries < 3:
                raise Retry(delay=0.001)

    class Short:
        @on("llm:before")
        def trim(self, event):
            event["messages"] = event["messages"][-2:]

    class Kept:
        @on("agent:end")
        def write(self, event):
            (tmp_path / "session.json").write_text(json.dumps([event["message_full"], event["response_full"]]))

    for part in (Back(), Short(), Kept()):
        stage.hooks.add(part)
    history = [Entry("user", "one"), Entry("assistant", "two"), Entry("user", "three"), Entry("assistant", "four")]
    result = await stage.play(stage.agent(THROTTLED, THROTTLED, "done"), "five", history=history)
    assert result.reply == "done"
    assert [entry.content for entry in stage.sent().messages] == ["four", "five"]
    assert json.loads((tmp_path / "session.json").read_text()) == ["five", "done"]


@pytest.mark.row("STR-81")
async def test_hooks_stand_outside_of_what_wraps_a_model(stage):
    """What tries again and falls back is between one `llm:before` and one `llm:after`, which sees what came of it."""
    model = FallbackModel(
        (script(THROTTLED, THROTTLED), script("from the second")), RetryPolicy(2, Backoff(0.001, 0.01))
    )
    result = await stage.play(stage.agent(model=model))
    assert result.reply == stage.fields("llm:after")["content"] == "from the second"
    assert (stage.names.count("llm:before"), stage.names.count("llm:after")) == (1, 1)


@pytest.mark.row("EDG-45")
async def test_a_window_of_context_is_kept_in_steps_and_summed_up_between_turns_alone(stage):
    summed = []

    class Window:
        @on("tool:after")
        def cut(self, event):
            event["result"] = event["result"][:50]

        @on("llm:before")
        def blank(self, event):
            results = [message for message in event["messages"] if message["role"] == "tool"]
            for old in results[:-1]:
                old["content"] = "[old]"
            event["messages"] = event["messages"][-6:]

        @on("agent:start")
        def sum_up(self, event):
            if len(event["messages"]) > 4:
                summed.append(len(event["messages"]))
                event["messages"] = [{"role": "system", "content": "before: much"}, *event["messages"][-2:]]

    stage.hooks.add(Window())
    history = [Entry("user", "q"), Entry("assistant", "a")] * 3
    agent = stage.agent(calling("read", "1", name="a"), calling("read", "2", name="b"), "done", tools=[read])
    await stage.play(agent, "go", history=history)
    assert summed == [6]
    last = stage.sent()
    assert [entry.content for entry in last.messages if entry.role == "tool"] == ["[old]", ("b " * 100)[:50]]
    assert len(last.messages) <= 6
    assert "before: much" in stage.sent(0).system


@pytest.mark.row("EDG-54")
async def test_a_tap_sees_what_is_sent_what_came_raw_and_what_is_said(stage):
    tapped: list[Any] = []
    is_open = True

    def tap(event):
        if is_open:
            tapped.append(event.get("messages") or event.get("content") or event["response_full"])

    stage.on("llm:before", order=1000)(tap)
    stage.on("llm:after", order=-1000)(tap)
    stage.on("agent:end", order=1000)(tap)
    stage.on("llm:before")(lambda event: {"messages": [{"role": "user", "content": "changed"}]})
    stage.on("llm:after")(lambda event: {"content": "polished"})
    stage.on("agent:end")(lambda event: {"response_full": "final"})
    await stage.play(stage.agent("raw", "raw"))
    assert [tapped[0][0]["content"], *tapped[1:]] == ["changed", "raw", "final"]
    is_open = False
    await stage.play(stage.agent("raw"))
    assert len(tapped) == 3


@pytest.mark.row("EDG-55")
async def test_spans_with_their_parents_are_two_hooks(stage, call_weather, weather_tool):
    spans: list[tuple[str, str | None]] = []

    def begin(event):
        stack = event.turn.setdefault("spans", [])
        spans.append((event.name, stack[-1] if stack else None))
        stack.append(event.name)

    def end(event):
        event.turn["spans"].pop()

    stage.on("agent:start", "llm:before", "tools:before", "tool:before")(begin)
    stage.on("agent:end", "llm:after", "tools:after", "tool:after")(end)
    await stage.play(stage.agent(call_weather, "done", tools=[weather_tool]))
    assert spans == [
        ("agent:start", None),
        ("llm:before", "agent:start"),
        ("tools:before", "agent:start"),
        ("tool:before", "tools:before"),
        ("llm:before", "agent:start"),
    ]
    assert stage.scope.bags.turn["spans"] == []


@pytest.mark.row("EDG-56")
async def test_a_failing_tool_is_tried_again_within_a_budget_of_the_turn(stage):
    tries = 0

    @tool(repeatable=True)
    async def fetch() -> str:
        """Fetch."""
        nonlocal tries
        tries += 1
        raise ValueError("no line")

    @stage.on("tool:after")
    def budget(event):
        if not event["error"] or event["error"].get("kind") == "arguments":
            event.own.pop(event["tool"], None)
            return None
        count = event.own[event["tool"]] = event.own.get(event["tool"], 0) + 1
        if count <= 2:
            return Retry()
        return {"result": {"ok": False, "retries_exhausted": True}, "error": None}

    result = await stage.play(stage.agent(calling("fetch"), "I see.", tools=[fetch]))
    assert tries == 3
    assert json.loads(result.entries[2].content)["retries_exhausted"] is True


def length(result):
    if isinstance(result, str):
        return result[:20]
    if len(json.dumps(result)) > 100:
        raise ValueError("too large")
    return result


def shape(result):
    if isinstance(result, dict) and not isinstance(result.get("price"), int):
        raise ValueError("price is not a number")
    return result


def validator(check):
    def validate(event):
        if event["error"]:
            return
        try:
            event["result"] = check(event["result"])
        except ValueError as wrong:
            event["result"], event["error"] = None, f"output validation: {wrong}"

    return validate


@pytest.mark.row("EDG-57")
@pytest.mark.row("EDG-58")
@pytest.mark.row("EDG-60")
@pytest.mark.parametrize(
    ("value", "told", "is_error"),
    [
        ("short", "short", False),
        ("long " * 100, "long " * 4, False),
        ({"price": "cheap"}, "output validation: price is not a number", True),
        ({"price": 7}, '{"price":7}', False),
        ({"price": 7, "more": "x" * 200}, "output validation: too large", True),
    ],
)
async def test_validators_of_length_and_shape_are_hooks_in_order(stage, value, told, is_error):
    for number, check in enumerate((length, shape)):
        stage.on("tool:after", order=number)(validator(check))

    @tool()
    async def give() -> Any:
        """Give."""
        return value

    result = await stage.play(stage.agent(calling("give"), "ok", tools=[give]))
    assert (result.entries[2].content, result.entries[2].error) == (told, is_error)


@pytest.mark.row("WEB-36")
async def test_pieces_of_the_system_prompt_are_added_in_order_and_a_broken_one_is_passed_over(stage):
    def piece(text):
        def add(event):
            event["system"] += f"\n{text}"

        return add

    stage.hooks.on("llm:before", piece("second"), order=20)
    stage.hooks.on("llm:before", lambda event: 1 / 0, order=15)
    stage.hooks.on("llm:before", piece("first"), order=10)
    stage.hooks.on("llm:before", piece("for admins"), when={"scope": "admin"})
    await stage.play(stage.agent("ok", instructions="You help."))
    assert stage.sent().system == "You help.\nfirst\nsecond"


@pytest.mark.row("WEB-43")
async def test_what_a_hook_keeps_in_its_bag_is_of_one_turn_though_turns_run_side_by_side(stage):
    """Good practice: state in the context and not in the hook, errors handled, nothing heavy on the way."""
    hooks = HookRegistry()
    took: dict[str, float] = {}

    class Timing:
        @on("agent:start")
        def begin(self, event):
            event.turn["began"] = time.perf_counter()

        @on("agent:end")
        def end(self, event):
            took[event["turn_id"]] = time.perf_counter() - event.turn["began"]
            raise RuntimeError("a hook that fails stops nobody")

    hooks.add(Timing())

    async with hooks:
        slow, fast = hooks.scope({"turn_id": "slow"}), hooks.scope({"turn_id": "fast"})
        await slow.run("agent:start", message="hi")
        await anyio.sleep(0.04)
        await fast.run("agent:start", message="hi")
        await fast.run("agent:end", response="ok")
        await slow.run("agent:end", response="ok")
    assert took["slow"] > took["fast"] + 0.03


@pytest.mark.row("EDG-37")
async def test_a_seed_that_a_hook_sets_for_the_run_reaches_each_call_of_the_model(stage, call_weather, weather_tool):
    @stage.on("agent:start")
    def repeatable(event):
        event["config"]["seed"] = 7

    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert [request.options for request in stage.model.requests] == [{"seed": 7}, {"seed": 7}]


@pytest.mark.row("WEB-32")
async def test_a_handoff_has_a_name_a_description_instructions_and_is_for_some_people_only(stage):
    """The model is told name and description; the target has its own prompt; who may reach it, a hook says."""
    stage.hooks.on("handoff:before", lambda event: Deny("not for you"), when={"target": "billing", "scope": "all"})
    billing = Agent("billing", script("never said"), instructions="You do bills.", description="knows all bills")
    ask = calling("delegate", agent="billing", task="my bill")
    result = await stage.play(stage.agent(ask, "I see.", agents=(billing,)))
    assert "billing: knows all bills" in stage.sent(0).tools[0].description
    assert result.entries[2].content == "not for you"
