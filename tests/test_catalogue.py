"""Every event by name: fields, what hooks may change, outcomes, schema, suggestions."""

import re

import pytest

from gateway.events.catalogue import EVENT_SPECS, get_event_spec, suggest_event
from gateway.events.fields import COMMON_FIELDS, TURN_FIELDS, build_schema

SHARED = {field.name for field in (*COMMON_FIELDS, *TURN_FIELDS)}


@pytest.mark.parametrize("known", EVENT_SPECS.values(), ids=EVENT_SPECS)
def test_every_entry_is_whole(known) -> None:
    """A sentence about it and each field, no field twice, outcomes that exist."""
    assert re.fullmatch(r"[a-z]+:([a-z]+|\*)", known.name)
    assert re.match(r"[A-Z].*\.$", known.doc)
    names = [field.name for field in known.all_fields]
    assert len(names) == len(set(names))
    assert {field.name for field in COMMON_FIELDS} <= set(names)
    assert all(field.doc and not field.doc.endswith(".") for field in known.fields)
    assert known.outcomes <= {"end", "deny", "retry"}
    assert known.writable <= set(names)


@pytest.mark.row("SHE-1")
@pytest.mark.row("EDG-1")
@pytest.mark.row("WEB-1")
@pytest.mark.row("WEB-52")
@pytest.mark.parametrize(
    ("name", "writable", "outcomes"),
    [
        ("message:received", {"text", "heard"}, {"end", "deny"}),
        ("message:sending", {"text", "attachments"}, {"deny"}),
        ("message:sent", set(), set()),
        ("command:new", {"command", "args", "result"}, {"deny"}),
        ("agent:start", {"message_full", "messages", "context", "config", "result"}, {"end", "deny"}),
        ("agent:step", set(), set()),
        ("agent:end", {"response_full", "error"}, {"retry"}),
        ("llm:before", {"messages", "system", "tools", "model", "result"}, {"end", "deny"}),
        ("llm:chunk", {"chunk"}, {"end", "deny"}),
        ("llm:after", {"content", "tool_calls", "error"}, {"end", "retry"}),
        ("tools:before", {"calls", "tools"}, {"end", "deny"}),
        ("tools:after", {"results"}, {"end"}),
        ("tool:before", {"tool", "args", "impl", "result"}, {"end", "deny"}),
        ("tool:after", {"result", "error", "parts"}, {"deny", "end", "retry"}),
        ("message:add", {"message"}, {"deny"}),
        ("handoff:before", {"target", "input", "result"}, {"end", "deny"}),
        ("handoff:after", {"result", "error"}, {"end", "retry"}),
        ("skill:before", {"skill", "version", "result"}, {"deny"}),
        ("skill:after", {"content", "error"}, set()),
        ("node:before", {"state", "result"}, {"end", "deny"}),
        ("node:after", {"result", "error", "state"}, {"retry"}),
        ("interrupt:before", {"value"}, {"deny"}),
        ("interrupt:after", {"response"}, set()),
        ("model:create", {"model", "kwargs", "result"}, set()),
        ("schedule:digest", set(), set()),
        ("webhook:github", set(), set()),
    ],
)
def test_what_a_hook_may_change_and_decide(name, writable, outcomes) -> None:
    known = get_event_spec(name)
    assert known is not None
    assert (known.writable, known.outcomes) == (writable, outcomes)


def test_events_of_a_turn_can_all_be_asked_for_the_same_fields() -> None:
    inside = [known for known in EVENT_SPECS.values() if known.in_turn]
    assert len(inside) > 15
    for known in inside:
        assert {field.name for field in known.all_fields} >= SHARED


def test_a_family_has_members_and_free_names_are_in_no_entry() -> None:
    assert get_event_spec("command:reset") is get_event_spec("command:new") is EVENT_SPECS["command:*"]
    assert get_event_spec("command:a:b") is EVENT_SPECS["command:*"]
    assert get_event_spec("tool:other") is None
    assert get_event_spec("my:event") is None
    assert get_event_spec("command") is None


@pytest.mark.row("EDG-2")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tool:befor", "tool:before"),
        ("tool_before", "tool:before"),
        ("agent.end", "agent:end"),
        ("agent:strat", "agent:start"),
        ("mesage:received", "message:received"),
        ("agent", "agent:*"),
        ("tols:*", "tools:*"),
        ("before_message", "message:received"),
        ("command:before", "command:*"),
        ("agent:interim", "agent:step"),
        ("gateway:message_received", "message:received"),
    ],
)
def test_a_name_that_nobody_tells_has_a_suggestion(name, meant) -> None:
    assert suggest_event(name) == meant


@pytest.mark.parametrize("name", [*EVENT_SPECS, "*", "tool:*", "*:before", "command:foo*", "agent:st?rt"])
def test_a_subscription_that_something_reaches_has_none(name) -> None:
    assert suggest_event(name) is None


def test_a_name_far_from_all_others_has_none_either() -> None:
    assert suggest_event("jira:issue_created") is None


def test_the_schema_says_what_is_there_and_what_can_be_changed() -> None:
    written = build_schema(EVENT_SPECS["tool:before"])
    assert written["title"] == "tool:before"
    assert written["properties"]["args"] == {"type": "object", "description": "its arguments"}
    assert written["properties"]["call_id"]["readOnly"] is True
    assert "impl" not in written["properties"], "a live object is not there for hooks in other processes"
    assert written["properties"]["user_id"]["type"] == ["string", "null"]
    sent = build_schema(EVENT_SPECS["message:sent"])["properties"]
    assert sent["message_ids"] == {**sent["message_ids"], "type": "array", "items": {"type": "string"}}
