"""The table of what tools give, walked in both directions, and what comes back that does not fit into it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.hermes.shim.tool_results import TOOL_RESULTS, Ending, read_override, show_result
from gateway.worker.tool_names import FOUND

KEY = "sk-abc123"
SEARCHED = {"success": True, "data": {"web": [{"title": KEY, "url": "http://x/", "description": "ü", "position": 1}]}}
# What a tool of ours gives, with the arguments of its call as Hermes calls them.
GIVEN: Sequence[tuple[str, dict[str, Any], str]] = (
    ("shell", {}, f"a {KEY}"),
    ("shell", {}, f"a {KEY}\n[exit code 3]"),
    ("shell", {}, f"{KEY}\n[ended: it still ran after 2 seconds]"),
    ("shell", {}, "[no output]"),
    ("shell", {}, "[exit code -9]"),
    ("read_file", {"path": "a"}, f"one\n{KEY}\n"),
    ("read_file", {"path": "a", "offset": 7}, f"{KEY}\n7|seven\n\n[12 more lines]"),
    ("read_file", {"path": "a"}, f"{KEY}\n[cut after 30 characters: read fewer lines at a time]"),
    ("read_file", {"path": "a"}, ""),
    ("write_file", {"path": KEY, "content": KEY}, f"Created {KEY} (9 characters)."),
    ("edit_file", {"path": "a", "old_string": KEY, "new_string": ""}, "Edited a (1 place)."),
    ("list_files", {"path": "."}, f"{KEY}/\nb.txt (12)\nc (3) (4)\n[7 more]"),
    ("list_files", {"path": "x/"}, "It is empty."),
    ("web_fetch", {"urls": ["http://x/"]}, f"Title\n\n{KEY}"),
    ("web_search", {"query": "tea"}, f"{FOUND}\n{json.dumps(SEARCHED, ensure_ascii=False)}"),
    ("send_message", {"target": "telegram:42"}, f"Sent {KEY} to telegram:42."),
    ("remember", {}, f"Remembered: {KEY}"),
    ("load_skill", {"name": "tea"}, f"# Tea {KEY}"),
    ("delegate", {}, f"I found {KEY}."),
    ("schedule", {"prompt": "tea", "schedule": "20m"}, "Reminder 7 is set for 2026-11-22 17:27 UTC."),
    ("scheduled", {}, f"7: 2026-11-22 17:27 UTC: tea: {KEY}\nand cake\n8: 2026-11-23 09:00 CET: bread"),
    ("scheduled", {}, "No reminders."),
    ("unschedule", {"job_id": "7"}, "Reminder 7 is taken back."),
    ("recall", {}, f"tea\n{KEY}"),
    ("mcp_git_log", {}, f"a {KEY}"),
)
ENDINGS: Sequence[Ending] = ("done", "failed", "refused", "blocked")


def clean(value: Any) -> Any:
    """As a callback does it that walks through all of it."""
    if isinstance(value, str):
        return value.replace(KEY, "[a key]")
    if isinstance(value, dict):
        return {name: clean(inner) for name, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("tool", "args", "text"), GIVEN)
def test_a_result_comes_back_as_it_went(tool: str, args: dict[str, Any], text: str) -> None:
    shown = show_result(tool, args, text)
    assert set(json.loads(shown.json)) != {"result"} or tool not in TOOL_RESULTS
    assert shown.read(shown.json) == text
    assert shown.read(json.dumps(json.loads(shown.json), indent=2, ensure_ascii=True)) == text
    assert shown.error is None


@pytest.mark.parametrize(("tool", "args", "text"), GIVEN)
def test_what_a_callback_takes_out_is_out_and_the_rest_is_as_it_was(tool: str, args: dict[str, Any], text: str) -> None:
    shown = show_result(tool, args, text)
    left = shown.read(json.dumps(clean(json.loads(shown.json))))
    assert KEY not in left
    if KEY not in json.dumps(args):  # else a fact has changed too, and the answer stands as it was given
        assert left == clean(text)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("tool", [*TOOL_RESULTS, *sorted(OUR_TOOLS_ALONE), "mcp_git_log", "of_a_plugin"])
def test_every_text_is_told_whole_and_read_back(tool: str, ending: Ending) -> None:
    """Also one that is not of the tool's own making, since another hook may have put it there."""
    for text in (f"no {KEY}", f'{{"content": "{KEY}"}}', f"\n  {KEY}\n\n", f"[exit code 1]{KEY}", "7|x", ""):
        shown = show_result(tool, {}, text, ending)
        assert KEY not in text or KEY in shown.json
        assert shown.read(shown.json) == text
        if tool != "of_a_plugin" or ending != "done":
            assert shown.read(json.dumps(clean(json.loads(shown.json)))) == clean(text)


def test_the_table_has_all_tools_that_have_names_and_every_ending_but_a_block_which_is_the_same_for_all() -> None:
    assert TOOL_RESULTS.keys() == {row.ours for row in HERMES_TOOLS.rows}
    assert {tuple(row) for row in TOOL_RESULTS.values()} == {ENDINGS[:3]}
    assert show_result("shell", {}, "no", "blocked").json == '{"error": "no"}'


def test_failures_have_the_shape_that_the_tool_gives_them_there() -> None:
    def told(tool: str, ending: Ending = "failed") -> dict[str, Any]:
        said: dict[str, Any] = json.loads(show_result(tool, {"urls": ["u"]}, "no", ending).json)
        return said

    assert told("shell") == {"output": "", "exit_code": -1, "error": "no", "status": "error"}
    assert told("shell", "refused")["status"] == "blocked"
    assert told("read_file")["content"] == ""
    assert told("edit_file") == {"success": False, "error": "no"}
    assert told("web_fetch")["results"][0] == {"url": "u", "title": "", "content": "", "error": "no"}
    assert told("delegate")["results"][0]["error"] == "no"
    assert told("mcp_git_log") == told("of_a_plugin") == told("recall") == {"error": "no"}


@pytest.mark.parametrize(
    "answer",
    [
        "hidden",
        '["hidden"]',
        '{"output": "hidden", "exit_code": 0, "error": null, "note": "one key"}',
        '{"output": "hidden", "exit_code": 0}',
        '{"output": "hidden", "exit_code": 0, "error": "now it is one"}',
        '{"output": ["hidden"], "exit_code": 0, "error": null}',
        '{"output": "hidden", "exit_code": "odd", "error": null}',
        '{"exit_code": 0, "error": null}',
        '{"output": "hid',
        "null",
        "",
    ],
)
def test_an_answer_of_another_make_stands_as_it_was_given(answer: str) -> None:
    assert show_result("shell", {}, f"a {KEY}").read(answer) == answer


def test_a_line_that_is_taken_out_of_a_list_is_gone() -> None:
    shown = show_result("list_files", {"path": "."}, ".env (12)\nb.txt (3)\n[2 more]")
    said = json.loads(shown.json)
    assert said == {"total_count": 4, "files": ["./.env", "./b.txt"], "truncated": True}
    assert shown.read(json.dumps({**said, "files": said["files"][1:]})) == "b.txt (3)\n[2 more]"
    assert (
        shown.read(json.dumps({**said, "files": ["hidden", "./b.txt"], "total_count": 9}))
        == "hidden\nb.txt (3)\n[2 more]"
    )


def test_a_plugin_in_the_place_of_a_tool_of_ours_gives_what_ours_would() -> None:
    given = read_override("read_file", '{"content": "1|one\\n2|two", "total_lines": 2}')
    assert (given.text, given.error) == ("one\ntwo", None)
    failed = read_override("read_file", '{"content": "", "error": "no such file"}')
    assert (failed.text, failed.error) == ("no such file", "no such file")
    more = '{"content": "1|one", "cached": true}'
    assert read_override("read_file", more).text == more
    assert read_override("read_file", "plain").text == "plain"
