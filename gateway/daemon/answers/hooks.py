"""Answers about hooks: their state, and switches of one hook."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.process import Base, Run
from gateway.daemon.groups.turns import Turns
from gateway.daemon.groups.work import Work
from gateway.daemon.status import list_gateway_webhooks, list_unused_skill_hooks
from gateway.daemon.webhooks import describe_webhook
from gateway.errors import HookError
from gateway.events.catalogue import remove_live_fields
from gateway.hooks.folders.folder_hooks import add_memory
from gateway.hooks.places.hook_files import KEPT_FILES
from gateway.hooks.stats import CallEvent, HookState, HookStatus
from gateway.hooks.verbs import (
    HookListParams,
    ListedHooksParams,
)
from gateway.messages.roles import is_admin
from gateway.records.activity import CALLER, OWNER
from gateway.verbs import NameParams
from gateway.web.event_stream import cut_field

RANKS: Mapping[HookState, int] = {
    **dict.fromkeys(("broken", "tripped", "refused"), 0),
    **dict.fromkeys(("missing", "waiting", "pending", "without effect"), 1),
    "loaded": 2,
    "disabled": 4,
}
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
    """Return True if the text is in what the caller sees of a hook; an operator does not see its description."""
    said = (hook.name, hook.label, *hook.intercepts, *hook.events, *((hook.description,) if is_whole else ()))
    return any(text in one.casefold() for one in said)


async def hooks_info(base: Base, run: Run, hooks: Hooks, turns: Turns, params: NameParams) -> Any:
    return await _describe(base, run, hooks, turns, params.name)


async def _describe(base: Base, run: Run, hooks: Hooks, turns: Turns, name: str) -> Any:
    status = await hooks.folder_hooks.info(name)
    describe = dict(zip(KEPT_FILES, (hooks.state_follower.describe, hooks.session_list.describe), strict=True))
    files = [describe[file]() for file in status.files]
    webhook = describe_webhook(list_gateway_webhooks(base, run, hooks, turns), status.name)
    kept = await hooks.folder_hooks.kept(status.name)
    told = msgspec.to_builtins(msgspec.structs.replace(status, given=()))
    given = [_given_to_json(one) for one in status.given]
    return {**told, "files": files, "webhook": webhook, "kept": kept, "given": given}


def _given_to_json(given: CallEvent) -> dict[str, Any]:
    """Return the event and fields of a call, cut to a size that people can read."""
    fields = remove_live_fields(given.event, given.fields)
    return {"at": given.at, "event": given.event, "fields": {name: cut_field(value) for name, value in fields.items()}}


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
    """Restart one hook, or check all folders of hooks again."""
    await hooks.folder_hooks.reload(params.name)
    if params.name:
        return await _describe(base, run, hooks, turns, params.name)
    return await hooks_list(base, run, hooks, work, turns, HookListParams())
