"""A batch of tool calls: side by side, results in the order of the calls, whatever happens to one of them."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import anyio
import msgspec

from gateway.agent.operation import TurnNode, run_node
from gateway.agent.subagents import TRANSFER
from gateway.agent.tool_call import ENDED_TEXT, as_text, call_tool, make_failed_result
from gateway.agent.tools import Tool
from gateway.agent.turn_state import Fields, Operation, OperationResult, StepNotRecorded, TurnState, run_operation
from gateway.events import Deny, Pause, Question
from gateway.steps import ToolFinished
from gateway.transcript import Entry, ToolCall, as_call, call_from

log = logging.getLogger(__name__)

WITHDRAWN_TEXT = "A hook withdrew this call; it was not run."


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """The results of a batch in the order of its calls, and what the model is to be told besides."""

    results: tuple[Entry, ...]
    messages: tuple[str, ...] = ()


async def call_tools(run: TurnState, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> ToolBatch:
    """Run the calls and record what changed of their results afterwards. Each call has one result, always."""
    if run.is_behind:
        return ToolBatch(tuple(_get_known_result(run, call) for call in calls))

    def refused(text: str) -> ToolBatch:
        return ToolBatch(tuple(make_failed_result(call, text or ENDED_TEXT) for call in calls))

    node = TurnNode(
        "tool_node",
        "tool_node",
        lambda: _run_batch(run, calls, tools),
        _batch_as_fields,
        lambda left: _batch_from(calls, left),
        refused,
    )
    batch: ToolBatch = await run_node(run, node)
    return batch


async def _run_batch(run: TurnState, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> ToolBatch:
    offered = tuple(tool for tool in tools if run.offered is None or tool.name in run.offered)

    def ask() -> dict[str, Any]:
        specs = [msgspec.to_builtins(tool.spec) for tool in offered]
        return {"calls": [as_call(call) for call in calls], "tools": specs, "hop": run.hop}

    async def act(event: Fields | None) -> ToolBatch:
        if event is None:
            return await _run_in_parallel(run, calls, calls, offered)
        names = {spec.get("name") if isinstance(spec, dict) else spec for spec in event.get("tools") or ()}
        chosen = tuple(tool for tool in tools if tool.name in names)
        return await _run_in_parallel(run, calls, _calls_from(calls, event), chosen)

    def tell(done: OperationResult) -> dict[str, Any]:
        batch = done.value if isinstance(done.value, ToolBatch) else _make_prevented_batch(calls, done)
        return {"results": _batch_as_fields(batch), "hop": run.hop}

    done = await run_operation(run, Operation("tools:before", "tools:after", ask, act, tell))
    run.end(done.outcome, "tools:before", "Stopped by hook.")
    batch = done.value if isinstance(done.value, ToolBatch) else _make_prevented_batch(calls, done)
    if done.after is not None and done.after.get("results") != _batch_as_fields(batch):
        batch = _batch_from(calls, done.after.get("results"), batch)
    run.end(done.verdict, "tools:after", _last_text(batch))
    return batch


def _calls_from(calls: tuple[ToolCall, ...], event: Fields) -> tuple[ToolCall, ...]:
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


async def _run_in_parallel(
    run: TurnState, calls: tuple[ToolCall, ...], left: tuple[ToolCall, ...], tools: tuple[Tool, ...]
) -> ToolBatch:
    """A pause of one call lets the others finish, so that they are not run again; all questions leave together."""
    results: dict[str, Entry] = {}
    messages: dict[str, str] = {}
    questions: list[Question] = []
    unrecorded: list[StepNotRecorded] = []

    async def one(call: ToolCall) -> None:
        known = run.replay.finished.get(call.id)
        if known and call.name != TRANSFER:  # what follows from a transfer is in the target's own records
            results[call.id] = known.entry
            return
        if run.finish is not None:
            results[call.id] = make_failed_result(call, ENDED_TEXT)
            return
        try:
            results[call.id], messages[call.id] = await call_tool(run, call, tools)
        except Pause as pause:
            questions.extend(pause.questions)
        except StepNotRecorded as refusal:
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
    ordered = tuple(
        _with_call_id(call, results.get(call.id) or make_failed_result(call, WITHDRAWN_TEXT)) for call in calls
    )
    return ToolBatch(ordered, tuple(messages[call.id] for call in left if messages.get(call.id)))


def _with_call_id(call: ToolCall, result: Entry) -> Entry:
    return replace(result, call_id=call.id)


def _make_prevented_batch(calls: tuple[ToolCall, ...], done: OperationResult) -> ToolBatch:
    text = ENDED_TEXT
    if isinstance(done.outcome, Deny):
        text = done.outcome.text or "A hook did not allow these calls."
    elif done.error is not None:
        text = str(done.error) or type(done.error).__name__
    return ToolBatch(tuple(make_failed_result(call, text) for call in calls))


def _batch_as_fields(batch: ToolBatch) -> list[dict[str, Any]]:
    return [
        {"call_id": entry.call_id, "name": entry.name, "content": entry.content, "error": entry.error}
        for entry in batch.results
    ]


def _batch_from(calls: tuple[ToolCall, ...], left: Any, batch: ToolBatch | None = None) -> ToolBatch:
    """The results that hooks left: matched by call id where they say it, else by place."""
    left = left if isinstance(left, list) else [left]
    by_id = {item["call_id"]: item for item in left if isinstance(item, dict) and "call_id" in item}
    own = {entry.call_id: entry for entry in batch.results} if batch else {}
    results = []
    for number, call in enumerate(calls):
        item = by_id.get(call.id, left[number] if number < len(left) and not by_id else None)
        results.append(
            own.get(call.id, make_failed_result(call, WITHDRAWN_TEXT)) if item is None else _result_from(call, item)
        )
    return ToolBatch(tuple(results), batch.messages if batch else ())


def _result_from(call: ToolCall, item: Any) -> Entry:
    if isinstance(item, dict) and "content" in item:
        name, error = str(item.get("name") or call.name), bool(item.get("error"))
        return Entry("tool", as_text(item["content"]), call_id=call.id, name=name, error=error)
    return Entry("tool", as_text(item), call_id=call.id, name=call.name)


def _last_text(batch: ToolBatch) -> str:
    return batch.results[-1].content if batch.results else ""


async def add_results(run: TurnState, batch: ToolBatch) -> None:
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


def _get_known_result(run: TurnState, call: ToolCall) -> Entry:
    known = run.replay.finished.get(call.id)
    return known.entry if known else make_failed_result(call, WITHDRAWN_TEXT)
