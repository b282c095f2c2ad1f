"""The parts of a turn as nodes: each fires `node:before` and `node:after` around all that it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gateway.agent.turn_state import (
    RETRIES,
    Fields,
    Operation,
    OperationResult,
    TurnState,
    run_operation,
    wait_before_retry,
)
from gateway.events import Deny

NodeType: TypeAlias = Literal["call_llm", "tool_node", "call_agent", "load_skill", "interrupt"]


@dataclass(frozen=True, slots=True)
class TurnNode:
    """A part of the turn. `show` makes its value plain for hooks, `read` takes back what they made of it."""

    kind: NodeType
    name: str
    act: Callable[[], Awaitable[Any]]
    show: Callable[[Any], Any]
    read: Callable[[Any], Any]
    denied: Callable[[str], Any]


async def run_node(run: TurnState, node: TurnNode) -> Any:
    """The node's value: its own, or what hooks put in its place. An error that they leave is raised."""

    def ask() -> dict[str, Any]:
        return {"node": node.name, "node_type": node.kind, "state": run.state, "result": None}

    async def act(event: Fields | None) -> Any:
        if event is not None:
            run.state = event.get("state", run.state)
        return await node.act()

    def tell(done: OperationResult) -> dict[str, Any]:
        shown = None if done.value is None else done.value if done.given else node.show(done.value)
        return {"node": node.name, "node_type": node.kind, "state": run.state, "result": shown}

    operation = Operation("node:before", "node:after", ask, act, tell)
    for attempt in range(RETRIES + 1):
        done = await run_operation(run, operation)
        if done.after is not None:
            run.state = done.after.get("state", run.state)
        if done.retry and attempt < RETRIES and run.finish is None:
            await wait_before_retry(done.retry)
            continue
        break
    return _decide_value(run, node, done)


def _decide_value(run: TurnState, node: TurnNode, done: OperationResult) -> Any:
    if done.error is not None:
        raise done.error
    if run.end(done.outcome, "node:before"):
        return node.denied("")
    if isinstance(done.outcome, Deny):
        return node.denied(done.outcome.text)
    if done.after is not None and (
        done.given or done.value is None or done.after.get("result") != node.show(done.value)
    ):
        return node.read(done.after.get("result"))
    return node.read(done.value) if done.given else done.value
