"""The changes that hooks may make around tools, and the model's view of a call, whatever happens to it."""

from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest

from gateway.agent import Tool, ToolContext, tool
from gateway.errors import AgentError
from gateway.events import Deny, End, Retry


def calling(*calls):
    return {"tool_calls": [{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(calls)]}


def results(result):
    return {entry.call_id: (entry.content, entry.error) for entry in result.entries if entry.role == "tool"}


@pytest.fixture
def ran():
    return []


@pytest.fixture
def add(ran):
    @tool()
    async def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    return add


async def test_calls_run_side_by_side_and_answer_in_their_order(stage):
    barrier, arrived = anyio.Event(), []

    @tool()
    async def meet(name: str) -> str:
        """Wait for the others."""
        arrived.append(name)
        if len(arrived) == 3:
            barrier.set()
        await barrier.wait()
        return name

    agent = stage.agent(calling(*(("meet", {"name": name}) for name in "abc")), "met", tools=[meet])
    result = await stage.play(agent)
    assert [entry.content for entry in result.entries if entry.role == "tool"] == ["a", "b", "c"]


@pytest.mark.row("STR-41")
async def test_an_unknown_tool_is_an_error_that_names_the_ones_there_are(stage, add):
    result = await stage.play(stage.agent(calling(("ad", {})), "ok", tools=[add]))
    assert results(result) == {"c0": ("tool 'ad' not found; did you mean 'add'?", True)}
    assert stage.fields("tool:before")["impl"] is None
    assert stage.fields("tool:after")["error"]["type"] == "AgentError"


@pytest.mark.row("EDG-70")
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "required field `a`"),
        ({"a": "many"}, "Expected `int`, got `str`"),
        ({"a": 1, "z": 2}, "unknown field `z`"),
        ({"__raw__": "{a: "}, "not a JSON object: {a: "),
    ],
)
async def test_wrong_arguments_are_told_with_the_right_ones_and_the_tool_is_not_run(stage, add, ran, args, words):
    result = await stage.play(stage.agent(calling(("add", args)), "ok", tools=[add]))
    text, is_error = results(result)["c0"]
    assert words in text
    assert "Parameters: a (integer, required), b (integer)" in text
    assert (is_error, ran) == (True, [])
    assert stage.fields("tool:after")["error"]["kind"] == "arguments"


async def test_a_number_written_as_text_is_taken_as_the_number(stage, add, ran):
    await stage.play(stage.agent(calling(("add", {"a": "5"})), "ok", tools=[add]))
    assert ran == [(5, 1)]


@pytest.mark.row("STR-44")
@pytest.mark.row("EDG-72")
async def test_a_failing_tool_is_an_error_result_and_the_turn_goes_on(stage):
    @tool()
    async def fail() -> str:
        """Fail."""
        raise AgentError("no bread left")

    result = await stage.play(stage.agent(calling(("fail", {})), "Sorry.", tools=[fail]))
    assert results(result) == {"c0": ("no bread left", True)}
    assert (result.reply, result.status) == ("Sorry.", "ok")
    assert stage.fields("tool:after")["error"]["message"] == "no bread left"


@pytest.mark.row("STR-37")
@pytest.mark.row("STR-39")
@pytest.mark.row("EDG-22")
@pytest.mark.row("WEB-22")
async def test_a_renamed_call_runs_the_other_tool_with_the_arguments_that_hooks_left(stage, add, ran):
    @tool()
    async def subtract(a: int) -> int:
        """Subtract one."""
        return a - 1

    @stage.on("tool:before")
    def rename(event):
        event["tool"] = "subtract"
        event["args"] = {"a": 10}

    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add, subtract]))
    assert (results(result)["c0"], ran) == (("9", False), [])


@pytest.mark.row("STR-38")
async def test_a_swapped_implementation_runs_instead(stage, add, ran):
    async def shout(args, context):
        return f"{args['a']}!"

    @stage.on("tool:before")
    def swap(event):
        assert isinstance(event["impl"], Tool)
        event["impl"] = shout

    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add]))
    assert (results(result)["c0"], ran) == (("1!", False), [])


@pytest.mark.row("STR-41")
async def test_a_hook_may_supply_a_tool_that_nobody_has(stage):
    stage.on("tool:before")(lambda event: {"impl": lambda args, context: "supplied"})
    result = await stage.play(stage.agent(calling(("magic", {})), "ok"))
    assert results(result)["c0"] == ("supplied", False)


@pytest.mark.row("STR-40")
@pytest.mark.row("WEB-23")
async def test_a_denied_call_is_not_run_and_its_text_is_the_result(stage, add, ran):
    stage.on("tool:before")(lambda event: Deny("Not on Sundays."))
    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add]))
    assert (results(result)["c0"], ran, result.reply) == (("Not on Sundays.", True), [], "ok")
    after = stage.fields("tool:after")
    assert (after["denied"], after["error"], after["duration"]) == ("Not on Sundays.", None, None)


@pytest.mark.row("EDG-23")
@pytest.mark.row("WEB-23")
async def test_a_result_given_before_skips_the_tool_and_passes_tool_after(stage, add, ran):
    @stage.on("tool:before")
    def given(event):
        event["result"] = {"cached": True}

    @stage.on("tool:after")
    def see(event):
        assert event["result"] == {"cached": True}

    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add]))
    assert (results(result)["c0"], ran) == (('{"cached":true}', False), [])


@pytest.mark.row("STR-42")
@pytest.mark.row("STR-43")
@pytest.mark.row("EDG-24")
@pytest.mark.row("WEB-24")
async def test_the_model_sees_the_result_that_tool_after_leaves(stage, add):
    @stage.on("tool:after")
    def double(event):
        assert event["duration"] >= 0
        event["result"] *= 2

    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add]))
    assert results(result)["c0"] == ("4", False)
    assert stage.sent().messages[-1].content == "4"


@pytest.mark.row("WEB-57")
async def test_an_error_can_be_consumed_with_a_result_or_put_in_better_words(stage, add):
    @stage.on("tool:after")
    def soften(event):
        if event["error"] and event["args"] == {}:
            event["error"] = None
            event["result"] = "Give me a number."
        elif event["error"]:
            event["error"] = "write digits"

    agent = stage.agent(calling(("add", {}), ("add", {"a": "x"})), "ok", tools=[add])
    assert results(await stage.play(agent)) == {"c0": ("Give me a number.", False), "c1": ("write digits", True)}


@pytest.mark.row("STR-44")
async def test_a_retry_runs_hooks_and_tool_again_and_keeps_the_last_result(stage):
    tries = []

    @tool()
    async def flaky() -> str:
        """Work the third time."""
        tries.append(1)
        if len(tries) < 3:
            raise AgentError("not yet")
        return "worked"

    stage.on("tool:after")(lambda event: Retry("Be patient.") if event["error"] else None)
    result = await stage.play(stage.agent(calling(("flaky", {})), "ok", tools=[flaky]))
    assert results(result)["c0"] == ("worked", False)
    assert stage.names.count("tool:before") == stage.names.count("tool:after") == 3
    assert [entry.content for entry in result.entries][-2:] == ["Be patient.", "ok"]


async def test_retries_are_bounded(stage, add, ran):
    stage.on("tool:after")(lambda event: Retry())
    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add]))
    assert (len(ran), result.reply) == (6, "ok")


@pytest.mark.row("EDG-29")
async def test_an_end_after_a_tool_ends_the_turn_and_keeps_its_result(stage, add):
    stage.on("tool:after")(lambda event: End("That is enough."))
    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "never said", tools=[add]))
    assert results(result)["c0"] == ("2", False)
    assert (result.reply, result.hook_ended) == ("That is enough.", "ended at tool:after")


@pytest.mark.row("EDG-27")
@pytest.mark.row("EDG-30")
async def test_the_first_end_in_a_batch_wins_and_what_is_not_begun_is_not_run(stage, add, ran):
    @stage.on("tool:before")
    async def end(event):
        if event["call_id"] == "c0":
            return End()
        await anyio.sleep(0.01)
        return None

    agent = stage.agent(calling(("add", {"a": 1}), ("add", {"a": 2})), "never said", tools=[add])
    result = await stage.play(agent)
    assert (result.reply, ran) == ("Stopped by hook.", [])
    assert set(results(result)) == {"c0", "c1"}


@pytest.mark.row("SHE-11")
@pytest.mark.row("STR-34")
async def test_once_a_batch_its_calls_and_tools_can_be_changed(stage, add, ran):
    @stage.on("tools:before")
    def change(event):
        assert [spec["name"] for spec in event["tools"]] == ["add"]
        first, _ = event["calls"]
        event["calls"] = [{**first, "args": {"a": 40}}]

    agent = stage.agent(calling(("add", {"a": 1}), ("add", {"a": 2})), "ok", tools=[add])
    found = results(await stage.play(agent))
    assert stage.names.count("tools:before") == 1
    assert (found["c0"], ran) == (("41", False), [(40, 1)])
    assert "cancelled" in found["c1"][0]


@pytest.mark.row("SHE-11")
async def test_a_tool_taken_from_the_batch_or_from_the_request_cannot_be_called(stage, add, ran):
    stage.on("tools:before")(lambda event: {"tools": []})
    found = results(await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add])))
    assert "tool 'add' not found" in found["c0"][0]
    stage.hooks.clear()
    stage.on("llm:before")(lambda event: {"tools": []})
    found = results(await stage.play(stage.agent(calling(("add", {"a": 1})), "ok", tools=[add])))
    assert "tool 'add' not found" in found["c0"][0]
    assert ran == []


@pytest.mark.row("STR-34")
async def test_a_denied_batch_gives_every_call_an_error_result(stage, add, ran):
    stage.on("tools:before")(lambda event: Deny("Later."))
    agent = stage.agent(calling(("add", {"a": 1}), ("add", {"a": 2})), "ok", tools=[add])
    result = await stage.play(agent)
    assert results(result) == {"c0": ("Later.", True), "c1": ("Later.", True)}
    assert (ran, stage.names.count("tools:after"), result.reply) == ([], 1, "ok")


@pytest.mark.row("SHE-12")
async def test_after_the_batch_its_results_can_be_changed(stage, add):
    @stage.on("tools:after")
    def change(event):
        for item in event["results"]:
            item["content"] = f"<{item['content']}>"

    agent = stage.agent(calling(("add", {"a": 1}), ("add", {"a": 2})), "ok", tools=[add])
    result = await stage.play(agent)
    assert results(result) == {"c0": ("<2>", False), "c1": ("<3>", False)}
    finished = {step.call_id: step.entry.content for step in stage.steps if type(step).__name__ == "ToolFinished"}
    assert finished == {"c0": "<2>", "c1": "<3>"}


@pytest.mark.row("STR-35")
@pytest.mark.row("STR-36")
async def test_an_end_after_the_batch_ends_the_turn_without_another_model_call(stage, add):
    stage.on("tools:after")(lambda event: End())
    result = await stage.play(stage.agent(calling(("add", {"a": 1})), "never said", tools=[add]))
    assert (result.reply, len(stage.model.requests)) == ("2", 1)


@pytest.mark.row("STR-48")
@pytest.mark.row("STR-49")
@pytest.mark.row("WEB-12")
@pytest.mark.row("WEB-13")
async def test_hooks_and_tools_share_the_turns_bag_and_every_event_names_the_agent(stage):
    seen: dict[str, Any] = {}

    @tool()
    async def look(context: ToolContext) -> str:
        """Look into the bags."""
        seen.update(context.turn, agent=context.agent, platform=context.facts["platform"], **context.session)
        context.turn["from_tool"] = 1
        return ""

    @stage.on("agent:start")
    def leave(event):
        event.turn["token"] = "t"
        event.session["name"] = "Ada"

    @stage.on("agent:end")
    def find(event):
        assert event.turn["from_tool"] == 1

    agent = stage.agent(calling(("look", {})), "ok", tools=[look])
    result = await stage.play(agent, facts={"platform": "terminal"})
    assert result.status == "ok"
    assert seen == {"token": "t", "name": "Ada", "agent": "main", "platform": "terminal"}
    assert {fields["agent"] for _, fields in stage.fired} == {"main"}
    assert "context" not in look.schema["properties"]


async def test_agent_step_tells_what_was_done_as_hermes_does(stage, add):
    await stage.play(stage.agent(calling(("add", {"a": 1})), calling(("add", {"a": 2})), "ok", tools=[add]))
    step = stage.fields("agent:step", 1)
    assert (step["iteration"], step["tool_names"]) == (2, ["add"])
    done = {"name": "add", "result": "3", "arguments": '{"a":2}', "error": False, "denied": None}
    assert step["tools"] == [done]


async def test_agent_step_tells_who_denied_a_call(stage, add):
    stage.on("tool:before")(lambda event: Deny("no sums") if event["args"] == {"a": 1} else None)
    await stage.play(stage.agent(calling(("add", {"a": 1}), ("add", {"a": 2})), "ok", tools=[add]))
    assert [one["denied"] for one in stage.fields("agent:step")["tools"]] == ["hook", None]


@pytest.mark.row("WEB-35")
def test_a_tools_schema_comes_from_its_signature():
    @tool(name="book")
    async def book_table(
        city: Annotated[str, msgspec.Meta(description="where")],
        kind: Literal["inside", "outside"] = "inside",
        guests: list[str] | None = None,
    ) -> str:
        """Book a table."""
        return ""

    assert (book_table.name, book_table.description) == ("book", "Book a table.")
    assert book_table.schema["required"] == ["city"]
    assert book_table.schema["additionalProperties"] is False
    assert book_table.schema["properties"]["city"] == {"description": "where", "type": "string"}
    assert book_table.schema["properties"]["kind"]["enum"] == ["inside", "outside"]


def test_a_parameter_without_a_type_is_refused_when_the_tool_is_made():
    with pytest.raises(TypeError, match=r"'vague'.*'what' needs a type"):

        @tool()
        async def vague(what) -> str:
            """Vague."""
            return ""


async def test_a_tool_with_a_foreign_schema_is_checked_by_it(stage, ran):
    async def call(args, context):
        ran.append(args)
        return "ok"

    schema = {"type": "object", "properties": {"n": {"type": "integer", "enum": [1, 2]}}, "required": ["n"]}
    foreign = Tool("foreign", "", schema, call)
    agent = stage.agent(calling(("foreign", {"n": 3}), ("foreign", {}), ("foreign", {"n": 2})), "ok", tools=[foreign])
    found = results(await stage.play(agent))
    assert "is not one of 1, 2" in found["c0"][0]
    assert "missing 'n'" in found["c1"][0]
    assert (found["c2"], ran) == (("ok", False), [{"n": 2}])


async def test_what_a_tool_gave_is_withheld_when_a_hook_denies_it_afterwards(stage, add, ran):
    stage.on("tool:after")(lambda event: Deny("It holds a key.") if event["result"] else None)
    result = await stage.play(stage.agent(calling(("add", {"a": 2})), "Sorry.", tools=[add]))
    assert results(result) == {"c0": ("This call was made; what it gave is withheld. It holds a key.", True)}
    assert ran == [(2, 1)]


async def test_a_call_that_was_not_made_is_not_said_to_be_withheld(stage, add):
    stage.on("tool:before")(lambda event: Deny("Not now."))
    stage.on("tool:after")(lambda event: Deny("It holds a key."))
    result = await stage.play(stage.agent(calling(("add", {"a": 2})), "Sorry.", tools=[add]))
    assert results(result) == {"c0": ("Not now.", True)}
