"""The turn: a person's message, the loop of model and tools, the reply.

    agent:start  message:add                                            what the person said
      node:before  llm:before  [llm:chunk ...]  llm:after  node:after   the model
      message:add                                                       what it said
      node:before  tools:before                                         the batch that it wants
        tool:before  tool:after                                         each call, side by side
      tools:after  node:after  message:add  agent:step                  their results; then the model again
    agent:end                                                           the reply

It is a function of agent, history, message and ports; it knows no session, no platform and no database. It never
raises for what a model, a tool or a hook did wrong: that is a status of the result. A cancellation of `ports.stop` is
an interruption, and a result too; any other cancellation passes through, as does a journal that refuses a step.
"""

from collections.abc import Sequence
from dataclasses import replace

from gateway.agent.agent import Agent
from gateway.agent.invocation import invoke
from gateway.agent.model_call import apply_summary
from gateway.agent.ports import Ports, TurnResult
from gateway.agent.questions import prepare_question, process_answer
from gateway.agent.replay import build_replay
from gateway.agent.turn_state import StepNotRecorded, TurnState
from gateway.events import Pause, Question
from gateway.steps import Step
from gateway.transcript import Entry

ROUNDS = 10  # so often may hooks answer the questions of other hooks, before a person is asked after all


async def run_turn(agent: Agent, history: Sequence[Entry], message: Entry, ports: Ports) -> TurnResult:
    """Let the agent answer the message. With the records of an interrupted run, go on where that one stopped."""
    runs: list[TurnState] = []
    with ports.stop:
        return await _run_rounds(agent, tuple(history), message, ports, runs)
    reply = runs[-1].finish.reply if runs and runs[-1].finish else ""
    entries = tuple(runs[-1].entries) if runs else ()
    usage = runs[-1].usage if runs else TurnResult().usage
    return TurnResult(reply, entries or (message,), usage, "interrupted", stop="interrupted")


async def _run_rounds(
    agent: Agent, history: tuple[Entry, ...], message: Entry, ports: Ports, runs: list[TurnState]
) -> TurnResult:
    """Run the turn; when it pauses and hooks know the answers themselves, run it again with them."""
    steps = list(ports.steps)

    async def record(step: Step) -> None:
        await ports.record(step)
        steps.append(step)

    resumed = ports.resumed or bool(ports.steps) or bool(ports.answers)
    for round_ in range(ROUNDS):
        known = build_replay(steps, ports.turn_id)
        inner = replace(ports, record=record, steps=tuple(steps))
        view, summed = apply_summary(history, ports.session)
        run = TurnState(agent, inner, view, known, summed=summed, resumed=resumed or round_ > 0)
        runs.append(run)
        try:
            if round_ == 0:
                await _process_answers(run)
            return await invoke(run, message)
        except StepNotRecorded as refusal:
            raise refusal.error from None
        except Pause as pause:
            questions = await _prepare_questions(run, pause.questions)
        if questions:
            return TurnResult("", (), run.usage, "paused", questions=questions, stop="paused")
    return TurnResult("", (message,), run.usage, "failed", f"hooks answered each other's questions {ROUNDS} times")


async def _process_answers(run: TurnState) -> None:
    for name, response in list(run.ports.answers.items()):
        run.ports.answers[name] = await process_answer(run, name, run.ports.asked.get(name, ""), response)


async def _prepare_questions(run: TurnState, questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """The questions that are left for a person, as interceptors want them put."""
    left = []
    for question in questions:
        shown, answer = await prepare_question(run, question)
        if answer is None:
            left.append(shown)
        else:
            run.ports.answers[question.id] = answer
    return tuple(left)
