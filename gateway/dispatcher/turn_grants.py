"""The rights that the owner gives the turns of a built-in hook: `hooks.boot-md.options` in config.yaml.

No person waits to answer a question of such a turn. So the owner names beforehand the chats that it may write to
(`may`) and the places that it may read (`read`). A chat by its name is bound to the id that was found first: the
gateway keeps the id, and the name gives no right to another chat later.
"""

import json
import logging
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from gateway.agent.ports import TurnResult
from gateway.agent.toolbox.chat import GRANTED, SEND_MESSAGE
from gateway.agent.toolbox.file_reach import READABLE
from gateway.agent.toolbox.workspace import OUTSIDE
from gateway.dispatcher.context import ChatPlaces, DispatcherContext
from gateway.engine.interface import Engine
from gateway.errors import AdapterError
from gateway.hooks.manifests.reach import TurnGrants
from gateway.messages.message import Address
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.records.stores import make_value_put

log = logging.getLogger(__name__)

KEY = "chats"  # of the hook's store: the ids that names meant at first
REMEDY = "Add to config.yaml: "


async def make_grant_facts(context: DispatcherContext, hook: str, grants: TurnGrants) -> dict[str, Any]:
    """Return the facts of a turn that give it what the owner has granted."""
    allowed = await bind_chats(context, hook, grants.may)
    return {READABLE: grants.read, GRANTED: partial(can_write, context.places, allowed)}


async def bind_chats(context: DispatcherContext, hook: str, may: Sequence[str]) -> frozenset[Address]:
    """Return the chats that a turn of this hook may write to without a question."""
    names = context.places.chat_names.names
    for name in filter(context.places.is_name, may):
        await names.wait_for_list(context.places.find_bot(name))
    known = await _read_bound(context.engine, hook)
    found = dict[str, str]()
    allowed = set[Address]()
    for name in may:
        try:
            address = context.places.resolve_destination(name)
        except AdapterError as error:
            log.warning("hooks.%s.options.may: %s", hook, str(error).replace("\n", "; "))
            continue
        if not context.places.is_name(name):
            allowed.add(address)
            continue
        shown = context.places.chat_names.show(address)
        bound = found[name] = known.get(name, shown)
        if context.places.resolve_destination(bound) == address:
            allowed.add(address)
        else:
            log.warning("hooks.%s.options.may: %s was %s, and is %s now: write its id", hook, name, bound, shown)
    if found.items() - known.items():
        (seq,) = await context.engine.append(put := make_value_put(hook, KEY, known | found))
        await context.engine.purge(put.subject, seq - 1)
    return frozenset(allowed)


async def _read_bound(engine: Engine, hook: str) -> dict[str, str]:
    _, kept = await records.read_last(engine, subjects.hook_store_subject_of(hook, KEY), records.StoredValue)
    return dict(kept.value) if kept else {}


def can_write(places: ChatPlaces, allowed: Collection[Address], to: str) -> bool:
    """Return True if a turn may write there without a question."""
    try:
        return places.resolve_destination(to) in allowed
    except AdapterError:
        return False


def add_missing(result: TurnResult, hook: str, grants: TurnGrants) -> str:
    """Append to the answer the line of config.yaml that would allow the denied calls, and log the line."""
    if not (line := find_missing(result.entries, hook, grants)):
        return result.reply
    log.warning("a turn of the hook %s was not allowed to do everything. %s", hook, line)
    return f"{result.reply}\n\n{line}"


def find_missing(entries: Sequence[Entry], hook: str, grants: TurnGrants) -> str:
    """Return the line of config.yaml that would allow the calls that were denied; "" if none was."""
    calls = {call.id: call for entry in entries for call in entry.tool_calls}
    refused = [(calls[one.call_id], one.content) for one in entries if one.error and one.call_id in calls]
    may, read = list(grants.may), list(map(str, grants.read))
    for call, why in refused:
        if call.name == SEND_MESSAGE and call.args.get("to") not in (None, "", *may):
            may.append(str(call.args["to"]))
        elif OUTSIDE in why:
            read.append(str(call.args.get("path")))
    if len(may) == len(grants.may) and len(read) == len(grants.read):
        return ""
    options = {"may": list(dict.fromkeys(may)), "read": list(dict.fromkeys(read))}
    written = json.dumps({name: values for name, values in options.items() if values}, ensure_ascii=False)
    return f"{REMEDY}hooks: {{{hook}: {{options: {written}}}}}"
