"""Trials of a hook with one event: in a separate process (`hooks test`), or in its usual process (`hooks fire`).

The trial judges an answer as the running gateway does; parts that would have no effect are among the remarks.
"""

import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.events import Bags, Event, Pause, outcome_to_dict
from gateway.events.catalogue import get_event_spec, list_matching_events, make_sample, suggest_event
from gateway.hooks.filters import compile_filter
from gateway.hooks.folders.handlers import (
    HandlerTargets,
    add_registrations,
    ask_version,
    describe_unused_mark,
    notify_handlers,
)
from gateway.hooks.hook import Hook, HookTraits, Remark
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.outcome_collector import OutcomeCollector
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.services import HookServices, check_request
from gateway.hooks.wires.event_calls import CallTerms
from gateway.hooks.wires.wire import HookFailed, Wire

OUTPUT_DELAY = 0.03  # seconds until a hook's output is in its log
TRIAL_STOP_TIMEOUT = 1.0
READ_ONLY_VERBS = frozenset({"facts", "store.get", "store.keys"})  # a trial carries out requests that only read


class HookTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one event.

    `asked`: the requests of the hook; only requests that read were carried out.
    """

    event: str
    verb: str  # intercept or observe
    seconds: float = 0.0
    result: Any = None
    changed: dict[str, Any] = {}
    error: str = ""
    traceback: str = ""
    output: str = ""
    remarks: tuple[str, ...] = ()  # about parts of the answer without effect, and events that the hook would not get
    asked: tuple[dict[str, Any], ...] = ()


def make_event(name: str, fields: Mapping[str, Any] | None, answers: Mapping[str, Any] | None = None) -> Event:
    """Make a sample of this event, with `fields` in place of its values; questions without an answer stay open."""
    known = get_event_spec(name)
    given = {**make_sample(name), "id": "sample", "time": time.time(), "cause": None, **(fields or {})}
    return Event(name, given, known.writable if known else None, Bags(answers=dict(answers or {})))


def make_answer(verb: str, params: Mapping[str, Any]) -> Any:
    """Make the answer to a request as if the gateway had fulfilled it; the agent's reply to a task is empty."""
    match verb:
        case "submit" if params.get("wait"):
            return {"reply": "", "status": "ok", "turn_id": "", "error": "", "session_key": ""}
        case "send":
            return {"seq": 0, "id": "", "platform": "", "chat_id": str(params.get("to", ""))}
    return None


def verb_of(manifest: Manifest, name: str) -> str:
    return "intercept" if name in EventSelector(manifest.intercepts) else "observe"


async def run_trials(
    version: HookVersion, services: HookServices, name: str = "", fields: Mapping[str, Any] | None = None
) -> Sequence[HookTrial]:
    """Run one trial for each subscribed event, or for the event `name`. Raises HookError if the hook does not start."""
    manifest = version.manifest
    assert manifest
    asked: list[dict[str, Any]] = []

    async def serve(verb: str, params: dict[str, Any], during: str) -> Any:  # noqa: ARG001 - nothing is done in a trial
        check_request(manifest, verb, params)
        asked.append({"verb": verb, **params})
        if verb in READ_ONLY_VERBS:
            return await services.serve_request(version.store_name, verb, params, "")
        return make_answer(verb, params)

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "trial.log"
        wire = await version.source.open_wire(version, services, serve, log)
        version = add_registrations(version, wire)
        try:
            names = [name] if name else list_matching_events((version.manifest or manifest).subscriptions)
            fitting = {**fit_fields(manifest), **(fields or {})}
            trials = [
                await _run_trial(wire, version, make_event(each, fitting), log, asked, services.redact)
                for each in names
            ]
            told = tuple(f"{one.place}: {one.what}; {one.remedy}" for one in version.findings)
            return [msgspec.structs.replace(one, remarks=(*told, *one.remarks)) for one in trials[:1]] + trials[1:]
        finally:
            await wire.stop(TRIAL_STOP_TIMEOUT)


async def _run_trial(
    wire: Wire, version: HookVersion, event: Event, log: Path, asked: list[dict[str, Any]], redact: Callable[[str], str]
) -> HookTrial:
    printed = len(_read_log(log))
    asked.clear()
    trial = await try_event(version, wire, event, redact)
    await anyio.sleep(OUTPUT_DELAY)
    output = _read_log(log)[printed:].decode("utf-8", "replace")
    return msgspec.structs.replace(trial, output=output, asked=tuple(asked))


async def try_event(version: HookVersion, wire: Wire, event: Event, redact: Callable[[str], str] = str) -> HookTrial:
    """Send this event to the hook at the other end of the wire, and return the result."""
    manifest, handlers = version.manifest, HandlerTargets(wire, is_plugin=version.dialect.starts_early)
    assert manifest
    limit, targets = manifest.observe_timeout, handlers.of(event.name)

    async def call(remark: Remark) -> Any:
        if verb_of(manifest, event.name) == "observe":
            return await notify_handlers(wire, targets, event, CallTerms(limit, remark))
        return await ask_version(version, wire, targets, event, remark)

    trial = await try_call(version, event, call, redact)
    if version.dialect.starts_early:
        return trial
    unnamed = tuple(describe_unused_mark(name) for name in handlers.find_unused(manifest))
    return msgspec.structs.replace(trial, remarks=(*trial.remarks, *unnamed))


async def try_call(
    version: HookVersion, event: Event, call: Callable[[Remark], Awaitable[Any]], redact: Callable[[str], str]
) -> HookTrial:
    """Send this event to the hook by `call`, and return the result."""
    manifest = version.manifest
    assert manifest
    remarks: list[str] = list(_list_obstacles(version, manifest, event))
    before, begun = dict(event), time.perf_counter()
    result, error, traceback = None, "", ""
    try:
        result = await call(remarks.append)
        _judge_answer(event, result, remarks.append)
    except Pause as pause:
        result = pause
    except HookFailed as failed:
        error, traceback = str(failed), failed.traceback
    except (TypeError, ValueError) as wrong:
        error = str(wrong)
    return HookTrial(
        event=event.name,
        verb=verb_of(manifest, event.name),
        remarks=tuple(map(redact, remarks)),
        seconds=time.perf_counter() - begun,
        result=outcome_to_dict(result),
        changed={field: value for field, value in event.items() if before.get(field, ...) != value},
        error=redact(error),
        traceback=redact(traceback),
    )


def _list_obstacles(version: HookVersion, manifest: Manifest, event: Event) -> Iterator[str]:
    """Yield the reasons why the gateway would not send this event to the hook."""
    if event.name not in EventSelector(manifest.subscriptions):
        near = suggest_event(event.name)
        meant = f"; did you mean {near}?" if near else ""
        yield f"does not subscribe to {event.name}, so the gateway never tells it of one{meant}"
    applies = compile_filter(manifest.when)
    if applies and not applies(event):
        yield f"is not told of this {event.name}: its `when` wants {json.dumps(manifest.when, default=str)}"
    elif not version.dialect.wants(manifest, event):
        yield f"is not told of this {event.name}, which those that it was written for do not know"


def _judge_answer(event: Event, answer: Any, remark: Remark) -> None:
    """Judge the answer as the registry does; remarks go to `remark`."""
    hook, known = Hook(_judge_answer, (event.name,)), get_event_spec(event.name)
    hook.traits = HookTraits(note=remark)
    OutcomeCollector(event, known.outcomes if known else None).take(hook, answer)


def fit_fields(manifest: Manifest) -> dict[str, Any]:
    """Return field values that satisfy the hook's `when`."""
    return {
        field: wanted[0] if isinstance(wanted, list) else wanted
        for field, wanted in manifest.when.items()
        if field != "scope" and wanted != []
    }


def _read_log(log: Path) -> bytes:
    return log.read_bytes() if log.exists() else b""
