"""A batch of tool calls: side by side, results in the order of the calls, whatever happens to one of them."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import anyio
import msgspec

from gateway.agent.call_agent import TRANSFER
from gateway.agent.call_tool import ENDED, as_text, call_tool, failed
from gateway.agent.node import Node, through
from gateway.agent.run import Done, Fields, Operation, Run, Unrecorded, around
from gateway.agent.tools import Tool
from gateway.events.event import Deny, Pause, Question
from gateway.records import ToolFinished
from gateway.transcript import Entry, ToolCall, as_call, call_from

log = logging.getLogger(__name__)

WITHDRAWN = "A hook withdrew this call; it was not run."


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of a batch in the order of its calls, and what the model is to be told besides."""

    results: tuple[Entry, ...]
    messages: tuple[str, ...] = ()


async def call_tools(run: Run, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> Batch:
    """Run the calls and record what changed of their results afterwards. Each call has one result, always."""
    if run.is_behind:
        return Batch(tuple(_known(run, call) for call in calls))

    def refused(text: str) -> Batch:
        return Batch(tuple(failed(call, text or ENDED) for call in calls))

    node = Node(
        "tool_node", "tool_node", lambda: _batch(run, calls, tools), _shown, lambda left: _read(calls, left), refused
    )
    batch: Batch = await through(run, node)
    return batch


async def _batch(run: Run, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> Batch:
    offered = tuple(tool for tool in tools if run.offered is None or tool.name in run.offered)

    def ask() -> dict[str, Any]:
        specs = [msgspec.to_builtins(tool.spec) for tool in offered]
        return {"calls": [as_call(call) for call in calls], "tools": specs, "hop": run.hop}

    async def act(event: Fields | None) -> Batch:
        if event is None:
            return await _side_by_side(run, calls, calls, offered)
        names = {spec.get("name") if isinstance(spec, dict) else spec for spec in event.get("tools") or ()}
        chosen = tuple(tool for tool in tools if tool.name in names)
        return await _side_by_side(run, calls, _left_of(calls, event), chosen)

    def tell(done: Done) -> dict[str, Any]:
        batch = done.value if isinstance(done.value, Batch) else _unrun(calls, done)
        return {"results": _shown(batch), "hop": run.hop}

    done = await around(run, Operation("tools:before", "tools:after", ask, act, tell))
    run.end(done.outcome, "tools:before", "Stopped by hook.")
    batch = done.value if isinstance(done.value, Batch) else _unrun(calls, done)
    if done.after is not None and done.after.get("results") != _shown(batch):
        batch = _read(calls, done.after.get("results"), batch)
    run.end(done.verdict, "tools:after", _last_text(batch))
    return batch


def _left_of(calls: tuple[ToolCall, ...], event: Fields) -> tuple[ToolCall, ...]:
    """The calls that the interceptors left; one that the model did not make has no place for a result."""
    try:
        left = [call_from(call) for call in event.get("calls") or ()]
    except ValueError as error:
        log.warning("tools:before left calls that are none (%s); the model's own are run", error)
        return calls
    made = {call.id for call in calls}
    if added := [call.name for call in left if call.id not in made]:
        log.warning("tools:before added calls that the model did not make: %s; they are not run", ", ".join(added))
    return tuple(call for call in left if call.id in made)


async def _side_by_side(
    run: Run, calls: tuple[ToolCall, ...], left: tuple[ToolCall, ...], tools: tuple[Tool, ...]
) -> Batch:
    """A pause of one call lets the others finish, so that they are not run again; all questions leave together."""
    results: dict[str, Entry] = {}
    messages: dict[str, str] = {}
    questions: list[Question] = []
    unrecorded: list[Unrecorded] = []

    async def one(call: ToolCall) -> None:
        known = run.replay.finished.get(call.id)
        if known and call.name != TRANSFER:  # what follows from a transfer is in the target's own records
            results[call.id] = known.entry
            return
        if run.finish is not None:
            results[call.id] = failed(call, ENDED)
            return
        try:
            results[call.id], messages[call.id] = await call_tool(run, call, tools)
        except Pause as pause:
            questions.extend(pause.questions)
        except Unrecorded as refusal:
            unrecorded.append(refusal)

    if len(left) == 1:
        await one(left[0])
    else:
        async with anyio.create_task_group() as group:
            for call in left:
                group.start_soon(one, call)
    if unrecorded:
        raise unrecorded[0]
    if questions:
        raise Pause(tuple(questions))
    ordered = tuple(_placed(call, results.get(call.id) or failed(call, WITHDRAWN)) for call in calls)
    return Batch(ordered, tuple(messages[call.id] for call in left if messages.get(call.id)))


def _placed(call: ToolCall, result: Entry) -> Entry:
    return replace(result, call_id=call.id)


def _unrun(calls: tuple[ToolCall, ...], done: Done) -> Batch:
    text = ENDED
    if isinstance(done.outcome, Deny):
        text = done.outcome.text or "A hook did not allow these calls."
    elif done.error is not None:
        text = str(done.error) or type(done.error).__name__
    return Batch(tuple(failed(call, text) for call in calls))


def _shown(batch: Batch) -> list[dict[str, Any]]:
    return [
        {"call_id": entry.call_id, "name": entry.name, "content": entry.content, "error": entry.error}
        for entry in batch.results
    ]


def _read(calls: tuple[ToolCall, ...], left: Any, batch: Batch | None = None) -> Batch:
    """The results that hooks left: matched by call id where they say it, else by place."""
    left = left if isinstance(left, list) else [left]
    by_id = {item["call_id"]: item for item in left if isinstance(item, dict) and "call_id" in item}
    own = {entry.call_id: entry for entry in batch.results} if batch else {}
    results = []
    for number, call in enumerate(calls):
        item = by_id.get(call.id, left[number] if number < len(left) and not by_id else None)
        results.append(own.get(call.id, failed(call, WITHDRAWN)) if item is None else _result_from(call, item))
    return Batch(tuple(results), batch.messages if batch else ())


def _result_from(call: ToolCall, item: Any) -> Entry:
    if isinstance(item, dict) and "content" in item:
        name, error = str(item.get("name") or call.name), bool(item.get("error"))
        return Entry("tool", as_text(item["content"]), call_id=call.id, name=name, error=error)
    return Entry("tool", as_text(item), call_id=call.id, name=call.name)


def _last_text(batch: Batch) -> str:
    return batch.results[-1].content if batch.results else ""


async def add_results(run: Run, batch: Batch) -> None:
    """Put the results into the transcript; what interceptors changed since they were recorded is recorded again."""
    if run.is_behind:
        run.entries.extend(batch.results)
        return
    for result in batch.results:
        added = await run.add(result)
        if run.recorded.get(result.call_id) != added:
            await run.record(ToolFinished(turn_id=run.ports.turn_id, call_id=added.call_id, entry=added))
    for message in batch.messages:
        await run.add(Entry("user", message))


def _known(run: Run, call: ToolCall) -> Entry:
    known = run.replay.finished.get(call.id)
    return known.entry if known else failed(call, WITHDRAWN)
