"""The record of verbs in the activity. The row of a verb says whether and with which words a call is recorded."""

import logging
from typing import Any

from gateway.records.activity import CALLER, HOOK_PLACE, OWNER, Activity
from gateway.records.records import ActivityRecord
from gateway.verbs import Verb

log = logging.getLogger(__name__)


async def write_verb(activity: Activity, verb: Verb, params: Any, said: Any) -> None:
    """Record an answered call of a verb, if the row of the verb says so."""
    if verb.on is None or (verb.kind == "often" and CALLER.get(OWNER).place == HOOK_PLACE):
        return
    fields = {name: getattr(params, name) for name in dir(params) if not name.startswith("_")}
    on = verb.on.format(said=said, **fields).strip()
    if verb.kind != "look":
        log.info("by command: %s", f"{verb.name} {on}".rstrip())
    await activity.write(ActivityRecord(what=verb.name, on=on), is_look=verb.kind != "deed")


async def write_refusal(activity: Activity, verb: str) -> None:
    await activity.write(ActivityRecord(what=verb, outcome="refused"))
