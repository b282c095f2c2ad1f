"""What the control socket answers about hooks: how they fare, what is done with one, and events told again."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from gateway import records
from gateway.control_socket.server import Notify
from gateway.daemon.gateway import AnswerVerb, Gateway
from gateway.errors import HookError
from gateway.hermes.session_list import SESSIONS_FILE
from gateway.hermes.state_follower import STATE_FILE
from gateway.hooks.folders.dead_letters import DeadLetters
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.patterns import EventSelector


async def _list(gateway: Gateway, _params: dict[str, Any]) -> Any:
    return {"hooks": msgspec.to_builtins(await gateway.folder_hooks.status())}


async def _info(gateway: Gateway, params: dict[str, Any]) -> Any:
    status = await gateway.folder_hooks.info(params["name"])
    describe = {STATE_FILE: gateway.state_follower.describe, SESSIONS_FILE: gateway.session_list.describe}
    files = [describe[name]() for name in status.files]
    return {**msgspec.to_builtins(status), "files": files, "kept": await gateway.folder_hooks.kept(status.name)}


async def _steer(act: Callable[[FolderHooks, str], Awaitable[Any]], gateway: Gateway, params: dict[str, Any]) -> Any:
    await act(gateway.folder_hooks, params["name"])
    return await _info(gateway, params)


async def _reload(gateway: Gateway, params: dict[str, Any]) -> Any:
    """One, which is started anew; or all folders are looked at again."""
    await gateway.folder_hooks.reload(params.get("name", ""))
    return await (_info if params.get("name") else _list)(gateway, params)


async def _test(gateway: Gateway, params: dict[str, Any]) -> Any:
    trials = await gateway.folder_hooks.test(params["name"], params.get("event", ""), params.get("payload") or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def _fire(gateway: Gateway, params: dict[str, Any]) -> Any:
    trial = await gateway.folder_hooks.fire(params["name"], params["event"], params.get("payload") or None)
    return _trial_to_json(trial)


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def _list_letters(gateway: Gateway, params: dict[str, Any]) -> Any:
    return {"letters": msgspec.to_builtins(await gateway.folder_hooks.dead_letters.list(params.get("name", "")))}


async def _settle(act: Callable[[DeadLetters, int], Awaitable[None]], gateway: Gateway, params: dict[str, Any]) -> Any:
    """The letter that is meant, or all of this hook; those of a hook that is gone can be thrown away."""
    name, wanted, letters = params["name"], params.get("id"), gateway.folder_hooks.dead_letters
    there = await letters.list(name)
    if act is DeadLetters.retry or not there:
        await gateway.folder_hooks.info(name)
    numbers = [letter.number for letter in there if wanted in (None, letter.number)]
    if wanted is not None and not numbers:
        raise HookError(f"{name} has no dead letter {wanted}\nhermes-gateway hooks dead-letters list {name}")
    for number in numbers:
        await act(letters, number)
    return {"count": len(numbers)}


async def replay_events(gateway: Gateway, params: dict[str, Any], notify: Notify) -> dict[str, Any]:
    """Tell a hook again of events that the journal keeps, under the ids that they had; each is notified with its trial.

    Kept is what a durable hook was owed, as long as the journal keeps such records.
    """
    hook = await gateway.folder_hooks.info(params["name"])
    wanted = EventSelector(params.get("names") or [*hook.intercepts, *hook.events])
    since, until = params.get("since") or 0.0, time.time()
    counts = {"count": 0, "failed": 0}
    async for record, event in records.read_all(gateway.engine, records.EVENT_SUBJECTS, records.EmittedEvent):
        if since <= record.ts <= until and event.name in wanted:
            trial = _trial_to_json(await gateway.folder_hooks.fire(hook.name, event.name, event.fields))
            counts["count"] += 1
            counts["failed"] += not trial["ok"]
            await notify("trial", {"at": record.ts, "id": event.fields.get("id"), **trial})
    return counts


HOOK_VERBS: Mapping[str, AnswerVerb] = {
    "hooks.list": _list,
    "hooks.info": _info,
    "hooks.enable": partial(_steer, partial(FolderHooks.switch, enabled=True)),
    "hooks.disable": partial(_steer, partial(FolderHooks.switch, enabled=False)),
    "hooks.reload": _reload,
    "hooks.reset": partial(_steer, FolderHooks.reset),
    "hooks.trust": partial(_steer, FolderHooks.trust),
    "hooks.test": _test,
    "hooks.fire": _fire,
    "hooks.dead_letters": _list_letters,
    "hooks.dead_retry": partial(_settle, DeadLetters.retry),
    "hooks.dead_prune": partial(_settle, DeadLetters.prune),
}
