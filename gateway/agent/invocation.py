"""One invocation of an agent: from `agent:start` to `agent:end`, and again after a hook's Retry there.

However it ends, the transcript is complete afterwards: it holds the person's message, every tool call has a result, and
its last entry is the reply.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
from anyio import CancelScope

from gateway.agent.agent import Agent, TurnLimits
from gateway.agent.loop import run_loop
from gateway.agent.operation import Operation, OperationResult, apologise, run_operation
from gateway.agent.picture_words import describe_pictures
from gateway.agent.ports import TurnResult
from gateway.agent.tool_call import STOPPED_TEXT, make_result
from gateway.agent.turn_state import Fields, ModelNotes, RunOrigin, StepNotRecorded, TurnEnding, TurnState, build_replay
from gateway.agent.turn_tools import make_agent_tools, make_skill_tools
from gateway.errors import GatewayError
from gateway.events import Pause, Retry
from gateway.events.fields import SHORT_LENGTH
from gateway.events.outcomes import find_refusal
from gateway.messages.transcript import Entry, as_message, entry_from

log = logging.getLogger(__name__)

LIMIT_NAMES = ("hops", "tokens", "seconds")  # of `TurnLimits`; in the field `config` each begins with `max_`
INTERRUPTED = "[The person stopped this answer here.]"
BROKE_OFF = " [...]\n\nThe answer broke off here. "
TOO_SLOW = "I stopped because this took longer than {:g} seconds."


@dataclass(slots=True)
class Invocation(Operation[TurnResult]):
    """The answer of an agent to a message; without a message it goes on from the history.

    `text` are the person's words, which interceptors of `agent:start` may change.
    """

    message: Entry | None
    text: str = ""
    before = "agent:start"
    after = "agent:end"
    ends_with_turn = False  # it always has an ending at `agent:end`; a Retry there restarts it

    def begin(self) -> None:
        self.state.ending.finish, self.state.base = None, len(self.state.entries)
        self.text = self.message.content if self.message else ""

    def before_fields(self) -> dict[str, Any]:
        agent = self.state.agent
        limits = {f"max_{name}": getattr(agent.limits, name) for name in LIMIT_NAMES}
        history = self.state.view if self.state.ports.reads(self.before, "messages") else None
        return self._text_fields() | {
            **({} if history is None else {"messages": [as_message(entry) for entry in history]}),
            "context": [],
            "config": limits | {"model": agent.model.name},
            "result": None,
        }

    async def act(self, event: Fields | None) -> None:
        _configure(self.state, event)
        await _answer(self.state, self._message_left(event))

    async def when_prevented(self, result: OperationResult) -> None:
        await _answer_instead(self.state, self._message_left(result.before_event), result)

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        state = self.state
        ending = state.ending.finish or TurnEnding("")
        return self._text_fields() | {
            "response": ending.reply[:SHORT_LENGTH],
            "response_full": ending.reply,
            "stop": result.exit_reason or ("failed" if result.error else ending.stop),
            "hook_ended": ending.hook_ended,
            "model": state.usage.model or state.request.model_name or state.agent.model.name,
            "usage": msgspec.structs.asdict(state.usage),
            "completed": not result.exit_reason and result.error is None and ending.status == "ok",
            "interrupted": result.exit_reason == "interrupted",
        }

    async def prepare_retry(self, retry: Retry) -> None:
        """Move the entries so far into the view; the message of the Retry, if any, is answered next."""
        state = self.state
        self.message = Entry("user", retry.message) if retry.message else None
        state.view, state.summarized = (*state.view, *state.new_entries), None
        state.hop += 1

    def conclude(self, result: OperationResult) -> TurnResult:
        state = self.state
        ending = state.ending.finish or TurnEnding("")
        reply, status, error = ending.reply, ending.status, ""
        if result.after_event is not None:
            reply = str(result.after_event.get("response_full") or "")
        if result.error is not None:
            status, error = "failed", state.ports.redact(str(result.error)) or type(result.error).__name__
        elif status == "failed" and ending.stop == "failed":  # a hook took the error away
            status = "ok"
        if reply != ending.reply:
            _reword_reply(state, reply)
        return TurnResult(
            reply,
            tuple(state.entries),
            state.usage,
            status,
            error,
            ending.hook_ended,
            stop=ending.stop,
            sends_files=state.sends_files,
        )

    def _text_fields(self) -> dict[str, Any]:
        return {"message": self.text[:SHORT_LENGTH], "message_full": self.text}

    def _message_left(self, event: Fields | None) -> Entry | None:
        """Return the person's message in the words that the hooks left."""
        if self.message is None:
            return None
        if event is not None and event.get("message_full") is not None:
            self.text = str(event["message_full"])
        if self.text == self.message.content:
            return self.message
        return msgspec.structs.replace(self.message, content=self.text)


async def run_subagent(state: TurnState, agent: Agent, call_id: str, message: Entry | None, note: str) -> TurnResult:
    """Run a sub-agent within this invocation. Without a message it receives the whole conversation."""
    turn_id = f"{state.ports.turn_id}/{call_id}"  # its steps are those of a turn within the turn
    ports = msgspec.structs.replace(state.ports.for_call(call_id), turn_id=turn_id, stop=CancelScope())
    view = () if message is not None else (*state.view, *state.new_entries[:-1])  # without the call that hands over
    inner = TurnState(
        agent,
        ports,
        view,
        build_replay(ports.steps, turn_id),
        RunOrigin(state.origin.resumed, state.origin.streams and message is None, f"{call_id}."),
        told=ModelNotes(note),
    )
    try:
        return await run_operation(Invocation(inner, message))
    finally:
        if inner.origin.streams:
            state.request.partial = inner.request.partial


def _configure(state: TurnState, event: Fields | None) -> None:
    state.request.limits, state.request.model_name = state.agent.limits, ""
    if event is None:
        return
    with suppress(ValueError):
        if "messages" in event:
            view = tuple(entry_from(message) for message in event["messages"] or ())
            if view != state.view:
                state.view, state.summarized = view, None
    state.told.context = [str(text) for text in event.get("context") or () if text]
    config = event.get("config")
    if not isinstance(config, dict):
        return
    try:
        state.request.limits = msgspec.convert(
            {name: config.get(f"max_{name}", getattr(state.request.limits, name)) for name in LIMIT_NAMES}, TurnLimits
        )
    except ValueError as error:
        log.warning("agent:start left limits that are none (%s); the agent's own hold", error)
    if config.get("model") not in (None, state.agent.model.name):
        state.request.model_name = str(config["model"])
    known = {"model", *(f"max_{name}" for name in LIMIT_NAMES)}
    state.request.options = {name: value for name, value in config.items() if name not in known}


async def _answer(state: TurnState, message: Entry | None) -> None:
    """Run the loop, between the person's message and the last word."""
    try:
        if message is not None:
            await state.add(message)
        with anyio.move_on_after(state.request.limits.seconds or None) as clock:
            if message is not None and state.entries[-1].parts:
                state.entries[-1] = await describe_pictures(state, state.entries[-1])
            await run_loop(state, (*make_skill_tools(state), *make_agent_tools(state, run_subagent)))
        if clock.cancelled_caught:
            state.ending.exit_deadline = None
            text = TOO_SLOW.format(state.request.limits.seconds)
            state.ending.finish = TurnEnding(f"{state.request.partial}\n\n{text}".strip(), "failed", "seconds")
    except Exception as error:
        is_known = isinstance(error, GatewayError)  # it says what happened; of any other the way there is needed
        log.warning("the turn of agent %s failed: %s", state.agent.name, error, exc_info=not is_known)
        # The person has read the beginning already: it stays, and is marked as broken off.
        begun = f"{state.request.partial}{BROKE_OFF}" if state.request.partial.strip() else ""
        state.ending.finish = TurnEnding(f"{begun}{apologise(error)}", "failed", "failed")
        await _add_last_word(state)
        raise
    except (Pause, StepNotRecorded):
        raise
    except BaseException:
        state.ending.finish = TurnEnding(state.request.partial, "interrupted", "interrupted")
        await _close_interrupted(state)
        raise
    await _add_last_word(state)


async def _answer_instead(state: TurnState, message: Entry | None, result: OperationResult) -> None:
    """Set the reply if hooks of `agent:start` gave one, or refused."""
    if (refusal := find_refusal(result.outcome)) is not None:
        state.ending.finish = TurnEnding(refusal, "denied", "denied")
    elif result.error is not None:
        state.ending.finish = TurnEnding(apologise(result.error), "failed", "failed")
    elif not state.end(result.outcome, "agent:start"):
        state.ending.finish = TurnEnding(str(result.value), stop="result")
    if message is not None:
        await state.add(message)
    await _add_last_word(state)


async def _add_last_word(state: TurnState) -> None:
    for result in _make_missing_results(state):
        await state.add(result)
    finish = state.ending.finish
    if finish is not None and not finish.is_in_transcript and finish.reply:
        added = await state.add(Entry("assistant", finish.reply))
        state.ending.finish = msgspec.structs.replace(finish, reply=added.content, is_in_transcript=True)


async def _close_interrupted(state: TurnState) -> None:
    """Close the transcript of an interrupted run, so that the model sees it at the next turn."""
    last = Entry("assistant", f"{state.request.partial}\n\n{INTERRUPTED}".strip())
    for entry in (*_make_missing_results(state), last):
        with anyio.move_on_after(state.grace(), shield=True), suppress(Exception, Pause):
            await state.add(entry)


def _make_missing_results(state: TurnState) -> list[Entry]:
    """Make results for the calls without one; otherwise a model would refuse the transcript."""
    entries = state.new_entries
    have = {entry.call_id for entry in entries if entry.role == "tool"}
    return [
        make_result(call, STOPPED_TEXT, error=True)
        for entry in entries
        for call in entry.tool_calls
        if call.id not in have
    ]


def _reword_reply(state: TurnState, reply: str) -> None:
    """Make the reply that hooks left the last entry of the transcript."""
    if state.entries and state.entries[-1].role == "assistant" and not state.entries[-1].tool_calls:
        state.entries[-1] = msgspec.structs.replace(state.entries[-1], content=reply)
    else:
        state.entries.append(Entry("assistant", reply))
