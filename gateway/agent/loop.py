"""The loop of model and tools, until there is a reply or a limit is reached.

At the last hop that the limits allow, or when it has wanted the same tools three times for the same results, the model
gets no tools, so that it must say what it has; if it still wants some, the reply is that it got no further.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from anyio.lowlevel import checkpoint_if_cancelled

from gateway.agent.model import Chunk, ModelRequest
from gateway.agent.model_call import ModelCall
from gateway.agent.operation import run_operation
from gateway.agent.skills import render_skills_prompt
from gateway.agent.tool_batch import ToolBatch, add_results, call_tools
from gateway.agent.tools import Tool, gather_tools
from gateway.agent.turn_state import TurnEnding, TurnState
from gateway.agent.turn_tools import LOAD
from gateway.messages.steps import LlmStep
from gateway.messages.transcript import Entry, ToolCall

NO_FURTHER = "I did not finish within {} steps. Tell me to go on if you want me to."
STUCK = "I did the same thing again and again without getting further, so I stopped."
NOT_GIVEN = (
    "The person you speak with may not use every tool of this gateway. When they ask for something that none of "
    "yours can do, say so, and that the owner of this gateway can give them more: `access.tools` in its config.yaml."
)
EMPTY_STOPS = frozenset({"stop", "length", "tool_calls"})  # a model's own; what a hook left empty is meant so
NOTHING_SAID = "My language model gave an empty answer, twice. Please say it in other words, or try again."
CUT_OFF = "[The answer was cut off here: it reached the length that the model may write. Tell me to go on.]"
TOO_MANY_TOKENS = "I stopped because this turn has used its limit of {} tokens. Tell me to go on if you want me to."


async def run_loop(state: TurnState, turn_tools: tuple[Tool, ...]) -> None:
    """Ask the model, run its tools, ask again, until `state.ending.finish` says how the turn ends."""
    if (paths := state.agent.context_files) and (files := state.agent.kept_files):
        state.told.context_text = await files.join(paths)
    tools = await collect_tools(state, turn_tools)
    first = state.hop
    while state.ending.finish is None:
        await checkpoint_if_cancelled()  # a turn that was stopped asks no model, not even one that answers at once
        last = _last_answer_reason(state, state.hop - first + 1)
        answer = await _next_answer(state, () if last else tools)
        if answer is None:
            break
        entry, stop = answer
        if not entry.tool_calls:
            state.ending.finish = _end_with(state, entry, stop, last if state.hop > first else "")
            break
        await _use_tools(state, entry.tool_calls, tools)
        if state.ending.finish is None:
            state.ending.finish = _check_limits(state, last)
        state.hop += 1


async def collect_tools(state: TurnState, turn_tools: tuple[Tool, ...] = ()) -> tuple[Tool, ...]:
    """Return the tools of the agent and its sources that the person may use, and that work in this conversation."""
    further, state.told.missing = await gather_tools(state.agent.sources)
    found, chat = (*state.agent.tools, *further, *turn_tools), state.ports.chat
    fit = [tool for tool in found if tool.sends is None or (chat is not None and chat.can_show(tool.sends))]
    return _grant_tools(state, tuple(fit))


def _grant_tools(state: TurnState, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return the tools that the person may use; the model sees no others, and no skill that it cannot load."""
    if (grant := state.ports.for_call().grant) is None:
        return tools
    given = [grant(tool) for tool in tools]
    state.results.withheld = frozenset(tool.name for tool, left in zip(tools, given, strict=True) if left is None)
    if state.results.withheld:
        state.told.missing = (*state.told.missing, NOT_GIVEN)
    if LOAD in state.results.withheld:
        state.agent = replace(state.agent, skills=())
    return tuple(tool for tool in given if tool is not None)


def _last_answer_reason(state: TurnState, hops: int) -> str:
    """Return why the next answer is the last one, or an empty text."""
    if 0 < state.request.limits.hops <= hops:
        return "hops"
    return "loop" if _is_stuck(state.new_entries) else ""


def _check_limits(state: TurnState, last: str) -> TurnEnding | None:
    tokens = state.usage.input_tokens + state.usage.output_tokens
    if 0 < state.request.limits.tokens <= tokens:
        return TurnEnding(TOO_MANY_TOKENS.format(state.request.limits.tokens), stop="tokens")
    if last:
        return TurnEnding(NO_FURTHER.format(state.request.limits.hops) if last == "hops" else STUCK, stop=last)
    return None


def _end_with(state: TurnState, entry: Entry, stop: str, last: str) -> TurnEnding:
    """End the turn with this answer, and add a note if something is wrong with it."""
    said = entry.content
    if not said.strip() and stop in EMPTY_STOPS:
        said, stop = NOTHING_SAID, "empty"
    elif stop == "length":
        said = f"{said}\n\n{CUT_OFF}"
    else:
        stop = last or "end_turn"
    if said != entry.content:
        state.entries[-1] = msgspec.structs.replace(entry, content=said)
    return TurnEnding(said, is_in_transcript=True, stop=stop)


async def _next_answer(state: TurnState, tools: Sequence[Tool]) -> tuple[Entry, str] | None:
    """Return the assistant's next entry and its stop reason, or None if a hook ended the turn.

    It comes from the steps of an earlier try, or from the model, which gets a second chance if its answer was empty.
    """
    if known := state.replay.answers.get(state.hop):
        state.usage += known.usage
        state.ports.authors[""].update(known.authors)
        state.entries.append(known.entry)
        return known.entry, known.stop
    before = state.usage
    answer = await run_operation(ModelCall(state, _build_request(state, tools)))
    is_empty = answer.stop in EMPTY_STOPS and not (answer.text.strip() or answer.tool_calls)
    if state.ending.finish is None and is_empty:
        answer = await run_operation(ModelCall(state, _build_request(state, tools)))
    if state.ending.finish is not None:
        return None
    entry = await state.add(Entry("assistant", answer.text, _make_call_ids_unique(state, answer)))
    used = state.usage - before
    hooks = tuple(sorted(state.ports.authors[""]))
    step = LlmStep(turn_id=state.ports.turn_id, hop=state.hop, entry=entry, usage=used, stop=answer.stop, authors=hooks)
    await state.record(step)
    state.request.partial = ""
    state.origin.resumed = False
    return entry, answer.stop


async def _use_tools(state: TurnState, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> None:
    batch = await call_tools(state, calls, tools)
    await add_results(state, batch)
    other = state.ending.transferred
    if other is not None and state.ending.finish is None:
        state.entries.extend(other.entries)
        state.ending.finish = TurnEnding(other.reply, other.status, other.stop, other.hook_ended, is_in_transcript=True)
    if not state.is_behind:
        _emit_step(state, calls, batch)
        state.origin.resumed = False


def _emit_step(state: TurnState, calls: tuple[ToolCall, ...], batch: ToolBatch) -> None:
    if not state.ports.wants("agent:step"):
        return
    done = [
        {
            "name": call.name,
            "result": entry.content,
            "arguments": msgspec.json.encode(call.args).decode(),
            "error": entry.error,
            "denied": state.results.denials.get(call.id),
        }
        for call, entry in zip(calls, batch.results, strict=True)
    ]
    names = [call.name for call in calls]
    state.ports.emit("agent:step", agent=state.agent.name, iteration=state.hop + 1, tool_names=names, tools=done)


def _is_stuck(entries: Sequence[Entry]) -> bool:
    """Return True if the last three answers called the same tools, with the same results."""
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


def _build_request(state: TurnState, tools: Sequence[Tool]) -> ModelRequest:
    entries = (*state.view, *state.new_entries)
    agent = state.agent
    parts = [
        *(agent.instructions, state.told.context_text, render_skills_prompt(agent.skills), state.told.handoff_note),
        *state.told.missing,
        *[entry.content for entry in entries if entry.role == "system"],
    ]
    return ModelRequest(
        messages=_add_context(state, tuple([entry for entry in entries if entry.role != "system"])),
        system="\n".join(filter(None, parts)),
        tools=tuple([tool.spec for tool in tools]),
        name=state.request.model_name,
        options=state.request.options,
    )


def _add_context(state: TurnState, messages: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Put the texts of hooks behind the person's message, for the model alone: the prompt before it stays cached."""
    place = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), None)
    if place is None or not state.told.context:
        return messages
    text = "\n\n".join([messages[place].content, *state.told.context])
    return (*messages[:place], msgspec.structs.replace(messages[place], content=text), *messages[place + 1 :])


def _make_call_ids_unique(state: TurnState, answer: Chunk) -> tuple[ToolCall, ...]:
    """Give each call an id that is unique in the turn: results, records and questions are matched by it."""
    used = {call.id for entry in state.entries for call in entry.tool_calls}
    calls: list[ToolCall] = []
    for number, call in enumerate(answer.tool_calls):
        id_ = f"{state.origin.prefix}{call.id}"
        if not call.id or id_ in used:
            id_ = f"{state.origin.prefix}call_{state.hop}_{number}"
        used.add(id_)
        calls.append(ToolCall(id_, call.name, call.args))
    return tuple(calls)
