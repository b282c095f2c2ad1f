"""The turn: a person's message, the loop of model and tools, the reply.

    agent:start  message:add                                            the person's message
      node:before  llm:before  [llm:chunk ...]  llm:after  node:after   the model
      message:add                                                       its answer
      node:before  tools:before                                         the batch that it wants
        tool:before  tool:after                                         each call, side by side
      tools:after  node:after  message:add  agent:step                  their results; then the model again
    agent:end                                                           the reply

The names are in the order of the events: each `:before` with its `:after`, inner events further in. A loaded skill
(`skill:*`), a sub-agent (`handoff:*`) and a person's answer (`interrupt:*`) are pairs of the same kind, with a node of
their own.

Theory of operation. A turn is a function of agent, history, message and ports; it knows no session, no platform and no
database. It reaches the world through the functions in `Ports`, and returns a `TurnResult`. It never raises for a fault
of a model, a tool or a hook: that is a status of the result. A cancellation of `ports.stop` is an interruption, and a
result too; any other cancellation passes through, as does a journal that refuses a step.

It can be run again at any time with the steps that it recorded before (`Ports.steps`): finished answers and tools are
taken from there instead of being done again. That is how it goes on after a crash, and it is also how it waits. A tool
or hook that must ask a person raises Pause, which unwinds the whole turn; after the answer, the turn starts from its
beginning, runs through its own steps, and comes to the same place, now with the answer in `Ports.answers`.

So a turn is run in rounds. A round that pauses hands its questions to the hooks of `interrupt:before` first; the
answers of hooks count at once, in the next round, and only the remaining questions go to the person.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from gateway.agent.agent import Agent
from gateway.agent.batch_gate import BatchGate
from gateway.agent.invocation import Invocation
from gateway.agent.loop import collect_tools
from gateway.agent.model_call import apply_summary
from gateway.agent.operation import Operation, OperationResult, run_operation
from gateway.agent.pictures import limit_pictures
from gateway.agent.ports import Ports, TurnResult
from gateway.agent.tool_call import call_tool
from gateway.agent.tools import choose_sources, find_tool
from gateway.agent.turn_state import Fields, Replay, RunOrigin, StepNotRecorded, TurnState, build_replay
from gateway.agent.turn_tools import make_skill_tools
from gateway.events import Pause, Question, is_yes
from gateway.events.outcomes import find_refusal
from gateway.messages.steps import Step
from gateway.messages.transcript import Entry, ToolCall

ROUNDS = 10  # hooks may answer the questions of other hooks so often, before a person must


async def run_turn(agent: Agent, history: Sequence[Entry], message: Entry, ports: Ports) -> TurnResult:
    """Let the agent answer the message. With the records of an interrupted run, go on where that one stopped."""
    states: list[TurnState] = []
    with ports.stop:
        return await _run_rounds(agent, tuple(history), message, ports, states)
    # `ports.stop` was cancelled: what there is so far is the result.
    state = states[-1] if states else TurnState(agent, ports, (), Replay())
    reply = state.ending.finish.reply if state.ending.finish else ""
    entries = tuple(state.entries) or (message,)
    return TurnResult(reply, entries, state.usage, "interrupted", stop="interrupted", sends_files=state.sends_files)


async def _run_rounds(
    agent: Agent, history: tuple[Entry, ...], message: Entry, ports: Ports, states: list[TurnState]
) -> TurnResult:
    """Run the turn; when it pauses and hooks know the answers themselves, run it again with them."""
    steps = list(ports.steps)

    async def record(step: Step) -> None:
        await ports.record(step)
        steps.append(step)

    resumed = ports.resumed or bool(ports.steps) or bool(ports.answers)
    for round_ in range(ROUNDS):
        known = build_replay(steps, ports.turn_id)
        inner = structs.replace(ports, record=record, steps=tuple(steps), open_questions=set())
        view, summarized = apply_summary(history, ports.session)
        view = limit_pictures(view, 0 if agent.vision else agent.picture_turns)
        state = TurnState(agent, inner, view, known, RunOrigin(resumed or round_ > 0), summarized)
        states.append(state)
        try:
            if round_ == 0:
                await _process_answers(state)
            return await run_operation(Invocation(state, message))
        except StepNotRecorded as refusal:
            raise refusal.error from None
        except Pause as pause:
            ports.calls.update({question.id: question.calls for question in pause.questions if question.is_approval})
            questions = await _prepare_questions(state, pause.questions)
        if questions:
            return TurnResult("", (), state.usage, "paused", questions=questions, stop="paused")
    return TurnResult("", (message,), state.usage, "failed", f"hooks answered each other's questions {ROUNDS} times")


async def _process_answers(state: TurnState) -> None:
    """Pass each answer through the interceptors. The node of its question runs again, now with the answer."""
    answers, asked = state.ports.answers, state.ports.asked
    for name, response in list(answers.items()):
        with suppress(Pause):  # an interceptor that asks about an answer changes nothing
            left = await run_operation(AnswerVisit(state, name, asked.get(name, ""), response))
            answers[name] = response if name in state.ports.calls and is_yes(left) else left  # hooks cannot approve


async def _prepare_questions(state: TurnState, questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Return the questions that are left for a person, as interceptors want them put."""
    left = []
    for question in questions:
        shown, answer = question, None
        with suppress(Pause):  # an interceptor that asks about the asking changes nothing
            shown, answer = await run_operation(QuestionVisit(state, question))
        if answer is None or (question.is_approval and is_yes(answer)):  # no hook says yes to a call
            left.append(shown)
        else:
            state.ports.answers[question.id] = answer
    return tuple(left)


@dataclass(slots=True)
class QuestionVisit(Operation[tuple[Question, Any]]):
    """A question on its way to a person: as the interceptors leave it, and an answer where one of them has it."""

    question: Question
    before = "interrupt:before"
    after = ""  # comes with the answer: see `AnswerVisit`
    node_type = "interrupt"
    node_named_by = "question.name"

    def before_fields(self) -> dict[str, Any]:
        return {"name": self.question.name, "value": self.question.prompt}

    async def act(self, event: Fields | None) -> None:
        """Do nothing: the turn waits outside of this, and runs again with the answer."""

    def conclude(self, result: OperationResult) -> tuple[Question, Any]:
        if result.error is not None:
            raise result.error
        if (refusal := find_refusal(result.outcome)) is not None:
            return self.denied(refusal)
        prompt = str(result.before_event.get("value") or self.question.prompt)
        return replace(self.question, prompt=prompt), None

    def to_fields(self, value: tuple[Question, Any]) -> Any:
        return value[1]

    def from_fields(self, left: Any) -> tuple[Question, Any]:
        return self.question, left

    def denied(self, _text: str) -> tuple[Question, Any]:
        return self.question, False


@dataclass(slots=True)
class AnswerVisit(Operation[Any]):
    """A person's answer, as the interceptors leave it."""

    name: str
    prompt: str
    response: Any
    before = "interrupt:before"
    after = "interrupt:after"
    result_field = "response"
    node_type = "interrupt"
    node_named_by = "name"

    def before_fields(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.prompt}

    async def act(self, _event: Fields | None) -> Any:
        return self.response

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        response = result.value if find_refusal(result.outcome) is None else False
        return self.before_fields() | {"response": response}

    def conclude(self, result: OperationResult) -> Any:
        if result.error is not None:
            raise result.error
        return (result.after_event or self.after_fields(result)).get("response")

    def denied(self, _text: str) -> bool:
        return False


async def run_tool(agent: Agent, call: ToolCall, ports: Ports) -> Entry:
    """Use one of the agent's tools, as far as they are granted, without its model: with the same events and questions.

    Raises:
        Pause: a person has to approve first.
    """
    is_own = find_tool(agent.tools, call.name) is not None
    sources = () if is_own else choose_sources(agent.sources, (call.name,))
    state = TurnState(replace(agent, sources=sources), ports, (), Replay())
    try:
        gate = BatchGate((call.id,), ports.open_questions)
        entry, _ = await call_tool(state, call, await collect_tools(state, make_skill_tools(state)), gate)
    except StepNotRecorded as refusal:
        raise refusal.error from None
    return entry
