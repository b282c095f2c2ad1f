"""What the control socket answers about hooks: how they fare, what is done with one, and events told again."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from gateway.config.settings import PLUGIN_PREFIX
from gateway.control.params import NameParams
from gateway.control.server import Notify
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.daemon.hooks import SettleLetter, settle_letters
from gateway.daemon.status import list_gateway_webhooks, list_unused_skill_hooks
from gateway.daemon.webhooks import describe_webhook
from gateway.errors import HookError
from gateway.events.catalogue import remove_live_fields
from gateway.hermes.session_list import SESSIONS_FILE
from gateway.hermes.state_follower import STATE_FILE
from gateway.hooks.folders.dead_letters import DeadLetters
from gateway.hooks.folders.folder_hooks import FolderHooks, add_memory
from gateway.hooks.folders.stats import CallEvent, HookState, HookStatus
from gateway.hooks.patterns import EventSelector
from gateway.records import records
from gateway.records.activity import CALLER, HOOK_PLACE, OWNER
from gateway.roles import is_admin, scope_of
from gateway.threads import run_in_thread
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


class HookListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most so many (-1: all) from the one at `first` on: by name, or those first that somebody should look at.

    `text` stands in their name, the names of what they are told of, or, for who is shown it, in their description.
    """

    limit: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1
    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    by: Literal["name", "worst"] = "name"
    text: str = ""


class ListedHooksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook of this name, or all where none is named."""

    name: str = ""


class HookLogParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last lines of what the hook of this name has printed."""

    name: str
    lines: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


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


async def _list(gateway: Gateway, params: HookListParams) -> Any:
    text, is_whole = params.text.strip().casefold(), is_admin(CALLER.get(OWNER).role)
    known = await gateway.folder_hooks.status()
    known = [one for one in known if has_text(one, text, is_whole=is_whole)] if text else known
    if params.by == "worst":
        known.sort(key=lambda one: (RANKS.get(one.state, UNRANKED), -one.failures, -one.calls))
    end = len(known) if params.limit < 0 else params.first + params.limit
    hooks = msgspec.to_builtins(await add_memory(known[params.first : end]))
    webhooks = gateway.bind(list_gateway_webhooks)()
    return {
        "hooks": [{**hook, "webhook": describe_webhook(webhooks, hook["name"])} for hook in hooks],
        "unused": gateway.bind(list_unused_skill_hooks)(),
        "count": len(known),
        "calls": sum(one.calls for one in known),
        "failures": sum(one.failures for one in known),
    }


def has_text(hook: HookStatus, text: str, *, is_whole: bool) -> bool:
    """Does it stand in what is shown to whoever asks? An operator is not shown what a hook says of itself."""
    said = (hook.name, hook.label, *hook.intercepts, *hook.events, *((hook.description,) if is_whole else ()))
    return any(text in one.casefold() for one in said)


async def _info(gateway: Gateway, params: NameParams) -> Any:
    return await _describe(gateway, params.name)


async def _describe(gateway: Gateway, name: str) -> Any:
    status = await gateway.folder_hooks.info(name)
    describe = {STATE_FILE: gateway.state_follower.describe, SESSIONS_FILE: gateway.session_list.describe}
    files = [describe[file]() for file in status.files]
    webhook = describe_webhook(gateway.bind(list_gateway_webhooks)(), status.name)
    kept = await gateway.folder_hooks.kept(status.name)
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


async def _steer(act: Callable[[FolderHooks, str], Awaitable[Any]], gateway: Gateway, params: NameParams) -> Any:
    await act(gateway.folder_hooks, params.name)
    return await _describe(gateway, params.name)


async def _forget(gateway: Gateway, params: NameParams) -> Any:
    await gateway.folder_hooks.forget(params.name)
    try:
        return await _describe(gateway, params.name)
    except HookError:
        return {"name": params.name, "state": "forgotten", "reason": "nothing is denied for it"}


async def _reload(gateway: Gateway, params: ListedHooksParams) -> Any:
    """One, which is started anew; or all folders are looked at again."""
    await gateway.folder_hooks.reload(params.name)
    return await (_describe(gateway, params.name) if params.name else _list(gateway, HookListParams()))


async def _test(gateway: Gateway, params: TrialParams) -> Any:
    trials = await gateway.folder_hooks.test(params.name, params.event, params.payload or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def _fire(gateway: Gateway, params: FireParams) -> Any:
    fields = params.payload or {}
    if CALLER.get(OWNER).place == HOOK_PLACE:  # a hook may say what it likes, and nobody is behind it
        fields |= {"role": "guest", "scope": scope_of("guest"), "rights": "guest"}
    return _trial_to_json(await gateway.folder_hooks.fire(params.name, params.event, fields))


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def _read_log(gateway: Gateway, params: HookLogParams) -> Any:
    """Of a hook that is there; a plugin's log has its kind before its name."""
    name = (await gateway.folder_hooks.info(params.name)).name
    files = [gateway.home.hook_logs / f"{prefix}{name}.log" for prefix in ("", PLUGIN_PREFIX)]
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


async def _list_letters(gateway: Gateway, params: ListedHooksParams) -> Any:
    return {"letters": msgspec.to_builtins(await gateway.folder_hooks.dead_letters.list(params.name))}


async def _settle(act: SettleLetter, gateway: Gateway, params: LetterParams) -> Any:
    return {"count": await settle_letters(act, gateway.folder_hooks, params.name, params.id)}


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
    "hooks.list": GatewayVerb(HookListParams, _list),
    "hooks.info": GatewayVerb(NameParams, _info),
    "hooks.logs": GatewayVerb(HookLogParams, _read_log),
    "hooks.enable": GatewayVerb(NameParams, partial(_steer, partial(FolderHooks.switch, enabled=True))),
    "hooks.disable": GatewayVerb(NameParams, partial(_steer, partial(FolderHooks.switch, enabled=False))),
    "hooks.reload": GatewayVerb(ListedHooksParams, _reload),
    "hooks.reset": GatewayVerb(NameParams, partial(_steer, FolderHooks.reset)),
    "hooks.trust": GatewayVerb(NameParams, partial(_steer, FolderHooks.trust)),
    "hooks.forget": GatewayVerb(NameParams, _forget),
    "hooks.test": GatewayVerb(TrialParams, _test),
    "hooks.fire": GatewayVerb(FireParams, _fire),
    "hooks.dead_letters": GatewayVerb(ListedHooksParams, _list_letters),
    "hooks.dead_retry": GatewayVerb(LetterParams, partial(_settle, DeadLetters.retry)),
    "hooks.dead_prune": GatewayVerb(LetterParams, partial(_settle, DeadLetters.prune)),
}
