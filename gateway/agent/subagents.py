"""Sub-agents: called like a tool, or given the conversation for the rest of the turn.

Either way the target is a run of its own inside the same turn: own instructions, own tools, own hooks beside those of
the conversation, own records under the turn's id with the call's behind it.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from gateway.agent.agent import Agent
from gateway.agent.operation import TurnNode, run_node
from gateway.agent.ports import TurnResult
from gateway.agent.tools import Tool, ToolContext
from gateway.agent.turn_state import (
    RETRIES,
    Fields,
    Operation,
    OperationResult,
    TurnState,
    run_operation,
    wait_before_retry,
)
from gateway.errors import AgentError
from gateway.events import Deny
from gateway.transcript import Entry

DELEGATE, TRANSFER = "delegate", "transfer"


class SubagentRunner(Protocol):
    """Starts the run of a sub-agent within this one."""

    def __call__(
        self, run: TurnState, agent: Agent, call_id: str, message: Entry | None, note: str
    ) -> Awaitable[TurnResult]: ...


@dataclass(frozen=True, slots=True)
class Handoff:
    """One run of a sub-agent: by whom, to whom, and with what."""

    kind: Literal["call", "transfer"]
    call_id: str
    target: str
    input: str
    reason: str = ""


def make_agent_tools(run: TurnState, start: SubagentRunner) -> tuple[Tool, ...]:
    """The tools by which this run reaches its agent's sub-agents."""
    if not run.agent.agents:
        return ()
    names = [agent.name for agent in run.agent.agents]
    about = "; ".join(f"{agent.name}: {agent.description or 'no description'}" for agent in run.agent.agents)

    async def delegate(args: dict[str, Any], context: ToolContext) -> str:
        return await run_handoff(run, start, Handoff("call", context.call_id, args["agent"], args["task"]))

    async def transfer(args: dict[str, Any], context: ToolContext) -> str:
        reason = args.get("reason", "")
        return await run_handoff(run, start, Handoff("transfer", context.call_id, args["agent"], reason, reason))

    tools = [
        Tool(
            DELEGATE,
            f"Give a task to another agent and get its answer. Agents: {about}",
            _schema(names, "task", "All that the agent needs to know: it sees nothing of this conversation.", True),
            delegate,
            repeatable=True,
        )
    ]
    if run.agent.transfers:
        words = f"Hand this conversation to another agent, which answers the person instead of you. Agents: {about}"
        schema = _schema(names, "reason", "Why, for the other agent.", False)
        tools.append(Tool(TRANSFER, words, schema, transfer, repeatable=True))
    return tuple(tools)


async def run_handoff(run: TurnState, start: SubagentRunner, handoff: Handoff) -> str:
    """Run the target. Its answer, or what a hook put in its place."""

    def refused(text: str) -> str:
        raise AgentError(text or "The handoff was not allowed.")

    node = TurnNode(
        "call_agent",
        handoff.target,
        lambda: _run_handoff_operation(run, start, handoff),
        lambda reply: reply,
        str,
        refused,
    )
    reply: str = await run_node(run, node)
    return reply


async def _run_handoff_operation(run: TurnState, start: SubagentRunner, handoff: Handoff) -> str:
    operation = _operation(run, start, handoff)
    for attempt in range(RETRIES + 1):
        done = await run_operation(run, operation)
        if done.retry is None or attempt == RETRIES or run.finish is not None:
            break
        await wait_before_retry(done.retry)
    run.end(done.outcome, "handoff:before")
    run.end(done.verdict, "handoff:after")
    if done.error is not None:
        raise done.error
    if isinstance(done.outcome, Deny):
        raise AgentError(done.outcome.text or "The handoff was not allowed.")
    result = done.after.get("result") if done.after is not None else done.value
    return "" if result is None else str(result)


def _operation(run: TurnState, start: SubagentRunner, handoff: Handoff) -> Operation:
    common: dict[str, Any] = {"kind": handoff.kind, "source": run.agent.name, "call_id": handoff.call_id}

    def ask() -> dict[str, Any]:
        return common | {"target": handoff.target, "input": handoff.input, "reason": handoff.reason, "result": None}

    async def act(event: Fields | None) -> str:
        asked: Mapping[str, Any] = ask() if event is None else event
        target, text = str(asked.get("target")), str(asked.get("input") or "")
        if handoff.kind == "call":
            result = await start(run, _find_agent(run, target), handoff.call_id, Entry("user", text), "")
        else:
            note = f"The agent {run.agent.name} handed this conversation to you. {text}".strip()
            result = run.transferred = await start(run, _find_agent(run, target), handoff.call_id, None, note)
        return _reply_of(run, result, target)

    def tell(done: OperationResult) -> dict[str, Any]:
        target = done.before.get("target", handoff.target)
        return common | {"target": target, "reason": handoff.reason, "result": done.value}

    return Operation("handoff:before", "handoff:after", ask, act, tell)


def _reply_of(run: TurnState, result: TurnResult, target: str) -> str:
    run.usage += result.usage
    if result.status == "failed":
        raise AgentError(f"the agent {target} failed: {result.error or result.reply}")
    return result.reply


def _find_agent(run: TurnState, name: str) -> Agent:
    for agent in run.agent.agents:
        if agent.name == name:
            return agent
    raise AgentError(f"there is no agent {name!r}; there are {', '.join(agent.name for agent in run.agent.agents)}")


def _schema(names: list[str], text: str, description: str, required: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names},
            text: {"type": "string", "description": description},
        },
        "required": ["agent", text] if required else ["agent"],
        "additionalProperties": False,
    }
