"""A batch of tool calls: side by side, results in the order of the calls, whatever happens to one of them."""

import logging
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec

from gateway.agent.batch_gate import BatchGate
from gateway.agent.operation import Operation, OperationResult, run_operation
from gateway.agent.picture_words import describe_pictures
from gateway.agent.tool_call import ENDED_TEXT, as_text, call_tool, make_result
from gateway.agent.tools import Tool
from gateway.agent.turn_state import Fields, StepNotRecorded, TurnState
from gateway.agent.turn_tools import TRANSFER
from gateway.events import Pause, Question
from gateway.events.outcomes import find_refusal
from gateway.messages.steps import ToolFinished
from gateway.messages.transcript import Entry, ToolCall, as_call, call_from
from gateway.turn_marks import watch_steps

log = logging.getLogger(__name__)

WITHDRAWN_TEXT = "A hook cancelled this call; it was not run."


class ToolBatch(msgspec.Struct, frozen=True):
    """The results of a batch in the order of its calls, and further messages for the model."""

    results: tuple[Entry, ...]
    messages: tuple[str, ...] = ()


async def call_tools(state: TurnState, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> ToolBatch:
    """Run the calls. Each has one result, always; `add_results` puts them into the transcript."""
    if state.is_behind:
        known = state.replay.finished
        return ToolBatch(
            tuple(
                known[call.id].entry if call.id in known else make_result(call, WITHDRAWN_TEXT, error=True)
                for call in calls
            )
        )
    return await run_operation(ToolBatchRun(state, calls, tools))


@dataclass(slots=True)
class ToolBatchRun(Operation[ToolBatch]):
    """The tools that one answer of the model wants."""

    calls: tuple[ToolCall, ...]
    tools: tuple[Tool, ...]
    before = "tools:before"
    after = "tools:after"
    node_type = "tool_node"

    def before_fields(self) -> dict[str, Any]:
        specs = [msgspec.to_builtins(tool.spec) for tool in self._offered()]
        return {"calls": [as_call(call) for call in self.calls], "tools": specs, "hop": self.state.hop}

    async def act(self, event: Fields | None) -> ToolBatch:
        if event is None:
            return await self._run_in_parallel(self.calls, self._offered())
        names = {spec.get("name") if isinstance(spec, dict) else spec for spec in event.get("tools") or ()}
        chosen = tuple(tool for tool in self.tools if tool.name in names)
        return await self._run_in_parallel(_calls_from(self.calls, event), chosen)

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        return {"results": self.to_fields(self._batch_of(result)), "hop": self.state.hop}

    def conclude(self, result: OperationResult) -> ToolBatch:
        """Return the results; an error of the batch as a whole is a result of each of its calls."""
        self.state.end(result.outcome, self.before, "Stopped by hook.")
        batch = self._batch_of(result)
        if result.after_event is not None and result.after_event.get("results") != self.to_fields(batch):
            batch = _batch_from(self.calls, result.after_event.get("results"), batch)
        self.state.end(result.after_outcome, self.after, batch.results[-1].content if batch.results else "")
        return batch

    def to_fields(self, value: ToolBatch) -> list[dict[str, Any]]:
        return [
            {"call_id": entry.call_id, "name": entry.name, "content": entry.content, "error": entry.error}
            for entry in value.results
        ]

    def from_fields(self, left: Any) -> ToolBatch:
        return _batch_from(self.calls, left, ToolBatch(()))

    def denied(self, text: str) -> ToolBatch:
        return ToolBatch(tuple(make_result(call, text or ENDED_TEXT, error=True) for call in self.calls))

    def _offered(self) -> tuple[Tool, ...]:
        offered = self.state.request.offered
        return tuple(tool for tool in self.tools if offered is None or tool.name in offered)

    def _batch_of(self, result: OperationResult) -> ToolBatch:
        if isinstance(result.value, ToolBatch):
            return result.value
        refusal = find_refusal(result.outcome, "A hook did not allow these calls.")
        if refusal is None and result.error is not None:
            refusal = str(result.error) or type(result.error).__name__
        return self.denied(refusal or "")

    async def _run_in_parallel(self, left: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> ToolBatch:
        """Run the calls side by side. A pause of one lets reading calls finish for good; all questions go together."""
        results: dict[str, Entry] = {}
        messages: dict[str, str] = {}
        pauses: list[Pause] = []
        unrecorded: list[StepNotRecorded] = []
        gate = BatchGate((call.id for call in left), self.state.ports.open_questions)

        async def run_to_the_end(call: ToolCall) -> None:
            asked: tuple[Question, ...] = ()
            try:
                results[call.id], messages[call.id] = await self._run_one(call, tools, gate)
            except Pause as pause:
                asked = pause.questions
                pauses.append(pause)
            except StepNotRecorded as refusal:
                unrecorded.append(refusal)
            finally:
                gate.end(call.id, [question.id for question in asked])

        if len(left) == 1:
            await run_to_the_end(left[0])
        else:
            async with anyio.create_task_group() as group:
                for call in left:
                    group.start_soon(watch_steps, run_to_the_end, call)
        if unrecorded:
            raise unrecorded[0]
        if pauses:
            raise Pause(tuple(question for pause in pauses for question in pause.questions))
        # A hook at `tools:before` may have taken calls away; each call of the model gets a result all the same.
        found = (results.get(call.id) or make_result(call, WITHDRAWN_TEXT, error=True) for call in self.calls)
        ordered = tuple(
            msgspec.structs.replace(entry, call_id=call.id) for call, entry in zip(self.calls, found, strict=True)
        )
        return ToolBatch(ordered, tuple(messages[call.id] for call in left if messages.get(call.id)))

    async def _run_one(self, call: ToolCall, tools: tuple[Tool, ...], gate: BatchGate) -> tuple[Entry, str]:
        known = self.state.replay.finished.get(call.id)
        if known and call.name != TRANSFER:  # what follows from a transfer is in the target's own records
            return known.entry, ""
        if self.state.ending.finish is not None:
            return make_result(call, ENDED_TEXT, error=True), ""
        return await call_tool(self.state, call, tools, gate)


def _calls_from(calls: tuple[ToolCall, ...], event: Fields) -> tuple[ToolCall, ...]:
    """Return the calls that the interceptors left; a call that the model did not make has no place for a result."""
    try:
        left = [call_from(call) for call in event.get("calls") or ()]
    except ValueError as error:
        log.warning("tools:before left calls that are none (%s); the model's own are run", error)
        return calls
    made = {call.id for call in calls}
    if added := [call.name for call in left if call.id not in made]:
        log.warning("tools:before added calls that the model did not make: %s; they are not run", ", ".join(added))
    return tuple(call for call in left if call.id in made)


def _batch_from(calls: tuple[ToolCall, ...], left: Any, batch: ToolBatch) -> ToolBatch:
    """Return the results that hooks left, matched by call id if they have it, else by place; the others stay."""
    left = left if isinstance(left, list) else [left]
    by_id = {item["call_id"]: item for item in left if isinstance(item, dict) and "call_id" in item}
    own = {entry.call_id: entry for entry in batch.results}
    results = []
    for number, call in enumerate(calls):
        item = by_id.get(call.id, left[number] if number < len(left) and not by_id else None)
        results.append(
            own.get(call.id, make_result(call, WITHDRAWN_TEXT, error=True))
            if item is None
            else _result_from(call, item, own.get(call.id))
        )
    return ToolBatch(tuple(results), batch.messages)


def _result_from(call: ToolCall, item: Any, own: Entry | None) -> Entry:
    """Make the result that hooks left. Its pictures stay: hooks at `tool:after` decide about these."""
    fields = item if isinstance(item, dict) and "content" in item else {"content": item}
    name, error = str(fields.get("name") or call.name), bool(fields.get("error"))
    parts = own.parts if own and not error else ()
    return Entry("tool", as_text(fields["content"]), call_id=call.id, name=name, error=error, parts=parts)


async def add_results(state: TurnState, batch: ToolBatch) -> None:
    """Put the results into the transcript; what interceptors changed since they were recorded is recorded again."""
    if state.is_behind:
        state.entries.extend(batch.results)
        return
    for result in batch.results:
        added = state.entries[-1] = await describe_pictures(state, await state.add(result))
        if state.results.recorded_results.get(result.call_id) != added:
            await state.record(ToolFinished(turn_id=state.ports.turn_id, call_id=added.call_id, entry=added))
    for message in batch.messages:
        await state.add(Entry("user", message))
