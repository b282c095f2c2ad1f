"""All that is known of a hook, in one value."""

from collections.abc import Sequence

from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.stats import HookState, HookStatus
from gateway.hooks.wires.process_handle import read_memory
from gateway.hooks.wires.program import LastingProgram
from gateway.hooks.wires.worker_handle import WorkerHandle


def build_status(hook: FolderHook, owed: int = 0, dead: int = 0, namesakes: Sequence[str] = ()) -> HookStatus:
    """`owed`: how many events the journal still holds for it; `dead`: how many it could not be told of."""
    latest, current, record, breaker = hook.latest, hook.current, hook.calls.record, hook.calls.breaker
    assert latest
    manifest = (current and current.manifest) or latest.manifest or Manifest(folder=hook.name, name=hook.name)
    pid, memory, hangs = _process_facts(hook)
    return HookStatus(
        name=hook.name,
        label=manifest.name,
        description=manifest.description,
        version=manifest.version,
        origin=latest.source.origin,
        path=str(latest.path),
        state=_state(hook),
        reason=_reason(hook),
        wire=manifest.wire,
        events=manifest.events,
        intercepts=manifest.intercepts,
        order=manifest.order,
        on_error=manifest.on_error,
        delivery=manifest.delivery,
        schedule=manifest.schedule,
        hermes=manifest.hermes,
        found=manifest.found,
        findings=(*map(str, latest.findings), *hook.remarks(), *_namesake_warnings(hook, namesakes)),
        offers=_list_offers(hook),
        digest=current.digest if current else "",
        loaded_at=hook.process.loaded_at,
        restarts=hook.process.restarts,
        last_fired=record.last_fired,
        calls=record.calls,
        failures=record.failures,
        skipped=record.skipped,
        queued=hook.subscription.queued,
        owed=owed,
        dropped=hook.subscription.dropped,
        dead=dead,
        p50=record.percentile(50),
        p95=record.percentile(95),
        breaker=breaker.state,
        breaker_opens_in=round(breaker.remaining, 1),
        last_error=record.last_error,
        traces=tuple(record.traces),
        pid=pid,
        memory=memory,
        hangs=hangs,
    )


def _namesake_warnings(hook: FolderHook, namesakes: Sequence[str]) -> list[str]:
    said = f"warning: {', '.join(namesakes)} is also called {hook.label!r}; all run, give each its own `name`"
    return [f"{hook.name}/HOOK.yaml: {said}"] if namesakes else []


def _list_offers(hook: FolderHook) -> tuple[str, ...]:
    targets = hook.process.targets
    if targets is None:
        return ()
    offers = targets.offers
    return (
        *(f"/{one.name}" for one in offers.commands),
        *(f"tool {one.name}" for one in offers.tools),
        *(f"skill {hook.name}:{one.name}" for one in offers.skills),
    )


def _state(hook: FolderHook) -> HookState:
    state = hook.process.state
    tripped = hook.calls.breaker.state != "closed" and state in ("loaded", "registered", "waiting", "starting")
    return "tripped" if tripped else state


def _reason(hook: FolderHook) -> str:
    breaker, error = hook.calls.breaker, hook.calls.record.last_error
    if error is None or _state(hook) != "tripped":
        return hook.process.reason
    again = f"is tried again in {breaker.remaining:.0f} s" if breaker.remaining else "is tried again at its next event"
    return f"failed {breaker.failures} times in a row and {again}; the last time: {error.message}"


def _process_facts(hook: FolderHook) -> tuple[int, int, str]:
    """The process it runs in, its memory in bytes, and where it last hung."""
    wire = hook.process.wire
    if isinstance(wire, WorkerHandle):
        facts = wire.facts()
        return facts.pid, facts.memory.private if facts.memory else 0, facts.hangs
    if isinstance(wire, LastingProgram):
        memory = read_memory(wire.pid)
        return wire.pid, memory.private if memory else 0, ""
    return 0, 0, ""
