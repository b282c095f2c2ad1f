"""The tools that a turn has of itself: load a skill, call another agent, hand the conversation over.

A sub-agent is a run of its own inside the same turn: own instructions, own tools, own records under the turn's id with
the call's behind it. Called, it sees its task alone; handed the conversation, it sees all of it and answers the person.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gateway.agent.agent import Agent
from gateway.agent.operation import Operation, OperationResult, run_operation
from gateway.agent.ports import TurnResult
from gateway.agent.skills import Skill, read_skill_text
from gateway.agent.tools import Tool, ToolContext
from gateway.agent.turn_state import Fields, TurnState
from gateway.errors import AgentError
from gateway.messages.transcript import Entry
from gateway.threads import run_in_thread

DELEGATE, TRANSFER = "delegate", "transfer"
LOAD, UNLOAD = "load_skill", "unload_skill"
TURN_TOOLS = (DELEGATE, TRANSFER, LOAD, UNLOAD)
UNLOADED = "The skill {} is unloaded: its instructions no longer hold."

# Runs an agent within this turn: with a message, or None for the whole conversation, and a note behind its
# instructions. It is handed down, since the run of an agent needs these tools itself.
SubagentRunner: TypeAlias = Callable[[TurnState, Agent, str, Entry | None, str], Awaitable[TurnResult]]


def make_skill_tools(state: TurnState) -> tuple[Tool, ...]:
    """Make the tools by which this run reaches its agent's skills."""
    if not state.agent.skills:
        return ()

    async def load(args: dict[str, Any], _: ToolContext) -> str:
        return await run_operation(SkillChange(state, "load", args["skill"], args.get("version", "")))

    async def unload(args: dict[str, Any], _: ToolContext) -> str:
        return await run_operation(SkillChange(state, "unload", args["skill"]))

    skill = _choice_schema(state.agent.skills)
    schema = _schema({"skill": skill, "version": {"type": "string"}}, "skill")
    return (
        Tool(LOAD, "Read a skill's instructions.", schema, load, repeatable=True),
        Tool(UNLOAD, "Put a skill's instructions aside.", _schema({"skill": skill}, "skill"), unload, repeatable=True),
    )


def make_agent_tools(state: TurnState, run_subagent: SubagentRunner) -> tuple[Tool, ...]:
    """Make the tools by which this run reaches its agent's sub-agents."""
    if not state.agent.agents:
        return ()
    agent = _choice_schema(state.agent.agents)
    about = "; ".join(f"{one.name}: {one.description or 'no description'}" for one in state.agent.agents)

    async def delegate(args: dict[str, Any], context: ToolContext) -> str:
        handoff = Handoff(state, run_subagent, "call", context.call_id, args["agent"], args["task"])
        return await run_operation(handoff)

    async def transfer(args: dict[str, Any], context: ToolContext) -> str:
        reason = args.get("reason", "")
        handoff = Handoff(state, run_subagent, "transfer", context.call_id, args["agent"], reason, reason)
        return await run_operation(handoff)

    words = f"Give a task to another agent and get its answer. Agents: {about}"
    task = "All that the agent needs to know: it sees nothing of this conversation."
    schema = _schema({"agent": agent, "task": {"type": "string", "description": task}}, "agent", "task")
    tools = [Tool(DELEGATE, words, schema, delegate, repeatable=True, is_trusted=True)]
    if state.agent.transfers:
        words = f"Hand this conversation to another agent, which answers the person instead of you. Agents: {about}"
        why = {"type": "string", "description": "Why, for the other agent."}
        schema = _schema({"agent": agent, "reason": why}, "agent")
        tools.append(Tool(TRANSFER, words, schema, transfer, repeatable=True, is_trusted=True))
    return tuple(tools)


@dataclass(slots=True)
class SkillChange(Operation[str]):
    """A skill is loaded or unloaded. Hooks may send it to another skill or version."""

    action: Literal["load", "unload"]
    skill: str
    version: str = ""
    tools: Sequence[str] = ()  # the names of those that came or went with it
    found_version: str = ""  # of the skill that was taken
    before = "skill:before"
    after = "skill:after"
    result_field = "content"
    node_type = "load_skill"
    node_named_by = "skill"

    def begin(self) -> None:
        self.tools, self.found_version = (), ""

    def before_fields(self) -> dict[str, Any]:
        return {"action": self.action, "skill": self.skill, "version": self.version, "result": None}

    async def act(self, event: Fields | None) -> str:
        asked: Mapping[str, Any] = self.before_fields() if event is None else event
        name, version = str(asked.get("skill")), str(asked.get("version") or "")
        skills = self.state.agent.skills
        found = next((one for one in skills if one.name == name and version in ("", one.version)), None)
        if found is None:
            raise _unknown("skill", f"{name} {version}".strip(), skills)
        self.found_version = found.version
        content = UNLOADED.format(found.name)
        if self.action == "load":
            content = await run_in_thread(read_skill_text, found)
        self.tools = await self.state.ports.on_skill(self.action, found)
        return content

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        name = result.before_event.get("skill", self.skill)
        version = self.found_version or result.before_event.get("version", self.version)
        return {
            "action": self.action,
            "skill": name,
            "version": version,
            "content": result.value or "",
            "tools": list(self.tools),
        }

    def from_fields(self, left: Any) -> str:
        return "" if left is None else str(left)

    def denied(self, text: str) -> str:
        raise AgentError(text or f"The skill {self.skill} may not be {self.action}ed.")


@dataclass(slots=True)
class Handoff(Operation[str]):
    """One run of a sub-agent: called for an answer, or given the conversation for the rest of the turn."""

    run_subagent: SubagentRunner
    kind: Literal["call", "transfer"]
    call_id: str
    target: str
    input: str
    reason: str = ""
    before = "handoff:before"
    after = "handoff:after"
    node_type = "call_agent"
    node_named_by = "target"

    def before_fields(self) -> dict[str, Any]:
        return self._fields(self.target) | {"input": self.input, "result": None}

    async def act(self, event: Fields | None) -> str:
        state = self.state
        asked: Mapping[str, Any] = self.before_fields() if event is None else event
        name, text = str(asked.get("target")), str(asked.get("input") or "")
        target = next((one for one in state.agent.agents if one.name == name), None)
        if target is None:
            raise _unknown("agent", name, state.agent.agents)
        if self.kind == "call":
            result = await self.run_subagent(state, target, self.call_id, Entry("user", text), "")
        else:
            note = f"The agent {state.agent.name} handed this conversation to you. {text}".strip()
            result = state.ending.transferred = await self.run_subagent(state, target, self.call_id, None, note)
        state.usage += result.usage
        if result.status == "failed":
            raise AgentError(f"the agent {name} failed: {result.error or result.reply}")
        return result.reply

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        return self._fields(result.before_event.get("target", self.target)) | {"result": result.value}

    def from_fields(self, left: Any) -> str:
        return "" if left is None else str(left)

    def denied(self, text: str) -> str:
        raise AgentError(text or "The handoff was not allowed.")

    def _fields(self, target: Any) -> dict[str, Any]:
        whose = {"kind": self.kind, "source": self.state.agent.name, "call_id": self.call_id}
        return whose | {"target": target, "reason": self.reason}


def _unknown(kind: str, wanted: str, known: Sequence[Agent] | Sequence[Skill]) -> AgentError:
    return AgentError(f"{kind} {wanted!r} not found; you have {', '.join(one.name for one in known)}")


def _choice_schema(known: Sequence[Agent] | Sequence[Skill]) -> dict[str, Any]:
    return {"type": "string", "enum": [one.name for one in known]}


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
