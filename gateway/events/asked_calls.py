"""What an approval is bound to: the calls of tools as they would run, each with a digest of tool and arguments.

Two events let calls run, and a question at either of them is an approval: `tool:before` of one call, `tools:before` of
a whole batch. Hooks may change the calls at both, so what counts is how the last of them left them. The digest is that
of the JSON of both; it is not secret, and stands in the journal beside the question.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gateway.events.event import AskedCall

BATCH, CALL = "tools:before", "tool:before"
APPROVAL_EVENTS = frozenset({BATCH, CALL})


def make_asked_call(call_id: str, tool: str, args: Mapping[str, Any], changed_by: tuple[str, ...] = ()) -> AskedCall:
    """The call with its digest. What is no plain data (hooks in code can leave such) is there as code has it."""
    try:
        written = json.dumps([tool, args], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        written = json.dumps([tool, {"args": repr(args)}])
    digest = hashlib.sha256(written.encode()).hexdigest()
    return AskedCall(call_id, tool, json.loads(written)[1], digest, changed_by)


def find_asked_calls(name: str, fields: Mapping[str, Any]) -> tuple[AskedCall, ...]:
    """The calls that an event is about to let run, as it says them now; none where it lets none run."""
    if name == CALL:
        return (_call_from(fields.get("call_id"), fields.get("tool"), fields.get("args")),)
    if name == BATCH:
        calls = [one for one in fields.get("calls") or () if isinstance(one, Mapping)]
        return tuple(_call_from(one.get("id"), one.get("name"), one.get("args")) for one in calls)
    return ()


def _call_from(call_id: Any, tool: Any, args: Any) -> AskedCall:
    return make_asked_call(str(call_id), str(tool), args if isinstance(args, Mapping) else {})
