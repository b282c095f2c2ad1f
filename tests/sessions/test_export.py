"""A session on paper."""

import json

from gateway.messages.transcript import Entry, ToolCall, Usage
from gateway.sessions.export import as_json, as_markdown
from gateway.sessions.session import Session

SESSION = Session(
    "agent:main:net:dm:1",
    session_id="20260101_000000_abc",
    platform="net",
    began=1767225600.0,
    entries=(
        Entry("user", "what is in ä.txt?"),
        Entry("assistant", "", tool_calls=(ToolCall("c1", "read", {"path": "ä.txt"}),)),
        Entry("tool", "```\ncode\n```", call_id="c1", name="read"),
        Entry("assistant", "code"),
    ),
    turns=(4,),
    settings={"title": "A file"},
    usage=Usage(10, 5, 2),
)


def test_json_keeps_everything() -> None:
    whole = json.loads(as_json(SESSION))
    assert whole["session_id"] == "20260101_000000_abc"
    assert whole["title"] == "A file"
    assert whole["began"] == "2026-01-01T00:00:00+00:00"
    assert [entry["role"] for entry in whole["entries"]] == ["user", "assistant", "tool", "assistant"]
    assert whole["entries"][1]["tool_calls"][0]["args"] == {"path": "ä.txt"}
    assert whole["usage"]["input_tokens"] == 10


def test_markdown_reads_as_a_conversation_and_no_fence_ends_early() -> None:
    text = as_markdown(SESSION)
    assert text.startswith("# A file\n")
    assert "## User\n\nwhat is in ä.txt?\n" in text
    assert '"path": "ä.txt"' in text
    assert "````\n```\ncode\n```\n````" in text
    assert text.endswith("## Assistant\n\ncode\n")


def test_a_session_without_a_title_is_called_by_its_id() -> None:
    assert as_markdown(Session("k", session_id="s1")).startswith("# s1\n")
