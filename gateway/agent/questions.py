"""The node at which a turn waits for a person: what is shown to them, and what their answer becomes."""

from dataclasses import replace
from typing import Any

from gateway.agent.operation import TurnNode, run_node
from gateway.agent.turn_state import Fields, Operation, OperationResult, TurnState, run_operation
from gateway.events import Deny, Pause, Question


async def prepare_question(run: TurnState, question: Question) -> tuple[Question, Any]:
    """The question as the interceptors leave it, and an answer when one of them gave or refused it.

    An interceptor that asks about the asking changes nothing.
    """
    node = TurnNode(
        "interrupt",
        question.name,
        lambda: _fire_question(run, question),
        lambda put: put[1],
        lambda left: (question, left),
        lambda _: (question, False),
    )
    try:
        shown: tuple[Question, Any] = await run_node(run, node)
    except Pause:
        return question, None
    return shown


async def _fire_question(run: TurnState, question: Question) -> tuple[Question, Any]:
    fields, outcome = await run.fire("interrupt:before", {"name": question.name, "value": question.prompt})
    if isinstance(outcome, Deny):
        return question, False
    return replace(question, prompt=str(fields.get("value") or question.prompt)), None


async def process_answer(run: TurnState, name: str, prompt: str, response: Any) -> Any:
    """The person's answer as the interceptors leave it. The node runs from its start again, now with an answer."""

    def ask() -> dict[str, Any]:
        return {"name": name, "value": prompt}

    async def act(_: Fields | None) -> Any:
        return response

    def tell(done: OperationResult) -> dict[str, Any]:
        return {"name": name, "value": prompt, "response": False if isinstance(done.outcome, Deny) else done.value}

    async def wait() -> Any:
        done = await run_operation(run, Operation("interrupt:before", "interrupt:after", ask, act, tell))
        if done.error is not None:
            raise done.error
        return tell(done)["response"] if done.after is None else done.after.get("response")

    try:
        return await run_node(
            run, TurnNode("interrupt", name, wait, lambda left: left, lambda left: left, lambda _: False)
        )
    except Pause:
        return response
