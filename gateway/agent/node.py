"""The parts of a turn as nodes: each fires `node:before` and `node:after` around all that it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gateway.agent.run import RETRIES, Done, Fields, Operation, Run, around, wait
from gateway.events.event import Deny

NodeType: TypeAlias = Literal["call_llm", "tool_node", "call_agent", "load_skill", "interrupt"]


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the turn. `show` makes its value plain for hooks, `read` takes back what they made of it."""

    kind: NodeType
    name: str
    act: Callable[[], Awaitable[Any]]
    show: Callable[[Any], Any]
    read: Callable[[Any], Any]
    denied: Callable[[str], Any]


async def through(run: Run, node: Node) -> Any:
    """The node's value: its own, or what hooks put in its place. An error that they leave is raised."""

    def ask() -> dict[str, Any]:
        return {"node": node.name, "node_type": node.kind, "state": run.state, "result": None}

    async def act(event: Fields | None) -> Any:
        if event is not None:
            run.state = event.get("state", run.state)
        return await node.act()

    def tell(done: Done) -> dict[str, Any]:
        shown = None if done.value is None else done.value if done.given else node.show(done.value)
        return {"node": node.name, "node_type": node.kind, "state": run.state, "result": shown}

    operation = Operation("node:before", "node:after", ask, act, tell)
    for attempt in range(RETRIES + 1):
        done = await around(run, operation)
        if done.after is not None:
            run.state = done.after.get("state", run.state)
        if done.retry and attempt < RETRIES and run.finish is None:
            await wait(done.retry)
            continue
        break
    return _value_of(run, node, done)


def _value_of(run: Run, node: Node, done: Done) -> Any:
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
