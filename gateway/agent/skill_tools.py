"""Loading and unloading a skill: a node between its two events. Hooks may send it to another skill or version."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio.to_thread

from gateway.agent.operation import TurnNode, run_node
from gateway.agent.skills import Skill, read_skill_text
from gateway.agent.tools import Tool, ToolContext
from gateway.agent.turn_state import Fields, Operation, OperationResult, TurnState, run_operation
from gateway.errors import AgentError
from gateway.events import Deny

LOAD, UNLOAD = "load_skill", "unload_skill"
UNLOADED = "The skill {} is unloaded: its instructions no longer hold."


def make_skill_tools(run: TurnState) -> tuple[Tool, ...]:
    """The tools by which this run reaches its agent's skills."""
    if not run.agent.skills:
        return ()

    async def load(args: dict[str, Any], _: ToolContext) -> str:
        return await change_skill(run, "load", args["skill"], args.get("version", ""))

    async def unload(args: dict[str, Any], _: ToolContext) -> str:
        return await change_skill(run, "unload", args["skill"], "")

    names = [skill.name for skill in run.agent.skills]
    return (
        Tool(LOAD, "Read a skill's instructions.", _schema(names, "version"), load, repeatable=True),
        Tool(UNLOAD, "Put a skill's instructions aside.", _schema(names), unload, repeatable=True),
    )


async def change_skill(run: TurnState, action: str, skill: str, version: str) -> str:
    """The text that the model gets for it."""

    def refused(text: str) -> str:
        raise AgentError(text or f"The skill {skill} may not be {action}ed.")

    node = TurnNode(
        "load_skill", skill, lambda: _run_skill_operation(run, action, skill, version), lambda text: text, str, refused
    )
    content: str = await run_node(run, node)
    return content


async def _run_skill_operation(run: TurnState, action: str, skill: str, version: str) -> str:
    changed: list[str] = []

    def ask() -> dict[str, Any]:
        return {"action": action, "skill": skill, "version": version, "result": None}

    async def act(event: Fields | None) -> str:
        asked: Mapping[str, Any] = ask() if event is None else event
        found = _find_skill(run.agent.skills, str(asked.get("skill")), str(asked.get("version") or ""))
        content = UNLOADED.format(found.name)
        if action == "load":
            content = await anyio.to_thread.run_sync(read_skill_text, found)
        changed.extend(await run.ports.on_skill(action, found))
        return content

    def tell(done: OperationResult) -> dict[str, Any]:
        name = done.before.get("skill", skill)
        return {"action": action, "skill": name, "content": done.value or "", "tools": changed}

    done = await run_operation(run, Operation("skill:before", "skill:after", ask, act, tell))
    if done.error is not None:
        raise done.error
    if isinstance(done.outcome, Deny):
        raise AgentError(done.outcome.text or f"The skill {skill} may not be {action}ed.")
    content = done.after.get("content") if done.after is not None else done.value
    return "" if content is None else str(content)


def _find_skill(skills: Sequence[Skill], name: str, version: str) -> Skill:
    for skill in skills:
        if skill.name == name and version in ("", skill.version):
            return skill
    wanted = f"{name} {version}".strip()
    raise AgentError(f"there is no skill {wanted!r}; there are {', '.join(skill.name for skill in skills)}")


def _schema(names: list[str], *more: str) -> dict[str, Any]:
    properties: dict[str, Any] = {"skill": {"type": "string", "enum": names}}
    properties |= {name: {"type": "string"} for name in more}
    return {"type": "object", "properties": properties, "required": ["skill"], "additionalProperties": False}
