"""One invocation of an agent: from `agent:start` to `agent:end`, and again when a hook's Retry says so there.

Whatever ends it, the transcript is whole afterwards: the person's message stands in it, every tool call has a result,
and the last word is what the person was told.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
import msgspec

from gateway.agent.agent import Agent, TurnLimits
from gateway.agent.error_fields import apologise
from gateway.agent.loop import run_loop
from gateway.agent.ports import TurnResult, make_subagent_ports
from gateway.agent.replay import build_replay
from gateway.agent.tool_call import STOPPED_TEXT, make_failed_result
from gateway.agent.turn_state import (
    RETRIES,
    Fields,
    Operation,
    OperationResult,
    StepNotRecorded,
    TurnEnding,
    TurnState,
    log,
    run_operation,
    wait_before_retry,
)
from gateway.errors import GatewayError
from gateway.events import Deny, End, Pause
from gateway.transcript import Entry, as_message, entry_from

HERMES_TEXT_LIMIT = 500  # so much of a text stands in `message` and `response`, as handlers written for Hermes expect
INTERRUPTED = "[The person stopped this answer here.]"
TOO_SLOW = "I stopped because this took longer than {:g} seconds."


async def invoke(run: TurnState, message: Entry | None) -> TurnResult:
    """Answer the message; None goes on from what is there."""
    for attempt in range(RETRIES + 1):
        run.finish, run.base = None, len(run.entries)
        done = await run_operation(run, _operation(run, message))
        if done.retry is None or attempt == RETRIES:
            break
        message = Entry("user", done.retry.message) if done.retry.message else None
        run.view, run.summed = (*run.view, *run.entries[run.base :]), None
        run.hop += 1
        await wait_before_retry(done.retry)
    return _result(run, done)


async def run_subagent(run: TurnState, agent: Agent, call_id: str, message: Entry | None, note: str) -> TurnResult:
    """The run of a sub-agent within this one. Without a message it is given the whole conversation."""
    ports = make_subagent_ports(run.ports, agent, f"{run.ports.turn_id}/{call_id}")
    view: Sequence[Entry] = () if message is not None else (*run.view, *run.entries[run.base : -1])
    inner = TurnState(
        agent,
        ports,
        tuple(view),
        build_replay(ports.steps, ports.turn_id),
        note=note,
        resumed=run.resumed,
        streams=run.streams and message is None,
        prefix=f"{call_id}.",
    )
    try:
        return await invoke(inner, message)
    finally:
        if inner.streams:
            run.partial = inner.partial


def _operation(run: TurnState, message: Entry | None) -> Operation:
    said = _PersonText(message.content if message else "")

    def ask() -> dict[str, Any]:
        limits = run.agent.limits
        config = {"max_hops": limits.hops, "max_tokens": limits.tokens, "max_seconds": limits.seconds}
        return said.fields | {
            "messages": [as_message(entry) for entry in run.view],
            "context": [],
            "config": config | {"model": run.agent.model_name or run.agent.model.name},
            "result": None,
        }

    async def act(event: Fields | None) -> None:
        _configure(run, event)
        await _answer(run, said.heard(message, event))

    async def instead(done: OperationResult) -> None:
        await _answer_instead(run, said.heard(message, done.before), done)

    def tell(done: OperationResult) -> dict[str, Any]:
        finish = run.finish or TurnEnding("")
        stop = done.left or ("failed" if done.error else finish.stop)
        return said.fields | {
            "response": finish.reply[:HERMES_TEXT_LIMIT],
            "response_full": finish.reply,
            "stop": stop,
            "hook_ended": finish.hook_ended,
            "usage": msgspec.to_builtins(run.usage),
            "completed": not done.left and done.error is None and finish.status == "ok",
            "interrupted": done.left == "interrupted",
        }

    return Operation("agent:start", "agent:end", ask, act, tell, instead)


class _PersonText:
    """What the person said, as it stands in the fields of both events; interceptors of the first may rewrite it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def fields(self) -> dict[str, Any]:
        return {"message": self.text[:HERMES_TEXT_LIMIT], "message_full": self.text}

    def heard(self, message: Entry | None, event: Fields | None) -> Entry | None:
        if message is None:
            return None
        if event is not None and event.get("message_full") is not None:
            self.text = str(event["message_full"])
        return message if self.text == message.content else replace(message, content=self.text)


def _configure(run: TurnState, event: Fields | None) -> None:
    run.limits, run.model_name = run.agent.limits, run.agent.model_name
    if event is None:
        return
    with suppress(ValueError):
        view = tuple(entry_from(message) for message in event.get("messages") or ())
        if view != run.view:
            run.view, run.summed = view, None
    run.context = [str(text) for text in event.get("context") or () if text]
    config = event.get("config")
    if not isinstance(config, dict):
        return
    try:
        run.limits = msgspec.convert(
            {name: config.get(f"max_{name}", getattr(run.limits, name)) for name in ("hops", "tokens", "seconds")},
            TurnLimits,
        )
    except ValueError as error:
        log.warning("agent:start left limits that are none (%s); the agent's own hold", error)
    if config.get("model") not in (None, run.agent.model.name):
        run.model_name = str(config["model"])
    known = ("max_hops", "max_tokens", "max_seconds", "model")
    run.options = {name: value for name, value in config.items() if name not in known}


async def _answer(run: TurnState, message: Entry | None) -> None:
    """The loop, between the person's message and the last word."""
    try:
        if message is not None:
            await run.add(message)
        with anyio.move_on_after(run.limits.seconds or None) as clock:
            await run_loop(run, run_subagent)
        if clock.cancelled_caught:
            run.exit_deadline = None
            text = TOO_SLOW.format(run.limits.seconds)
            run.finish = TurnEnding(f"{run.partial}\n\n{text}".strip(), "failed", "seconds")
    except Exception as error:
        is_known = isinstance(error, GatewayError)  # it says what happened; of any other the way there is needed
        log.warning("the turn of agent %s failed: %s", run.agent.name, error, exc_info=not is_known)
        run.finish = TurnEnding(apologise(error), "failed", "failed")
        await _add_last_word(run)
        raise
    except (Pause, StepNotRecorded):
        raise
    except BaseException:
        run.finish = TurnEnding(run.partial, "interrupted", "interrupted")
        await _close_interrupted(run)
        raise
    await _add_last_word(run)


async def _answer_instead(run: TurnState, message: Entry | None, done: OperationResult) -> None:
    """What is said when hooks answered instead of the agent."""
    if isinstance(done.outcome, Deny):
        run.finish = TurnEnding(done.outcome.text, "denied", "denied")
    elif isinstance(done.outcome, End):
        run.end(done.outcome, "agent:start")
    elif done.error is not None:
        run.finish = TurnEnding(apologise(done.error), "failed", "failed")
    else:
        run.finish = TurnEnding(str(done.value), stop="result")
    if message is not None:
        await run.add(message)
    await _add_last_word(run)


async def _add_last_word(run: TurnState) -> None:
    for result in _make_missing_results(run):
        await run.add(result)
    finish = run.finish
    if finish is not None and not finish.said and finish.reply:
        added = await run.add(Entry("assistant", finish.reply))
        run.finish = replace(finish, reply=added.content, said=True)


async def _close_interrupted(run: TurnState) -> None:
    """Close the transcript of an interrupted run, so that the model is told of it at the next turn."""
    closing = [*_make_missing_results(run), Entry("assistant", f"{run.partial}\n\n{INTERRUPTED}".strip())]
    for entry in closing:
        with anyio.move_on_after(run.grace(), shield=True), suppress(Exception, Pause):
            await run.add(entry)


def _make_missing_results(run: TurnState) -> list[Entry]:
    """Results for the calls that have none, or the transcript could not be shown to a model again."""
    entries = run.entries[run.base :]
    have = {entry.call_id for entry in entries if entry.role == "tool"}
    return [
        make_failed_result(call, STOPPED_TEXT) for entry in entries for call in entry.tool_calls if call.id not in have
    ]


def _result(run: TurnState, done: OperationResult) -> TurnResult:
    finish = run.finish or TurnEnding("")
    reply, status, error = finish.reply, finish.status, ""
    if done.after is not None:
        reply = str(done.after.get("response_full") or "")
    if done.error is not None:
        status, error = "failed", str(done.error) or type(done.error).__name__
    elif status == "failed" and finish.stop == "failed":
        status = "ok"
    if reply != finish.reply:
        _reword_reply(run, reply)
    return TurnResult(reply, tuple(run.entries), run.usage, status, error, finish.hook_ended, stop=finish.stop)


def _reword_reply(run: TurnState, reply: str) -> None:
    """The transcript says what the person was told."""
    if run.entries and run.entries[-1].role == "assistant" and not run.entries[-1].tool_calls:
        run.entries[-1] = replace(run.entries[-1], content=reply)
    else:
        run.entries.append(Entry("assistant", reply))
