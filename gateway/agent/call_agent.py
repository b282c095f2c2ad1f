"""Sub-agents: called like a tool, or given the conversation for the rest of the turn.

Either way the target is a run of its own inside the same turn: own instructions, own tools, own hooks beside those of
the conversation, own records under the turn's id with the call's behind it.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from gateway.agent.agent import Agent
from gateway.agent.node import Node, through
from gateway.agent.ports import TurnResult
from gateway.agent.run import RETRIES, Done, Fields, Operation, Run, around, wait
from gateway.agent.tools import Tool, ToolContext
from gateway.errors import AgentError
from gateway.events.event import Deny
from gateway.transcript import Entry

DELEGATE, TRANSFER = "delegate", "transfer"


class Start(Protocol):
    """Starts the run of a sub-agent within this one."""

    def __call__(
        self, run: Run, agent: Agent, call_id: str, message: Entry | None, note: str
    ) -> Awaitable[TurnResult]: ...


@dataclass(frozen=True, slots=True)
class Handoff:
    """One run of a sub-agent: by whom, to whom, and with what."""

    kind: Literal["call", "transfer"]
    call_id: str
    target: str
    input: str
    reason: str = ""


def agent_tools(run: Run, start: Start) -> tuple[Tool, ...]:
    """The tools by which this run reaches its agent's sub-agents."""
    if not run.agent.agents:
        return ()
    names = [agent.name for agent in run.agent.agents]
    about = "; ".join(f"{agent.name}: {agent.description or 'no description'}" for agent in run.agent.agents)

    async def delegate(args: dict[str, Any], context: ToolContext) -> str:
        return await hand_over(run, start, Handoff("call", context.call_id, args["agent"], args["task"]))

    async def transfer(args: dict[str, Any], context: ToolContext) -> str:
        reason = args.get("reason", "")
        return await hand_over(run, start, Handoff("transfer", context.call_id, args["agent"], reason, reason))

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


async def hand_over(run: Run, start: Start, handoff: Handoff) -> str:
    """Run the target. Its answer, or what a hook put in its place."""

    def refused(text: str) -> str:
        raise AgentError(text or "The handoff was not allowed.")

    node = Node("call_agent", handoff.target, lambda: _between(run, start, handoff), lambda reply: reply, str, refused)
    reply: str = await through(run, node)
    return reply


async def _between(run: Run, start: Start, handoff: Handoff) -> str:
    operation = _operation(run, start, handoff)
    for attempt in range(RETRIES + 1):
        done = await around(run, operation)
        if done.retry is None or attempt == RETRIES or run.finish is not None:
            break
        await wait(done.retry)
    run.end(done.outcome, "handoff:before")
    run.end(done.verdict, "handoff:after")
    if done.error is not None:
        raise done.error
    if isinstance(done.outcome, Deny):
        raise AgentError(done.outcome.text or "The handoff was not allowed.")
    result = done.after.get("result") if done.after is not None else done.value
    return "" if result is None else str(result)


def _operation(run: Run, start: Start, handoff: Handoff) -> Operation:
    common: dict[str, Any] = {"kind": handoff.kind, "source": run.agent.name, "call_id": handoff.call_id}

    def ask() -> dict[str, Any]:
        return common | {"target": handoff.target, "input": handoff.input, "reason": handoff.reason, "result": None}

    async def act(event: Fields | None) -> str:
        asked: Mapping[str, Any] = ask() if event is None else event
        target, text = str(asked.get("target")), str(asked.get("input") or "")
        if handoff.kind == "call":
            result = await start(run, _find(run, target), handoff.call_id, Entry("user", text), "")
        else:
            note = f"The agent {run.agent.name} handed this conversation to you. {text}".strip()
            result = run.transferred = await start(run, _find(run, target), handoff.call_id, None, note)
        return _reply_of(run, result, target)

    def tell(done: Done) -> dict[str, Any]:
        target = done.before.get("target", handoff.target)
        return common | {"target": target, "reason": handoff.reason, "result": done.value}

    return Operation("handoff:before", "handoff:after", ask, act, tell)


def _reply_of(run: Run, result: TurnResult, target: str) -> str:
    run.usage += result.usage
    if result.status == "failed":
        raise AgentError(f"the agent {target} failed: {result.error or result.reply}")
    return result.reply


def _find(run: Run, name: str) -> Agent:
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
