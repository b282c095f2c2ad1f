"""The scope of an approval: the calls of tools as they would run, each with a digest of tool and arguments.

Two events let calls run, and a question at either of them is an approval: `tool:before` of one call, `tools:before` of
a whole batch. Hooks may change the calls at both, so the calls count as the last hook left them. The digest is that of
the JSON of both; it is not secret, and the journal keeps it beside the question.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gateway.events.event import AskedCall

BATCH, CALL = "tools:before", "tool:before"
APPROVAL_EVENTS = frozenset({BATCH, CALL})


def make_asked_call(call_id: str, tool: str, args: Mapping[str, Any], changed_by: tuple[str, ...] = ()) -> AskedCall:
    """Make the call with its digest. Values that are not plain data (from hooks in code) are kept as their repr."""
    try:
        written = json.dumps([tool, args], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        written = json.dumps([tool, {"args": repr(args)}])
    digest = hashlib.sha256(written.encode()).hexdigest()
    return AskedCall(call_id, tool, json.loads(written)[1], digest, changed_by)


def find_asked_calls(name: str, fields: Mapping[str, Any]) -> tuple[AskedCall, ...]:
    """Return the calls that an event is about to let run, in their present form; none for other events."""
    if name == CALL:
        return (_call_from(fields.get("call_id"), fields.get("tool"), fields.get("args")),)
    if name == BATCH:
        calls = [one for one in fields.get("calls") or () if isinstance(one, Mapping)]
        return tuple(_call_from(one.get("id"), one.get("name"), one.get("args")) for one in calls)
    return ()


def _call_from(call_id: Any, tool: Any, args: Any) -> AskedCall:
    return make_asked_call(str(call_id), str(tool), args if isinstance(args, Mapping) else {})
