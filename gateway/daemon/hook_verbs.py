"""What the control socket answers about hooks: how they fare, what is done with one, and events told again."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from gateway import records
from gateway.control_socket.params import NoParams
from gateway.control_socket.server import Notify
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.errors import HookError
from gateway.hermes.session_list import SESSIONS_FILE
from gateway.hermes.state_follower import STATE_FILE
from gateway.hooks.folders.dead_letters import DeadLetters
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.patterns import EventSelector


class HookParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook of this name."""

    name: str


class ListedHooksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook of this name, or all where none is named."""

    name: str = ""


class TrialParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, tried with this event or with all that it subscribes to; with these fields or with samples."""

    name: str
    event: str = ""
    payload: dict[str, Any] | None = None


class FireParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, told of this event; with these fields or with samples."""

    name: str
    event: str
    payload: dict[str, Any] | None = None


class LetterParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The dead letter of a hook that has this number, or all of them."""

    name: str
    id: int | None = None


class ReplayParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, told again of events of these names (all that it subscribes to), since a time."""

    name: str
    names: tuple[str, ...] | None = None
    since: float | None = None


async def _list(gateway: Gateway, _params: NoParams) -> Any:
    return {"hooks": msgspec.to_builtins(await gateway.folder_hooks.status())}


async def _info(gateway: Gateway, params: HookParams) -> Any:
    return await _describe(gateway, params.name)


async def _describe(gateway: Gateway, name: str) -> Any:
    status = await gateway.folder_hooks.info(name)
    describe = {STATE_FILE: gateway.state_follower.describe, SESSIONS_FILE: gateway.session_list.describe}
    files = [describe[file]() for file in status.files]
    return {**msgspec.to_builtins(status), "files": files, "kept": await gateway.folder_hooks.kept(status.name)}


async def _steer(act: Callable[[FolderHooks, str], Awaitable[Any]], gateway: Gateway, params: HookParams) -> Any:
    await act(gateway.folder_hooks, params.name)
    return await _describe(gateway, params.name)


async def _reload(gateway: Gateway, params: ListedHooksParams) -> Any:
    """One, which is started anew; or all folders are looked at again."""
    await gateway.folder_hooks.reload(params.name)
    return await (_describe(gateway, params.name) if params.name else _list(gateway, NoParams()))


async def _test(gateway: Gateway, params: TrialParams) -> Any:
    trials = await gateway.folder_hooks.test(params.name, params.event, params.payload or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def _fire(gateway: Gateway, params: FireParams) -> Any:
    return _trial_to_json(await gateway.folder_hooks.fire(params.name, params.event, params.payload or None))


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def _list_letters(gateway: Gateway, params: ListedHooksParams) -> Any:
    return {"letters": msgspec.to_builtins(await gateway.folder_hooks.dead_letters.list(params.name))}


async def _settle(act: Callable[[DeadLetters, int], Awaitable[None]], gateway: Gateway, params: LetterParams) -> Any:
    """The letter that is meant, or all of this hook; those of a hook that is gone can be thrown away."""
    name, wanted, letters = params.name, params.id, gateway.folder_hooks.dead_letters
    there = await letters.list(name)
    if act is DeadLetters.retry or not there:
        await gateway.folder_hooks.info(name)
    numbers = [letter.number for letter in there if wanted in (None, letter.number)]
    if wanted is not None and not numbers:
        raise HookError(f"{name} has no dead letter {wanted}\nhermes-gateway hooks dead-letters list {name}")
    for number in numbers:
        await act(letters, number)
    return {"count": len(numbers)}


async def replay_events(gateway: Gateway, params: ReplayParams, notify: Notify) -> dict[str, Any]:
    """Tell a hook again of events that the journal keeps, under the ids that they had; each is notified with its trial.

    Kept is what a durable hook was owed, as long as the journal keeps such records.
    """
    hook = await gateway.folder_hooks.info(params.name)
    wanted = EventSelector(params.names or [*hook.intercepts, *hook.events])
    since, until = params.since or 0.0, time.time()
    counts = {"count": 0, "failed": 0}
    async for record, event in records.read_events(gateway.engine):
        if since <= record.ts <= until and event.name in wanted:
            trial = _trial_to_json(await gateway.folder_hooks.fire(hook.name, event.name, event.fields))
            counts["count"] += 1
            counts["failed"] += not trial["ok"]
            await notify("trial", {"at": record.ts, "id": event.fields.get("id"), **trial})
    return counts


HOOK_VERBS: Mapping[str, GatewayVerb[Any]] = {
    "hooks.list": GatewayVerb(NoParams, _list),
    "hooks.info": GatewayVerb(HookParams, _info),
    "hooks.enable": GatewayVerb(HookParams, partial(_steer, partial(FolderHooks.switch, enabled=True))),
    "hooks.disable": GatewayVerb(HookParams, partial(_steer, partial(FolderHooks.switch, enabled=False))),
    "hooks.reload": GatewayVerb(ListedHooksParams, _reload),
    "hooks.reset": GatewayVerb(HookParams, partial(_steer, FolderHooks.reset)),
    "hooks.trust": GatewayVerb(HookParams, partial(_steer, FolderHooks.trust)),
    "hooks.test": GatewayVerb(TrialParams, _test),
    "hooks.fire": GatewayVerb(FireParams, _fire),
    "hooks.dead_letters": GatewayVerb(ListedHooksParams, _list_letters),
    "hooks.dead_retry": GatewayVerb(LetterParams, partial(_settle, DeadLetters.retry)),
    "hooks.dead_prune": GatewayVerb(LetterParams, partial(_settle, DeadLetters.prune)),
}
