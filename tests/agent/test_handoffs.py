"""Sub-agents: asked like a tool, or given the conversation."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from gateway.agent import Agent, Tool, tool
from gateway.agent.models.script import script
from gateway.agent.skills import Skill
from gateway.events import Deny, End, Retry
from gateway.lanes.turn import build_partial_entries
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions.session import Session, apply_record


def delegating(target="helper", task="Add one and one."):
    return {"tool_calls": [{"name": "delegate", "args": {"agent": target, "task": task}, "id": "d"}]}


def transferring(target="helper", reason="It is about money."):
    return {"text": "One moment.", "tool_calls": [{"name": "transfer", "args": {"agent": target, "reason": reason}}]}


@pytest.fixture
def family(stage):
    def make(*turns, helper=("Two.",), tools=()):
        small = Agent("helper", script(*helper), instructions="You add.", tools=tuple(tools))
        other = Agent("other", script("I am the other."))
        return stage.agent(*turns, agents=(small, other))

    return make


async def test_a_sub_agent_is_called_like_a_tool_and_sees_its_task_alone(stage, family):
    agent = family(delegating(), "It is two.")
    result = await stage.play(agent, "what is 1 + 1?", history=[Entry("user", "old")])
    (asked,) = agent.agents[0].model.requests
    assert (asked.system, [entry.content for entry in asked.messages]) == ("You add.", ["Add one and one."])
    assert result.reply == "It is two."
    assert [entry.content for entry in result.entries] == ["what is 1 + 1?", "", "Two.", "It is two."]
    assert "".join(stage.streamed) == "It is two."
    assert result.usage.calls == 3


@pytest.mark.row("EDG-36")
async def test_a_hook_has_what_is_of_the_run_at_hand_and_has_it_again_after_a_nested_run(stage, family):
    seen = []

    @stage.on("llm:before")
    def note(event):
        event.turn["calls"] = event.turn.get("calls", 0) + 1
        seen.append((event["agent"], event["messages"][0]["content"], event["hop"], event.turn["calls"]))

    await stage.play(family(delegating(), "It is two."), "what is 1 + 1?")
    asked, task = "what is 1 + 1?", "Add one and one."
    assert seen == [("main", asked, 0, 1), ("helper", task, 0, 2), ("main", asked, 1, 3)]


@pytest.mark.row("STR-59")
async def test_its_run_is_told_between_the_events_of_the_handoff_with_its_own_name(stage, family):
    await stage.play(family(delegating(), "It is two."))
    told = [(name, fields["agent"]) for name, fields in stage.fired if name in ("agent:start", "agent:end")]
    assert told == [("agent:start", "main"), ("agent:start", "helper"), ("agent:end", "helper"), ("agent:end", "main")]
    names = stage.names
    assert names.index("handoff:before") < names.index("agent:end") < names.index("handoff:after")
    before, after = stage.fields("handoff:before"), stage.fields("handoff:after")
    assert (before["kind"], before["source"], before["target"]) == ("call", "main", "helper")
    assert (before["input"], after["result"], after["error"]) == ("Add one and one.", "Two.", None)


@pytest.mark.row("EDG-38")
async def test_the_trace_of_a_turn_is_carried_into_sub_agents(stage, family):
    stage.on("*")(lambda event: None)
    await stage.play(family(delegating(), "ok"))
    traced = {fields["agent"]: fields["turn_id"] for name, fields in stage.fired if "turn_id" in fields}
    assert traced == {"main": stage.turn_id, "helper": stage.turn_id}


@pytest.mark.row("EDG-69")
@pytest.mark.row("EDG-32")
@pytest.mark.row("STR-64")
async def test_the_conversations_hooks_hear_the_sub_agent_too(stage, family):
    @stage.on("llm:after")
    def loud(event):
        event["content"] = event["content"].upper()

    result = await stage.play(family(delegating(), "ok"))
    assert result.entries[2].content == "TWO."


@pytest.mark.row("SHE-13")
@pytest.mark.row("SHE-14")
@pytest.mark.row("WEB-29")
async def test_input_target_and_result_are_those_that_hooks_leave(stage, family):
    @stage.on("handoff:before")
    def redirect(event):
        event["target"] = "other"
        event["input"] = "Who are you?"

    stage.on("handoff:after")(lambda event: {"result": event["result"] + " Really."})
    agent = family(delegating(), "ok")
    result = await stage.play(agent)
    assert agent.agents[0].model.requests == []
    assert agent.agents[1].model.requests[0].messages[0].content == "Who are you?"
    assert result.entries[2].content == "I am the other. Really."
    assert stage.fields("handoff:after")["target"] == "other"


@pytest.mark.row("WEB-28")
@pytest.mark.row("WEB-29")
async def test_a_vetoed_handoff_is_told_to_the_model_and_paired(stage, family):
    stage.on("handoff:before")(lambda event: Deny("Not that one."))
    result = await stage.play(family(delegating(), "Then not."))
    assert (result.entries[2].content, result.entries[2].error) == ("Not that one.", True)
    assert stage.names.count("handoff:after") == 1


async def test_a_result_before_an_end_and_a_retry_are_honoured(stage, family):
    stage.on("handoff:before")(lambda event: {"result": "known already"})
    assert (await stage.play(family(delegating(), "ok"))).entries[2].content == "known already"
    stage.hooks.clear()
    stage.on("handoff:before")(lambda event: End("Let us leave it."))
    assert (await stage.play(family(delegating()))).reply == "Let us leave it."
    stage.hooks.clear()
    stage.on("handoff:after")(lambda event: Retry() if event["result"] == "Two." else None)
    assert (await stage.play(family(delegating(), "ok", helper=("Two.", "2")))).entries[2].content == "2"


async def test_a_failing_sub_agent_is_an_error_that_hooks_can_consume(stage, family):
    failing = ({"error": {"kind": "overload", "message": "busy"}},)
    result = await stage.play(family(delegating(), "Sorry.", helper=failing))
    assert (result.entries[2].content, result.reply) == ("the agent helper failed: busy", "Sorry.")
    stage.on("handoff:after")(lambda event: {"error": None, "result": "Ask me later."})
    result = await stage.play(family(delegating(), "ok", helper=failing))
    assert result.entries[2].content == "Ask me later."


async def test_an_agent_that_does_not_exist_is_told_with_those_that_do(stage, family):
    result = await stage.play(family(delegating("nobody"), "ok"))
    assert "one of helper, other" in result.entries[2].content


@pytest.mark.row("SHE-31")
@pytest.mark.row("STR-60")
@pytest.mark.row("STR-61")
@pytest.mark.row("STR-62")
async def test_a_node_can_be_denied_replaced_and_rescued(stage, family):
    stage.on("node:before")(lambda event: Deny("Closed.") if event["node"] == "helper" else None)
    result = await stage.play(family(delegating(), "ok"))
    assert (result.entries[2].content, result.entries[2].error) == ("Closed.", True)
    stage.hooks.clear()

    @stage.on("node:after")
    def rescue(event):
        if event["node_type"] == "call_agent":
            assert event["error"]["message"] == "the agent helper failed: busy"
            return {"error": None, "result": "rescued"}
        return None

    failing = ({"error": {"kind": "overload", "message": "busy"}},)
    result = await stage.play(family(delegating(), "ok", helper=failing))
    assert result.entries[2].content == "rescued"


@pytest.mark.row("SHE-20")
@pytest.mark.row("SHE-37")
async def test_what_a_node_yields_can_be_replaced_and_its_work_repeated(stage):
    stage.on("node:after")(lambda event: {"result": {"content": "replaced"}})
    assert (await stage.play(stage.agent("said"))).reply == "replaced"
    stage.hooks.clear()
    stage.on("node:after")(lambda event: Retry() if event["error"] else None)
    assert (await stage.play(stage.agent({"error": {"kind": "rate"}}, "at last"))).reply == "at last"


@pytest.mark.row("SHE-21")
async def test_the_body_of_a_node_can_be_a_hook(stage):
    stage.on("node:before")(lambda event: {"result": {"content": f"{event['node_type']} by a hook"}})
    result = await stage.play(stage.agent("never said"))
    assert (result.reply, stage.model.requests) == ("call_llm by a hook", [])


@pytest.mark.row("SHE-19")
async def test_the_state_of_the_nodes_lasts_for_the_turn(stage, call_weather, weather_tool):
    @stage.on("node:before")
    def count(event):
        event["state"]["entered"] = event["state"].get("entered", 0) + 1

    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert [fields for name, fields in stage.fired if name == "node:after"][-1]["state"] == {"entered": 3}


@pytest.mark.row("WEB-30")
@pytest.mark.row("WEB-31")
@pytest.mark.row("EDG-31")
async def test_a_transfer_gives_the_conversation_to_the_other_agent(stage, family):
    agent = family(transferring(), helper=("That is two euros.",))
    result = await stage.play(agent, "what does it cost?", history=[Entry("user", "a"), Entry("assistant", "b")])
    (asked,) = agent.agents[0].model.requests
    assert [entry.content for entry in asked.messages] == ["a", "b", "what does it cost?"]
    assert "main handed this conversation to you. It is about money." in asked.system
    assert (result.reply, result.entries[-1].content) == ("That is two euros.", "That is two euros.")
    assert "".join(stage.streamed) == "One moment.That is two euros."
    assert len(stage.model.requests) == 1
    assert [fields["agent"] for name, fields in stage.fired if name == "agent:end"] == ["helper", "main"]


async def test_after_a_crash_a_transfer_goes_on_in_the_other_agent(stage, family):
    ran = []

    @tool()
    async def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    agent = family(
        transferring(), helper=({"tool_calls": [{"name": "pay", "id": "p"}]}, "Paid.", "never said"), tools=[pay]
    )
    result = await stage.play(agent)
    again = await stage.again(agent)
    assert again.reply == result.reply == "Paid."
    assert again.entries == result.entries
    assert ran == [1]


async def test_a_question_of_a_sub_agents_tool_reaches_the_person_and_nothing_is_repeated(stage, family):
    ran = []

    def acting(name, asks):
        async def call(args, context):
            ran.append(name)
            return f"{name} done"

        return Tool(name, "", {"type": "object"}, call, asks=asks)

    helper = ({"tool_calls": [{"name": "first"}]}, {"tool_calls": [{"name": "second"}]}, "Both done.")
    agent = family(delegating(), "ok", helper=helper, tools=[acting("first", False), acting("second", True)])
    paused = await stage.play(agent)
    assert ran == ["first"]
    stage.answers[paused.questions[0].id] = True
    result = await stage.again(agent)
    assert (result.reply, result.entries[2].content) == ("ok", "Both done.")
    assert ran == ["first", "second"]


async def test_the_steps_of_a_sub_agent_are_steps_of_the_turn_but_not_of_its_transcript(stage, family):
    result = await stage.play(family(delegating(), "ok"))
    state = Session("key", 1)
    state = apply_record(state, records.SessionOpened(session_id="s"), 1)
    state = apply_record(state, records.Claim(turn_id=stage.turn_id, by="node", on=1), 2)
    for number, step in enumerate(stage.steps, 3):
        state = apply_record(state, step, number)
    assert state.turn
    assert state.turn.steps == tuple(stage.steps)
    assert build_partial_entries((), state.turn.steps) == result.entries[1:]


@pytest.mark.row("T18")
@pytest.mark.parametrize("way", [delegating(), transferring()])
async def test_a_sub_agent_has_no_more_tools_than_the_person(stage, family, way):
    ran = []

    @tool()
    async def shell(command: str) -> str:
        """Run it."""
        ran.append(command)
        return command

    @tool()
    async def look() -> str:
        """Look."""
        return "seen"

    wants = {"tool_calls": [{"name": "shell", "args": {"command": "id"}, "id": "s"}]}
    agent = family(wants, way, "Well.", helper=(wants, "No."), tools=(shell, look))
    agent = replace(agent, tools=(shell, look))
    await stage.play(agent, grant=lambda one: None if one.name == "shell" else one)
    for model in (agent.model, agent.agents[0].model):
        assert {spec.name for request in model.requests for spec in request.tools} & {"shell", "look"} == {"look"}
        assert "access.tools" in model.requests[0].system
        refusals = [one.content for one in model.requests[1].messages if one.role == "tool" and one.name == "shell"]
        assert refusals
        assert all("not given to the person" in one for one in refusals)
    assert not ran


async def test_a_skill_that_cannot_be_loaded_is_not_told_of(stage):
    agent = stage.agent("Well.", skills=(Skill("sums", "how to add", Path("sums")),))
    await stage.play(agent, grant=lambda one: None if one.name == "load_skill" else one)
    assert "sums" not in agent.model.requests[0].system


async def test_a_task_that_a_restricted_hook_words_has_its_rights_in_the_sub_agent(stage, family):
    @tool()
    async def wipe() -> str:
        """Wipe it."""
        raise AssertionError("it was run")

    def limit(ports, hooks):
        return structs.replace(ports, grant=lambda one: None if one is wipe else one) if hooks == {"one"} else ports

    wipes = {"tool_calls": [{"name": "wipe", "args": {}}]}
    agent = family(delegating(), "It is two.", helper=(wipes, "Done."), tools=[wipe])
    authors = defaultdict(set, {"d": {"one"}})
    result = await stage.play(agent, authors=authors, limit=limit)
    assert (result.reply, result.status) == ("It is two.", "ok")
    assert "wipe" not in [one.name for one in agent.agents[0].model.requests[0].tools]
