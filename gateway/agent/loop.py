"""The loop of model and tools, until there is a reply or a limit is reached.

At the last hop that the limits allow, or when it has wanted the same tools three times for the same results, the model
gets no tools, so that it must say what it has; if it still wants some, the person is told that it got no further.
"""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread
import msgspec

from gateway.agent.model import ModelRequest, ModelResponse
from gateway.agent.model_call import call_llm
from gateway.agent.skill_tools import make_skill_tools
from gateway.agent.skills import render_skills_prompt
from gateway.agent.subagents import SubagentRunner, make_agent_tools
from gateway.agent.tool_batch import ToolBatch, add_results, call_tools
from gateway.agent.tools import Tool, gather_tools
from gateway.agent.turn_state import TurnEnding, TurnState
from gateway.steps import LlmStep
from gateway.transcript import Entry, ToolCall, Usage

LONGEST = 32_000  # bytes of one file


async def read_context_files(paths: Sequence[Path]) -> str:
    """The text of those that are there, each under its name."""
    return await anyio.to_thread.run_sync(_read_all, paths) if paths else ""


def _read_all(paths: Sequence[Path]) -> str:
    return "\n\n".join(text for text in map(_read, paths) if text)


def _read(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe in its place would hold us up
            return ""
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except OSError:
        return ""
    text = data[:LONGEST].decode("utf-8", "replace").strip()
    cut = f"\n[cut after {LONGEST} bytes]" if len(data) > LONGEST else ""
    return f"# {path.name}\n\n{text}{cut}" if text else ""


NO_FURTHER = "I did not come to an end within {} steps. Tell me to go on if you want me to."
STUCK = "I did the same thing again and again without getting further, so I stopped."
TOO_MANY_TOKENS = "I stopped because this turn has used the {} tokens that it may. Tell me to go on if you want me to."


async def run_loop(run: TurnState, start: SubagentRunner) -> TurnEnding:
    """Ask the model, run its tools, ask again; what ends it is returned."""
    run.context_text = await read_context_files(run.agent.context_files)
    further, run.missing = await gather_tools(run.agent.sources)
    tools = (*run.agent.tools, *further, *make_skill_tools(run), *make_agent_tools(run, start))
    first = run.hop
    while run.finish is None:
        last = _last_answer_reason(run, run.hop - first + 1)
        entry = await _next_answer(run, () if last else tools)
        if entry is None:
            break
        if not entry.tool_calls:
            run.finish = TurnEnding(entry.content, said=True, stop=last if run.hop > first and last else "end_turn")
            break
        await _use_tools(run, entry.tool_calls, tools)
        if run.finish is None:
            run.finish = _check_limits(run, last)
        run.hop += 1
    assert run.finish is not None
    return run.finish


def _last_answer_reason(run: TurnState, hops: int) -> str:
    """Why the next answer is the last one, if it is."""
    if 0 < run.limits.hops <= hops:
        return "hops"
    return "loop" if _is_stuck(run.entries[run.base :]) else ""


def _check_limits(run: TurnState, last: str) -> TurnEnding | None:
    tokens = run.usage.input_tokens + run.usage.output_tokens
    if 0 < run.limits.tokens <= tokens:
        return TurnEnding(TOO_MANY_TOKENS.format(run.limits.tokens), stop="tokens")
    if last:
        return TurnEnding(NO_FURTHER.format(run.limits.hops) if last == "hops" else STUCK, stop=last)
    return None


async def _next_answer(run: TurnState, tools: Sequence[Tool]) -> Entry | None:
    """The assistant's next entry: from the records of an earlier life, or from the model; None when a hook ended it."""
    if known := run.replay.answers.get(run.hop):
        run.usage += known.usage
        run.entries.append(known.entry)
        return known.entry
    before = run.usage
    answer = await call_llm(run, _build_request(run, tools))
    if run.finish is not None:
        return None
    entry = await run.add(Entry("assistant", answer.content, _make_call_ids_unique(run, answer)))
    used = Usage(
        run.usage.input_tokens - before.input_tokens,
        run.usage.output_tokens - before.output_tokens,
        run.usage.calls - before.calls,
        run.usage.cost - before.cost,
    )
    await run.record(LlmStep(turn_id=run.ports.turn_id, hop=run.hop, entry=entry, usage=used))
    run.partial = ""
    run.resumed = False
    return entry


async def _use_tools(run: TurnState, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> None:
    batch = await call_tools(run, calls, tools)
    await add_results(run, batch)
    if run.transferred is not None and run.finish is None:
        run.entries.extend(run.transferred.entries)
        status, stop = run.transferred.status, run.transferred.stop
        run.finish = TurnEnding(run.transferred.reply, status, stop, run.transferred.hook_ended, said=True)
    if not run.is_behind:
        _emit_step(run, calls, batch)
        run.resumed = False


def _emit_step(run: TurnState, calls: tuple[ToolCall, ...], batch: ToolBatch) -> None:
    if not run.ports.wants("agent:step"):
        return
    done = [
        {"name": call.name, "result": entry.content, "arguments": msgspec.json.encode(call.args).decode()}
        for call, entry in zip(calls, batch.results, strict=True)
    ]
    names = [call.name for call in calls]
    run.ports.emit("agent:step", agent=run.agent.name, iteration=run.hop + 1, tool_names=names, tools=done)


def _is_stuck(entries: Sequence[Entry]) -> bool:
    """Did the last three answers want the same tools, with the same results?"""
    asked = [n for n, entry in enumerate(entries) if entry.role == "assistant"][-3:]
    if len(asked) < 3 or not entries[asked[-1]].tool_calls:
        return False
    ends = [*asked[1:], len(entries)]
    seen = [
        (
            [(call.name, call.args) for call in entries[begin].tool_calls],
            [entry.content for entry in entries[begin + 1 : end] if entry.role == "tool"],
        )
        for begin, end in zip(asked, ends, strict=True)
    ]
    return seen[0] == seen[1] == seen[2]


def _build_request(run: TurnState, tools: Sequence[Tool]) -> ModelRequest:
    said = (*run.view, *run.entries[run.base :])
    parts = [run.agent.instructions, run.context_text, render_skills_prompt(run.agent.skills), run.note, *run.missing]
    parts += [entry.content for entry in said if entry.role == "system"]
    return ModelRequest(
        messages=_add_context(run, tuple(entry for entry in said if entry.role != "system")),
        system="\n".join(part for part in parts if part),
        tools=tuple(tool.spec for tool in tools),
        name=run.model_name,
        options=run.options,
    )


def _add_context(run: TurnState, messages: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """What hooks add stands behind the person's message, for the model alone: the prompt before it stays cached."""
    if not run.context:
        return messages
    place = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), None)
    if place is None:
        return messages
    text = "\n\n".join([messages[place].content, *run.context])
    return (*messages[:place], Entry("user", text), *messages[place + 1 :])


def _make_call_ids_unique(run: TurnState, answer: ModelResponse) -> tuple[ToolCall, ...]:
    """Each call gets an id that no other of the turn has: results, records and questions are matched by it."""
    used = {call.id for entry in run.entries for call in entry.tool_calls}
    calls: list[ToolCall] = []
    for number, call in enumerate(answer.tool_calls):
        id_ = call.id if not run.prefix else f"{run.prefix}{call.id}"
        if not call.id or id_ in used:
            id_ = f"{run.prefix}call_{run.hop}_{number}"
        used.add(id_)
        calls.append(ToolCall(id_, call.name, call.args))
    return tuple(calls)
