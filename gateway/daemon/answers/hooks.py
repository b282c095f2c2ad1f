"""Answers about hooks: how they fare, what is done with one, and events told again."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from gateway.config.settings import PLUGIN_PREFIX
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.process import Base, Run
from gateway.daemon.groups.turns import Turns
from gateway.daemon.groups.work import Work
from gateway.daemon.hooks import settle_letters
from gateway.daemon.status import list_gateway_webhooks, list_unused_skill_hooks
from gateway.daemon.webhooks import describe_webhook
from gateway.errors import HookError
from gateway.events.catalogue import remove_live_fields
from gateway.hermes.session_list import SESSIONS_FILE
from gateway.hermes.state_follower import STATE_FILE
from gateway.hooks.folders.dead_letters import DeadLetters
from gateway.hooks.folders.folder_hooks import add_memory
from gateway.hooks.folders.stats import CallEvent, HookState, HookStatus
from gateway.hooks.patterns import EventSelector
from gateway.hooks.verbs import (
    FireParams,
    HookListParams,
    HookLogParams,
    LetterParams,
    ListedHooksParams,
    ReplayParams,
    TrialParams,
)
from gateway.records import records
from gateway.records.activity import CALLER, HOOK_PLACE, OWNER
from gateway.roles import is_admin, scope_of
from gateway.threads import run_in_thread
from gateway.verbs import NameParams, Notify
from gateway.web.event_stream import cut_field

LONGEST_LOG = 64 << 10  # bytes

RANKS: Mapping[HookState, int] = MappingProxyType(
    {
        **dict.fromkeys(("broken", "tripped", "refused"), 0),
        **dict.fromkeys(("missing", "waiting", "pending", "without effect"), 1),
        "loaded": 2,
        "disabled": 4,
    }
)
UNRANKED = 3


async def hooks_list(base: Base, run: Run, hooks: Hooks, work: Work, turns: Turns, params: HookListParams) -> Any:
    text, is_whole = params.text.strip().casefold(), is_admin(CALLER.get(OWNER).role)
    known = await hooks.folder_hooks.status()
    known = [one for one in known if has_text(one, text, is_whole=is_whole)] if text else known
    if params.by == "worst":
        known.sort(key=lambda one: (RANKS.get(one.state, UNRANKED), -one.failures, -one.calls))
    end = len(known) if params.limit < 0 else params.first + params.limit
    rows = msgspec.to_builtins(await add_memory(known[params.first : end]))
    webhooks = list_gateway_webhooks(base, run, hooks, turns)
    return {
        "hooks": [{**hook, "webhook": describe_webhook(webhooks, hook["name"])} for hook in rows],
        "unused": list_unused_skill_hooks(base, work),
        "count": len(known),
        "calls": sum(one.calls for one in known),
        "failures": sum(one.failures for one in known),
    }


def has_text(hook: HookStatus, text: str, *, is_whole: bool) -> bool:
    """Does it stand in what is shown to whoever asks? An operator is not shown what a hook says of itself."""
    said = (hook.name, hook.label, *hook.intercepts, *hook.events, *((hook.description,) if is_whole else ()))
    return any(text in one.casefold() for one in said)


async def hooks_info(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    return await _describe(base, run, hooks, turns, params.name)


async def _describe(base: Base, run: Run, hooks: Hooks, turns: Turns, name: str) -> Any:
    status = await hooks.folder_hooks.info(name)
    describe = {STATE_FILE: hooks.state_follower.describe, SESSIONS_FILE: hooks.session_list.describe}
    files = [describe[file]() for file in status.files]
    webhook = describe_webhook(list_gateway_webhooks(base, run, hooks, turns), status.name)
    kept = await hooks.folder_hooks.kept(status.name)
    told = msgspec.to_builtins(msgspec.structs.replace(status, given=()))
    given = [_given_to_json(one) for one in status.given]
    return {**told, "files": files, "webhook": webhook, "kept": kept, "given": given}


def _given_to_json(given: CallEvent) -> dict[str, Any]:
    """What a call was given, cut to what is looked at."""
    fields = remove_live_fields(given.event, given.fields)
    return {
        "at": given.at,
        "event": given.event,
        "fields": {name: cut_field(value) for name, value in fields.items()},
    }


async def hooks_enable(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    await hooks.folder_hooks.switch(params.name, enabled=True)
    return await _describe(base, run, hooks, turns, params.name)


async def hooks_disable(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    await hooks.folder_hooks.switch(params.name, enabled=False)
    return await _describe(base, run, hooks, turns, params.name)


async def hooks_reset(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    await hooks.folder_hooks.reset(params.name)
    return await _describe(base, run, hooks, turns, params.name)


async def hooks_trust(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    await hooks.folder_hooks.trust(params.name)
    return await _describe(base, run, hooks, turns, params.name)


async def hooks_forget(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    await hooks.folder_hooks.forget(params.name)
    try:
        return await _describe(base, run, hooks, turns, params.name)
    except HookError:
        return {"name": params.name, "state": "forgotten", "reason": "nothing is denied for it"}


async def hooks_reload(base: Base, run: Run, hooks: Hooks, work: Work, turns: Turns, params: ListedHooksParams) -> Any:
    """One, which is started anew; or all folders are looked at again."""
    await hooks.folder_hooks.reload(params.name)
    return await (
        _describe(base, run, hooks, turns, params.name)
        if params.name
        else hooks_list(base, run, hooks, work, turns, HookListParams())
    )


async def hooks_test(hooks: Hooks, params: TrialParams) -> Any:
    trials = await hooks.folder_hooks.test(params.name, params.event, params.payload or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def hooks_fire(hooks: Hooks, params: FireParams) -> Any:
    fields = params.payload or {}
    if CALLER.get(OWNER).place == HOOK_PLACE:  # a hook may say what it likes, and nobody is behind it
        fields |= {"role": "guest", "scope": scope_of("guest"), "rights": "guest"}
    return _trial_to_json(await hooks.folder_hooks.fire(params.name, params.event, fields))


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def hooks_logs(base: Base, hooks: Hooks, params: HookLogParams) -> Any:
    """Of a hook that is there; a plugin's log has its kind before its name."""
    name = (await hooks.folder_hooks.info(params.name)).name
    files = [base.home.hook_logs / f"{prefix}{name}.log" for prefix in ("", PLUGIN_PREFIX)]
    lines = await run_in_thread(read_end, files, LONGEST_LOG)
    return {"name": name, "lines": lines[-params.lines :]}


def read_end(files: Sequence[Path], most: int) -> list[str]:
    """The last whole lines of the first of these files that is there, of so many bytes at its end."""
    for path in files:
        with suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            lines = file.read(most).decode("utf-8", "replace").splitlines()
            return lines if file.tell() <= most else lines[1:]
    return []


async def hooks_dead_letters(hooks: Hooks, params: ListedHooksParams) -> Any:
    return {"letters": msgspec.to_builtins(await hooks.folder_hooks.dead_letters.list(params.name))}


async def hooks_dead_retry(hooks: Hooks, params: LetterParams) -> Any:
    return {"count": await settle_letters(DeadLetters.retry, hooks.folder_hooks, params.name, params.id)}


async def hooks_dead_prune(hooks: Hooks, params: LetterParams) -> Any:
    return {"count": await settle_letters(DeadLetters.prune, hooks.folder_hooks, params.name, params.id)}


async def events_replay(base: Base, hooks: Hooks, params: ReplayParams, notify: Notify) -> dict[str, Any]:
    """Tell a hook again of events that the journal keeps, under the ids that they had; each is notified with its trial.

    Kept is what a durable hook was owed, as long as the journal keeps such records.
    """
    hook = await hooks.folder_hooks.info(params.name)
    wanted = EventSelector(params.names or [*hook.intercepts, *hook.events])
    since, until = params.since or 0.0, time.time()
    counts = {"count": 0, "failed": 0}
    async for record, event in records.read_events(base.engine):
        if since <= record.ts <= until and event.name in wanted:
            trial = _trial_to_json(await hooks.folder_hooks.fire(hook.name, event.name, event.fields))
            counts["count"] += 1
            counts["failed"] += not trial["ok"]
            await notify("trial", {"at": record.ts, "id": event.fields.get("id"), **trial})
    return counts
