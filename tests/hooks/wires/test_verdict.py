"""The end of a one-shot program is a verdict, as it is to Claude Code; any other end is a failure."""

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.hooks.wires.oneshot_answer import CLAUDE_TOOLS, OwnFormat
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.worker.protocol import CallMeta
from gateway.worker.tool_names import ToolName

VERDICTS = [
    ("tool:before", 0, b"", False, None),
    ("tool:before", 0, b"looks fine", False, None),
    ("tool:before", 0, b'{"decision":"approve"}', False, None),
    ("tool:before", 0, b'{"suppressOutput":true,"systemMessage":"x"}', False, None),
    ("tool:before", 0, b'{"decision":"block","reason":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"action":"block","message":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"decision":"deny","message":"no"}', False, {"decision": "deny", "message": "no"}),
    ("tool:before", 0, b'{"continue":false,"stopReason":"enough"}', False, {"decision": "end", "reply": "enough"}),
    ("tool:before", 2, b"", False, {"decision": "deny", "message": "why"}),
    ("agent:end", 2, b"", False, {"decision": "retry", "message": "why"}),
    ("agent:end", 0, b'{"decision":"block","reason":"more"}', False, {"decision": "retry", "message": "more"}),
    ("agent:start", 0, b'{"context":"be kind"}', False, {"context": ["be kind"]}),
    ("tool:before", 0, b'{"args":{"a":1}}', True, {"args": {"a": 1}}),
    (
        "tool:before",
        0,
        b'{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}',
        False,
        {"decision": "deny", "message": "no"},
    ),
    (
        "tool:before",
        0,
        b'{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}',
        False,
        {"args": {"command": "ls"}},
    ),
]


def answer_to(name: str, code: int, stdout: bytes, stderr: str, guard: bool) -> HookAnswer:
    return OwnFormat(guard).read_answer(name, {}, CallMeta(), (code, stdout, stderr))


@pytest.mark.parametrize(("name", "code", "stdout", "guard", "result"), VERDICTS)
def test_an_end_means_what_it_means_to_claude_code(
    name: str, code: int, stdout: bytes, guard: bool, result: Any
) -> None:
    assert answer_to(name, code, stdout, "why", guard).result == result


def test_an_end_may_ask() -> None:
    said = b'{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"Really?"}}'
    asked = answer_to("tool:before", 0, said, "", False).ask
    assert asked
    assert asked.prompt == "Really?"


@pytest.mark.row("T27")
@pytest.mark.parametrize(
    ("code", "stdout", "guard", "what"),
    [
        (1, b"", False, "exit code 1: why"),
        (127, b"", False, "exit code 127"),
        (-9, b"", False, "SIGKILL"),
        (0, b"{not json", False, "not JSON"),
        (0, b"looks fine", True, "not JSON"),
        (0, b"[]", True, "is a list"),
        (0, b'{"decision":"perhaps"}', False, "unknown decision"),
    ],
)
def test_every_other_end_is_a_failure(code: int, stdout: bytes, guard: bool, what: str) -> None:
    with pytest.raises(HookFailed, match=what):
        answer_to("tool:before", code, stdout, "why", guard)


def test_names_of_the_event_win_over_names_of_claude_code() -> None:
    assert read_input("my:event", {"prompt": "mine", "text": "t"}, {"may": "yes"}) == {
        "event": "my:event",
        "hook_event_name": "my:event",
        "cwd": "/f",
        "prompt": "mine",
        "text": "t",
        "answers": {"may": "yes"},
    }


def told_about(tool: str, args: Any) -> Any:
    return read_input("tool:before", {"tool": tool, "args": args}, {})


def read_input(name: str, fields: dict[str, Any], answers: dict[str, Any]) -> Any:
    return json.loads(anyio.run(OwnFormat(False).build_input, name, fields, "/f", answers) or "")


@pytest.mark.parametrize("row", CLAUDE_TOOLS.rows, ids=[row.ours for row in CLAUDE_TOOLS.rows])
def test_a_tool_has_claude_codes_names_and_what_is_changed_under_them_is_changed(row: ToolName) -> None:
    ours = {name: f"a {name}" for name in ("path", *row.args)}
    told = told_about(row.ours, ours)
    assert (told["tool"], told["args"], told["tool_name"]) == (row.ours, ours, row.theirs)
    assert told["tool_input"] == {row.args.get(name, name): value for name, value in ours.items()}
    said = json.dumps({"hookSpecificOutput": {"updatedInput": told["tool_input"]}}).encode()
    fields = {"tool": row.ours, "args": ours}
    assert OwnFormat(False).read_answer("tool:before", fields, CallMeta(), (0, said, "")).result == {"args": ours}


def test_a_guard_of_files_finds_what_claude_code_would_tell_it() -> None:
    args = {"path": ".env", "old": "a", "new": "b", "every": True}
    told = told_about("edit_file", args)
    assert told["tool_name"] == "Edit"
    assert told["tool_input"] == {"file_path": ".env", "old_string": "a", "new_string": "b", "replace_all": True}
    assert told_about("mcp_git_push", {})["tool_name"] == "mcp__git__push"
    assert told_about("calculate", None)["tool_name"] == "calculate"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["tool:before", "agent:end"]),
    st.integers(-9, 3),
    st.binary(max_size=60)
    | st.dictionaries(
        st.sampled_from(["decision", "action", "continue", "hookSpecificOutput", "reason", "args", "prompt"]),
        st.none()
        | st.booleans()
        | st.text(max_size=9)
        | st.sampled_from(["block", "deny", "ask", "allow", "retry"])
        | st.dictionaries(st.sampled_from(["permissionDecision", "updatedInput"]), st.text(max_size=4)),
    ).map(lambda said: json.dumps(said).encode()),
    st.booleans(),
)
def test_whatever_a_program_says_there_is_a_verdict_or_a_failure(
    name: str, code: int, stdout: bytes, guard: bool
) -> None:
    try:
        answer = answer_to(name, code, stdout, "", guard)
    except HookFailed:
        return
    assert answer.result is None or isinstance(answer.result, dict)
