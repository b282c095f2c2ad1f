"""A hook tried with one event on purpose: in a process made for that (`hooks test`), or as it runs (`hooks fire`)."""

import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.events import OUTCOMES, Bags, Event, Pause, outcome_from, outcome_to_dict
from gateway.events.catalogue import get_event_spec, list_matching_events, make_sample
from gateway.hooks.folders.handlers import HandlerTargets, ask_handlers, notify_handlers
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.sources import HookVersion
from gateway.hooks.patterns import EventSelector
from gateway.hooks.wires.wire import HookFailed, Wire

OUTPUT_DELAY = 0.03  # seconds that what a hook printed takes to its log
TRIAL_STOP_TIMEOUT = 1.0
READ_ONLY_VERBS = frozenset({"facts", "store.get", "store.keys"})  # what only looks is done in a trial too


class HookTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one event. `asked`: what the hook wanted of the gateway, which did nothing of it."""

    event: str
    verb: str  # intercept or observe
    seconds: float = 0.0
    result: Any = None
    changed: dict[str, Any] = {}
    error: str = ""
    traceback: str = ""
    output: str = ""
    asked: tuple[dict[str, Any], ...] = ()


def make_event(name: str, fields: Mapping[str, Any] | None) -> Event:
    """Such an event: a sample, with these fields over it. Questions are asked, and stay unanswered."""
    known = get_event_spec(name)
    given = {**make_sample(name), "id": "sample", "time": time.time(), "cause": None, **(fields or {})}
    return Event(name, given, known.writable if known else None, Bags(answers={}))


def make_answer(verb: str, params: Mapping[str, Any]) -> Any:
    """As if it had been done; what the agent would have answered nobody knows."""
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
    """One trial for each event that it subscribes to, or for this one. HookError when the hook does not start."""
    manifest = version.manifest
    assert manifest
    asked: list[dict[str, Any]] = []

    async def serve(verb: str, params: dict[str, Any], during: str) -> Any:  # noqa: ARG001 - nothing is done in a trial
        asked.append({"verb": verb, **params})
        return (
            await services.serve_request(version.name, verb, params, "")
            if verb in READ_ONLY_VERBS
            else make_answer(verb, params)
        )

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "trial.log"
        wire = await version.source.open_wire(version, services, serve, log)
        try:
            names = [name] if name else list_matching_events(manifest.subscriptions)
            return [
                await _run_trial(wire, version, make_event(each, fields), log, asked, services.redact) for each in names
            ]
        finally:
            await wire.stop(TRIAL_STOP_TIMEOUT)


async def _run_trial(
    wire: Wire,
    version: HookVersion,
    event: Event,
    log: Path,
    asked: list[dict[str, Any]],
    redact: Callable[[str], str],
) -> HookTrial:
    manifest = version.manifest
    assert manifest
    targets, verb, printed = HandlerTargets(wire).of(event.name), verb_of(manifest, event.name), len(_read_log(log))

    async def call() -> Any:
        if verb == "observe":
            return await notify_handlers(wire, targets, event.name, event, manifest.observe_timeout)
        answer = await ask_handlers(wire, targets, event, manifest.decide_timeout)
        answer = version.source.read_answer(manifest, answer)
        outcome_from(answer)  # what means nothing is an error
        return answer

    asked.clear()
    trial = await try_call(verb, event, call, redact)
    await anyio.sleep(OUTPUT_DELAY)
    output = _read_log(log)[printed:].decode("utf-8", "replace")
    return msgspec.structs.replace(trial, output=output, asked=tuple(asked))


async def try_call(
    verb: str, event: Event, call: Callable[[], Awaitable[Any]], redact: Callable[[str], str]
) -> HookTrial:
    """What comes of this event when `call` gives it to the hook."""
    before, begun = dict(event), time.perf_counter()
    result, error, traceback = None, "", ""
    try:
        result = await call()
    except Pause as pause:
        result = pause
    except HookFailed as failed:
        error, traceback = str(failed), failed.traceback
    except (TypeError, ValueError) as wrong:
        error = str(wrong)
    return HookTrial(
        event=event.name,
        verb=verb,
        seconds=time.perf_counter() - begun,
        result=outcome_to_dict(result) if isinstance(result, (*OUTCOMES, Pause)) else result,
        changed={field: value for field, value in event.items() if before.get(field, ...) != value},
        error=redact(error),
        traceback=redact(traceback),
    )


def _read_log(log: Path) -> bytes:
    return log.read_bytes() if log.exists() else b""
