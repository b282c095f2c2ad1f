"""Questions to a person: a turn stops for them and goes on with the answers, doing nothing twice."""

import anyio
import pytest

from gateway.agent import ToolContext, tool
from gateway.events import Deny


def calling(*names):
    return {"tool_calls": [{"name": name, "id": name} for name in names]}


@pytest.fixture
def ran():
    return []


@pytest.fixture
def tools(ran):
    @tool(read_only=True)
    async def safe() -> str:
        """Harmless."""
        await anyio.sleep(0.01)
        ran.append("safe")
        return "safe done"

    @tool()
    async def risky() -> str:
        """Not harmless."""
        ran.append("risky")
        return "risky done"

    return [safe, risky]


def confirm(stage):
    @stage.on("tool:before")
    def sure(event):
        if event["tool"] == "risky" and not event.ask("Really?", name="sure"):
            raise Deny("The person said no.")


@pytest.mark.row("STR-51")
@pytest.mark.row("STR-52")
@pytest.mark.row("STR-57")
@pytest.mark.row("SHE-36")
async def test_a_question_stops_the_turn_and_its_answer_goes_on_without_doing_anything_twice(stage, tools, ran):
    confirm(stage)
    agent = stage.agent(calling("risky", "safe"), "All done.", tools=tools)
    paused = await stage.play(agent)
    (question,) = paused.questions
    assert (paused.status, paused.entries, question.prompt) == ("paused", (), "Really?")
    assert ran == ["safe"]
    for after in ("tool:after", "tools:after", "agent:end"):
        assert stage.names.count(after) == stage.names.count(after.replace("after", "before").replace("end", "start"))
    assert all(fields.get("error") is None for _, fields in stage.fired)
    assert stage.fields("agent:end")["stop"] == "paused"

    stage.answers[question.id] = True
    result = await stage.again(agent)
    assert (result.reply, ran) == ("All done.", ["safe", "risky"])
    assert len(stage.model.requests) == 2
    assert [fields["tool"] for name, fields in stage.fired if name == "tool:before"] == ["risky"]
    assert [entry.content for entry in result.entries] == ["hi", "", "risky done", "safe done", "All done."]


@pytest.mark.row("STR-53")
async def test_no_is_an_answer_too(stage, tools, ran):
    confirm(stage)
    agent = stage.agent(calling("risky"), "As you wish.", tools=tools)
    (question,) = (await stage.play(agent)).questions
    stage.answers[question.id] = False
    result = await stage.again(agent)
    assert (result.reply, ran) == ("As you wish.", [])
    assert result.entries[2].content == "The person said no."


@pytest.mark.row("STR-54")
async def test_questions_of_several_hooks_and_calls_are_put_together(stage, tools):
    stage.on("tool:before")(lambda event: event.ask("First?") and None)

    @stage.on("tool:before")
    def second(event):
        event.ask("Second?")

    agent = stage.agent(calling("risky", "safe"), "ok", tools=tools)
    questions = (await stage.play(agent)).questions
    assert sorted(question.prompt for question in questions) == ["First?", "First?", "Second?", "Second?"]
    assert len({question.id for question in questions}) == 4


@pytest.mark.row("STR-51")
@pytest.mark.parametrize("name", ["agent:start", "node:before", "llm:before", "tools:before", "tool:before"])
async def test_a_hook_can_ask_at_any_point_before_something(stage, tools, ran, name):
    @stage.on(name)
    def sure(event):
        event.ask("Go on?", name="go")

    agent = stage.agent(calling("safe"), "ok", tools=tools)
    paused = await stage.play(agent)
    assert [question.prompt for question in paused.questions] == ["Go on?"]
    stage.answers["go"] = True
    result = await stage.again(agent)
    assert (result.reply, ran) == ("ok", ["safe"])


@pytest.mark.row("SHE-22")
@pytest.mark.row("SHE-23")
@pytest.mark.row("SHE-24")
async def test_what_the_person_sees_and_answers_passes_hooks(stage, tools, ran):
    confirm(stage)
    stage.on("interrupt:before")(lambda event: {"value": f"Ada, {event['value'].lower()}"})

    @stage.on("interrupt:after")
    def understand(event):
        event["response"] = event["response"] == "jawohl"

    agent = stage.agent(calling("risky"), "ok", tools=tools)
    (question,) = (await stage.play(agent)).questions
    assert question.prompt == "Ada, really?"
    first = [name for name, fields in stage.fired if "interrupt" in (name.split(":")[0], fields.get("node_type"))]
    assert first == ["node:before", "interrupt:before", "node:after"]

    stage.answers[question.id] = "jawohl"
    await stage.again(agent, asked={question.id: question.prompt})
    again = [name for name, fields in stage.fired if "interrupt" in (name.split(":")[0], fields.get("node_type"))]
    assert again == ["node:before", "interrupt:before", "interrupt:after", "node:after"]
    assert ran == ["risky"]


async def test_a_question_that_a_hook_forbids_is_answered_no_at_once(stage, tools, ran):
    confirm(stage)
    stage.on("interrupt:before")(lambda event: Deny())
    result = await stage.play(stage.agent(calling("risky"), "ok", tools=tools))
    assert (result.reply, result.questions, ran) == ("ok", (), [])
    assert len(stage.model.requests) == 2


async def test_a_tool_that_asks_is_run_again_from_its_start(stage):
    acted = []

    @tool()
    async def order(context: ToolContext) -> str:
        """Order something."""
        assert context.ask
        size = context.ask("Which size?", "size")
        acted.append(size)
        return f"ordered {size}"

    agent = stage.agent(calling("order"), "ok", tools=[order])
    (question,) = (await stage.play(agent)).questions
    stage.answers[question.id] = "large"
    result = await stage.again(agent)
    assert (result.reply, acted) == ("ok", ["large"])


@pytest.fixture
def guarded(ran):
    @tool(asks=True, subject=lambda args: args["command"])
    async def shell(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "ran"

    return shell


@pytest.mark.parametrize(("answer", "runs"), [(True, 1), ("once", 1), ("yes", 1), (False, 0), ("maybe", 0), (None, 0)])
async def test_a_tool_that_needs_approval_runs_only_on_a_clear_yes(stage, guarded, ran, answer, runs):
    call = {"tool_calls": [{"name": "shell", "args": {"command": "ls"}}]}
    agent = stage.agent(call, "ok", tools=[guarded])
    (question,) = (await stage.play(agent)).questions
    assert question.prompt == "May I run shell?"
    stage.answers[question.id] = answer
    result = await stage.again(agent)
    assert (result.reply, len(ran)) == ("ok", runs)


async def test_a_question_of_a_tool_is_an_approval_of_that_very_call(stage, guarded):
    digests = []
    for args in ({"command": "ls"}, {"command": "ls"}, {"command": "ls "}):
        call = {"tool_calls": [{"name": "shell", "args": args, "id": "c1"}]}
        (question,) = (await stage.play(stage.agent(call, tools=[guarded]))).questions
        (about,) = question.calls
        assert (question.is_approval, about.call_id, about.tool, about.args) == (True, "c1", "shell", args)
        digests.append(about.digest)
    assert digests[0] == digests[1] != digests[2]


async def test_hooks_tell_a_refusal_by_the_type_of_its_error(stage, guarded):
    agent = stage.agent({"tool_calls": [{"name": "shell", "args": {"command": "ls"}}]}, "ok", tools=[guarded])
    (question,) = (await stage.play(agent)).questions
    stage.answers[question.id] = False
    await stage.again(agent)
    after = stage.fields("tool:after")
    assert (after["error"]["type"], after["denied"]) == ("Refused", "The person did not allow shell to run.")


async def test_a_lasting_approval_is_kept_for_what_it_was_given(stage, guarded, ran):
    approvals: dict[str, str] = {}
    call = {"tool_calls": [{"name": "shell", "args": {"command": "ls"}}]}
    agent = stage.agent(call, "ok", call, "ok again", tools=[guarded])
    (question,) = (await stage.play(agent, approvals=approvals)).questions
    stage.answers[question.id] = "session"
    await stage.again(agent, approvals=approvals)
    assert approvals == {"shell:ls": "session"}
    stage.steps.clear()
    stage.answers.clear()
    assert (await stage.play(agent, approvals=approvals)).reply == "ok again"
    other = {"tool_calls": [{"name": "shell", "args": {"command": "rm -rf /"}}]}
    stage.steps.clear()
    assert (await stage.play(stage.agent(other, tools=[guarded]), approvals=approvals)).questions


async def test_a_hook_can_ask_about_a_result_and_the_tool_is_not_run_again(stage, tools, ran):
    @stage.on("tool:after")
    def release(event):
        if not event.ask(f"May it see {event['result']!r}?", name="see"):
            event["result"] = "kept from you"

    agent = stage.agent(calling("risky"), "ok", "ok", tools=tools)
    (question,) = (await stage.play(agent)).questions
    assert (question.prompt, ran) == ("May it see 'risky done'?", ["risky"])
    again = await stage.again(agent)
    assert again.questions == (question,)
    stage.answers[question.id] = False
    result = await stage.again(agent)
    assert (result.entries[2].content, ran) == ("kept from you", ["risky"])


async def test_a_hook_can_ask_about_a_failure_too(stage, ran):
    @tool()
    async def fail() -> str:
        """Fail."""
        ran.append("fail")
        raise ValueError("broken")

    stage.on("tool:after")(lambda event: event.ask("Tell it?", name="tell") and None)
    agent = stage.agent(calling("fail"), "ok", tools=[fail])
    assert (await stage.play(agent)).questions
    stage.answers["tell"] = True
    result = await stage.again(agent)
    assert (result.entries[2].content, result.entries[2].error, ran) == ("broken", True, ["fail"])
