"""Answers about hooks: trials, logs, dead letters, and past events that are sent again."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gateway.config.home import Home
from gateway.config.settings import PLUGIN_PREFIX
from gateway.engine.interface import Engine
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.patterns import EventSelector
from gateway.hooks.verbs import FireParams, HookLogParams, LetterParams, ListedHooksParams, ReplayParams, TrialParams
from gateway.messages.roles import scope_of
from gateway.records import records
from gateway.records.activity import CALLER, HOOK_PLACE, OWNER
from gateway.threads import run_in_thread
from gateway.verbs import Notify

LONGEST_LOG = 64 << 10  # bytes


async def hooks_test(folder_hooks: FolderHooks, params: TrialParams) -> Any:
    trials = await folder_hooks.test(params.name, params.event, params.payload or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def hooks_fire(folder_hooks: FolderHooks, params: FireParams) -> Any:
    fields = params.payload or {}
    if CALLER.get(OWNER).place == HOOK_PLACE:  # a hook's request has no person behind it
        fields |= {"role": "guest", "scope": scope_of("guest"), "rights": "guest"}
    return _trial_to_json(await folder_hooks.fire(params.name, params.event, fields))


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def hooks_logs(home: Home, folder_hooks: FolderHooks, params: HookLogParams) -> Any:
    """Read the log of a hook that exists; the file name of a plugin's log begins with `plugin:`."""
    name = (await folder_hooks.info(params.name)).name
    files = [home.hook_logs / f"{prefix}{name}.log" for prefix in ("", PLUGIN_PREFIX)]
    lines = await run_in_thread(read_end, files, LONGEST_LOG)
    return {"name": name, "lines": lines[-params.lines :]}


def read_end(files: Sequence[Path], most: int) -> list[str]:
    """Read the last whole lines of the first file that exists, from at most `most` bytes at its end."""
    for path in files:
        with suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            lines = file.read(most).decode("utf-8", "replace").splitlines()
            return lines if file.tell() <= most else lines[1:]
    return []


async def hooks_dead_letters(folder_hooks: FolderHooks, params: ListedHooksParams) -> Any:
    return {"letters": msgspec.to_builtins(await folder_hooks.dead_letters.list(params.name))}


async def hooks_dead_retry(folder_hooks: FolderHooks, params: LetterParams) -> Any:
    return {"count": await folder_hooks.dead_letters.retry_all(params.name, params.id)}


async def hooks_dead_prune(folder_hooks: FolderHooks, params: LetterParams) -> Any:
    return {"count": await folder_hooks.dead_letters.prune_all(params.name, params.id)}


async def events_replay(
    engine: Engine, folder_hooks: FolderHooks, params: ReplayParams, notify: Notify
) -> dict[str, Any]:
    """Send a hook the events that the journal keeps, with their old ids, and notify the caller of each trial.

    The journal keeps the events that were stored for durable hooks, as long as its retention says.
    """
    hook = await folder_hooks.info(params.name)
    wanted = EventSelector(params.names or [*hook.intercepts, *hook.events])
    since, until = params.since or 0.0, time.time()
    counts = {"count": 0, "failed": 0}
    async for record, event in records.read_events(engine):
        if since <= record.ts <= until and event.name in wanted:
            trial = _trial_to_json(await folder_hooks.fire(hook.name, event.name, event.fields))
            counts["count"] += 1
            counts["failed"] += not trial["ok"]
            await notify("trial", {"at": record.ts, "id": event.fields.get("id"), **trial})
    return counts
