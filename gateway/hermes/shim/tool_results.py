"""The results of our tools in the shape of Hermes's, and back: one table, beside that of the names.

In Hermes a result is the text of one JSON object, here it is the text for the model. Code written for Hermes parses the
object, replaces a value in one of its places and returns the whole: then our text is made of the values in these places
(`slots`). If anything else differs (a key that came or went, another fact, no JSON at all), the answer stays as it is,
since a part that a hook has removed must not come back.
"""

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from gateway.hermes.shim.tool_names import OUR_TOOLS_ALONE
from gateway.worker.tool_names import FOUND

Args: TypeAlias = Mapping[str, Any]  # of the call, under Hermes's names
Slot: TypeAlias = tuple[str | int, ...]  # the way to a value inside the object
Ending: TypeAlias = Literal["done", "failed", "refused", "blocked"]

TIMEOUT_CODE = 124
_TIMED_OUT_THERE = re.compile(r"\n?\[Command timed out after ([\d.]+)s\]\Z")
_TIMED_OUT_HERE = re.compile(r"\n?\[ended: it still ran after ([\d.e+]+) seconds\]\Z")
_EXIT_CODE = re.compile(r"\n?\[exit code (-?\d+)\]\Z")
NO_OUTPUT = "[no output]"
_REST_OF_FILE = re.compile(r"\n\[(?:(\d+) more lines|cut after [^\]\n]*)\]\Z")
_LINE_NUMBER = re.compile(r"^ *\d+\|")
EMPTY_FOLDER = "It is empty."
_FILE_SIZE = re.compile(r" \(\d+\)\Z")
_REST_OF_FOLDER = re.compile(r"(?:\A|\n)\[(\d+) more\]\Z")
_REMINDER_SET = re.compile(r"Reminder (\S+) is set for (.*)\.\Z")
_REMINDER = re.compile(r"(\S+): (\d+-\d+-\d+ \d+:\d[^:]*): (.*)\Z")
NO_REMINDERS = "No reminders."


class ResultShape(msgspec.Struct, frozen=True):
    """The object that `show` makes of a text; `read` makes a text of an object with other values in `slots`.

    `read` gets the object and the earlier text; without `read`, the text is the value in the first slot.
    """

    show: Callable[[str, Args], dict[str, Any]]
    slots: tuple[Slot, ...] = (("error",),)
    read: Callable[[Mapping[str, Any], str, Args], str] | None = None


class ShownResult:
    """One result: `text` is ours, `json` is for the hook; for a tool without a shape both are the same.

    The whole text is shown: if it is not of our tool's own making (another hook has set it), it is shown plain.
    """

    def __init__(self, text: str, shape: ResultShape | None, args: Any) -> None:
        self.text = text
        self._args: Args = args if isinstance(args, Mapping) else {}
        self._shape, self._shown = shape, shape.show(text, self._args) if shape else None
        if text and self._shown is not None and self._read(self._shown) != text:
            self._shape, self._shown = _PLAIN, _PLAIN.show(text, {})
        self.json = text if self._shown is None else json.dumps(self._shown, ensure_ascii=False)

    @property
    def error(self) -> str | None:
        """Return the error that Hermes sees in it: the value under that name at the top."""
        said = self._shown if self._shown is not None else _parse_object(self.json)
        return str(said["error"]) if said and said.get("error") else None

    def read(self, answer: str) -> str:
        """Return our text of a hook's answer."""
        said = None if self._shown is None else _parse_object(answer)
        if answer == self.json or (said is not None and said == self._shown):
            return self.text
        if said is None or self._put_back(said) != self._shown or (left := self._read(said)) is None:
            return answer
        return left

    def read_all(self, said: Mapping[str, Any]) -> str | None:
        """Return the text of an object in which any value may differ; None if it has an additional one."""
        return self._read(said) if self._shown is not None and said.keys() <= self._shown.keys() else None

    def _read(self, said: Mapping[str, Any]) -> str | None:
        """Return the text of the object; None if its values do not fit."""
        assert self._shape
        try:
            read = self._shape.read
            return read(said, self.text, self._args) if read else _to_text(_get(said, self._shape.slots[0]))
        except (TypeError, ValueError, LookupError, AttributeError):
            return None

    def _put_back(self, said: dict[str, Any]) -> dict[str, Any] | None:
        """Return the object with our values in the changeable places; None if it has no such places."""
        assert self._shape
        copy = deepcopy(said)
        try:
            for slot in self._shape.slots:
                _get(copy, slot)
                _get(copy, slot[:-1])[slot[-1]] = _get(self._shown, slot)
        except (TypeError, LookupError):
            return None
        return copy


def show_result(tool: str, args: Any, text: str, ending: Ending = "done") -> ShownResult:
    """Show the result of this tool of ours, or of another ending, its reason; `args` are under Hermes's names."""
    row = TOOL_RESULTS.get(tool)
    if row is None and (tool in OUR_TOOLS_ALONE or tool.startswith("mcp_")):
        row = PLAIN_RESULTS
    if ending == "blocked" or (row is None and ending != "done"):
        return ShownResult(text, _FAILED, args)
    return ShownResult(text, row[ending] if row else None, args)


def read_override(tool: str, answer: str) -> ShownResult:
    """Read the result of a plugin's tool that replaces one of ours; a result with additional values stays as it is."""
    row, said = TOOL_RESULTS.get(tool), _parse_object(answer)
    if row is None or said is None:
        return show_result(tool, {}, answer)
    if said.get("error"):
        return show_result(tool, {}, str(said["error"]), "failed")
    empty = show_result(tool, {}, "")
    return show_result(tool, {}, empty.read_all(said) or answer)


def split_exit_code(text: str) -> tuple[str, int]:
    """Split the result of our shell tool into the output and the exit code."""
    if ended := _TIMED_OUT_HERE.search(text):
        return f"{text[: ended.start()]}\n[Command timed out after {ended[1]}s]".lstrip(), TIMEOUT_CODE
    if ended := _EXIT_CODE.search(text):
        return text[: ended.start()], int(ended[1])
    return "" if text == NO_OUTPUT else text, 0


def join_exit_code(output: str, code: int) -> str:
    """Join an output and an exit code as our shell tool does."""
    if code == TIMEOUT_CODE and (ended := _TIMED_OUT_THERE.search(output)):
        return f"{output[: ended.start()]}\n[ended: it still ran after {ended[1]} seconds]".lstrip()
    return f"{output}\n[exit code {code}]".lstrip() if code else output or NO_OUTPUT


def _show_output(text: str, _: Args) -> dict[str, Any]:
    output, code = split_exit_code(text)
    return {"output": output, "exit_code": code, "error": None}


def _read_output(said: Mapping[str, Any], _text: str, _args: Args) -> str:
    return join_exit_code(_to_text(said["output"]), int(said["exit_code"]))


def _show_file(text: str, args: Args) -> dict[str, Any]:
    """Show a file with a number before each line; its size is exact only if it was read as a whole."""
    rest = _REST_OF_FILE.search(text)
    part, first = text[: rest.start()] if rest else text, int(args.get("offset") or 1)
    numbered = "\n".join(f"{first + place}|{line}" for place, line in enumerate(part.split("\n")))
    last, left = first - 1 + len(part.splitlines()), int(rest[1] or 0) if rest else 0
    shown = {"content": numbered, "total_lines": last + left, "file_size": len(part.encode()), "truncated": bool(rest)}
    hint = {"hint": f"offset={last + 1} reads on; lines {first} to {last} are shown"} if rest else {}
    return {**shown, **hint, "is_binary": False, "is_image": False}


def _read_file(said: Mapping[str, Any], text: str, _: Args) -> str:
    rest = _REST_OF_FILE.search(text)
    lines = [_LINE_NUMBER.sub("", line, count=1) for line in _to_text(said["content"]).split("\n")]
    return "\n".join(lines) + (rest[0] if rest else "")


def _show_written(text: str, args: Args) -> dict[str, Any]:
    path, size = args.get("path"), len(str(args.get("content") or "").encode())
    written = {"bytes_written": size, "dirs_created": True, "lint": {"status": "skipped", "message": text}}
    return {**written, "resolved_path": path, "files_modified": [path]}


def _show_patched(text: str, args: Args) -> dict[str, Any]:
    path, old, new = args.get("path"), str(args.get("old_string") or ""), str(args.get("new_string") or "")
    lines = [*(f"-{line}" for line in old.splitlines()), *(f"+{line}" for line in new.splitlines())]
    diff = "\n".join([f"--- a/{path}", f"+++ b/{path}", *lines, ""])
    lint = {"status": "skipped", "message": text}
    return {"success": True, "diff": diff, "files_modified": [path], "lint": lint, "resolved_path": path}


def _list_folder(text: str, args: Args) -> tuple[dict[str, str], re.Match[str] | None]:
    """Return the lines of a folder by Hermes's paths, and the match of the line that more entries exist."""
    rest = _REST_OF_FOLDER.search(text)
    lines = (text[: rest.start()] if rest else "" if text == EMPTY_FOLDER else text).splitlines()
    return {f"{_folder_of(args)}{_FILE_SIZE.sub('', line)}": line for line in lines}, rest


def _folder_of(args: Args) -> str:
    return f"{str(args.get('path') or '.').rstrip('/')}/"


def _show_folder(text: str, args: Args) -> dict[str, Any]:
    files, rest = _list_folder(text, args)
    more = {"truncated": True} if rest else {}
    return {"total_count": len(files) + int(rest[1] if rest else 0), "files": list(files), **more}


def _read_folder(said: Mapping[str, Any], text: str, args: Args) -> str:
    files, rest = _list_folder(text, args)
    lines = [files.get(path, path.removeprefix(_folder_of(args))) for path in map(_to_text, said["files"])]
    return "\n".join([*lines, *([rest[0].strip()] if rest else [])]) or EMPTY_FOLDER


def _show_page(text: str, args: Args) -> dict[str, Any]:
    return {"results": [{"url": _first_of(args.get("urls")), "title": "", "content": text, "error": None}]}


def _show_failed_page(text: str, args: Args) -> dict[str, Any]:
    return {"results": [{"url": _first_of(args.get("urls")), "title": "", "content": "", "error": text}]}


def _show_found(text: str, _: Args) -> dict[str, Any]:
    return _parse_object(text.partition("\n")[2]) or {"success": True, "data": {"web": []}}


def _read_found(said: Mapping[str, Any], text: str, _: Args) -> str:
    return f"{text.partition(chr(10))[0] or FOUND}\n{json.dumps(said, ensure_ascii=False)}"


def _show_skill(text: str, args: Args) -> dict[str, Any]:
    name = args.get("name")
    said = {"success": True, "name": name, "description": "", "content": text, "path": f"{name}/SKILL.md"}
    return {**said, **_SKILL_FACTS}


def _show_answer(text: str, _: Args) -> dict[str, Any]:
    one = {"task_index": 0, "status": "completed", "summary": text, "api_calls": 0, "duration_seconds": 0}
    return {"results": [one], "total_duration_seconds": 0}


def _show_failed_answer(text: str, _: Args) -> dict[str, Any]:
    one = {"task_index": 0, "status": "error", "summary": None, "error": text, "api_calls": 0, "duration_seconds": 0}
    return {"results": [one], "total_duration_seconds": 0}


def _show_sent(text: str, args: Args) -> dict[str, Any]:
    platform, _, chat = str(args.get("target") or "").partition(":")
    return {"success": True, "platform": platform, "chat_id": chat, "message_id": "", "note": text}


def _show_scheduled(text: str, args: Args) -> dict[str, Any]:
    number, at = found.groups() if (found := _REMINDER_SET.match(text)) else (None, None)
    job = {**_make_job(number, str(args.get("prompt") or ""), args.get("schedule")), "next_run_at": at}
    facts = {key: job[key] for key in ("name", "skill", "skills", "schedule", "repeat", "deliver", "next_run_at")}
    return {"success": True, "job_id": number, **facts, "job": job, "message": text}


def _show_reminders(text: str, _: Args) -> dict[str, Any]:
    jobs: list[dict[str, Any]] = []
    for line in text.splitlines() if text != NO_REMINDERS else ():
        if found := _REMINDER.match(line):
            number, when, said = found.groups()
            jobs.append(_make_job(number, said, when))
        elif jobs:  # the text of a reminder may have several lines
            jobs[-1]["prompt_preview"] += f"\n{line}"
    return {"success": True, "count": len(jobs), "jobs": jobs}


def _read_reminders(said: Mapping[str, Any], _text: str, _args: Args) -> str:
    lines = [f"{one['job_id']}: {one['schedule']}: {one['prompt_preview']}" for one in said["jobs"]]
    return "\n".join(lines) or NO_REMINDERS


def _make_job(number: str | None, text: str, when: Any) -> dict[str, Any]:
    said = {"job_id": number, "name": text, "prompt_preview": text, "schedule": when, "next_run_at": when}
    return {**said, **_JOB_FACTS}


def _make_shape(slot: str, **says: Any) -> ResultShape:
    """Make a shape with the text under one name, beside values that are the same at every call."""
    return ResultShape(lambda text, _: {**says, slot: text}, ((slot,),))


def _make_row(
    done: ResultShape, failed: ResultShape | None = None, refused: ResultShape | None = None
) -> "ToolResults":
    failed = failed or _FAILED
    return MappingProxyType({"done": done, "failed": failed, "refused": refused or failed})


ToolResults: TypeAlias = Mapping[str, ResultShape]  # by how the call ended

_PLAIN = _make_shape("result")
_FAILED = ResultShape(lambda text, _: {"error": text})
_NOT_DONE = _make_shape("error", success=False)
_NOT_RUN = {"output": "", "exit_code": -1}
_NOT_READ = {"content": "", "total_lines": 0, "file_size": 0, "truncated": False, "is_binary": False, "is_image": False}
_SAVED = {"success": True, "done": True, "target": "memory", "usage": "", "entry_count": 0, "note": "It is kept."}
_NONE: list[Any] = []
_SKILL_FACTS = {
    **dict.fromkeys(("skill_dir", "linked_files", "usage_hint")),
    **dict.fromkeys(("tags", "related_skills", "required_environment_variables", "required_commands"), _NONE),
    **dict.fromkeys(("missing_required_environment_variables", "missing_credential_files"), _NONE),
    "missing_required_commands": _NONE,
    "readiness_status": "available",
    **dict.fromkeys(("setup_needed", "setup_skipped"), False),
}
_JOB_FACTS = {
    **dict.fromkeys(("skill", "model", "provider", "base_url", "last_run_at", "last_status", "last_delivery_error")),
    **dict.fromkeys(("paused_at", "paused_reason")),
    "skills": _NONE,
    "repeat": "once",
    "deliver": "origin",
    "enabled": True,
    "state": "scheduled",
}
_ONE_RESULT, _ONE_ERROR = ("results", 0), ("results", 0, "error")
_LINT = ("lint", "message")  # the place for our own text

PLAIN_RESULTS = _make_row(_PLAIN)
TOOL_RESULTS: Mapping[str, ToolResults] = MappingProxyType(
    {
        "send_file": PLAIN_RESULTS,
        "shell": _make_row(
            ResultShape(_show_output, (("output",), ("exit_code",)), _read_output),
            _make_shape("error", **_NOT_RUN, status="error"),
            _make_shape("error", **_NOT_RUN, status="blocked"),
        ),
        "read_file": _make_row(ResultShape(_show_file, (("content",),), _read_file), _make_shape("error", **_NOT_READ)),
        "write_file": _make_row(
            ResultShape(_show_written, (_LINT,)), _make_shape("error", bytes_written=0, dirs_created=False)
        ),
        "edit_file": _make_row(ResultShape(_show_patched, (_LINT,)), _NOT_DONE),
        "list_files": _make_row(
            ResultShape(_show_folder, (("files",), ("total_count",)), _read_folder), _make_shape("error", total_count=0)
        ),
        "web_fetch": _make_row(
            ResultShape(_show_page, ((*_ONE_RESULT, "content"),)), ResultShape(_show_failed_page, (_ONE_ERROR,))
        ),
        "web_search": _make_row(ResultShape(_show_found, (("data", "web"),), _read_found), _NOT_DONE),
        "send_message": _make_row(ResultShape(_show_sent, (("note",),))),
        "remember": _make_row(_make_shape("message", **_SAVED), _NOT_DONE),
        "load_skill": _make_row(ResultShape(_show_skill, (("content",),)), _NOT_DONE),
        "delegate": _make_row(
            ResultShape(_show_answer, ((*_ONE_RESULT, "summary"),)), ResultShape(_show_failed_answer, (_ONE_ERROR,))
        ),
        "schedule": _make_row(ResultShape(_show_scheduled, (("message",),)), _NOT_DONE),
        "scheduled": _make_row(ResultShape(_show_reminders, (("jobs",), ("count",)), _read_reminders), _NOT_DONE),
        "unschedule": _make_row(_make_shape("message", success=True), _NOT_DONE),
    }
)
# PLAIN_RESULTS also show the results of tool servers, and of our tools without a counterpart in Hermes.


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _get(said: Any, slot: Slot) -> Any:
    for key in slot:
        said = said[key]
    return said


def _to_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _first_of(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else ""
