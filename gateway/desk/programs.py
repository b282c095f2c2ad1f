"""The programs that can be connected, one row each: their settings, their events, and the form of an answer."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from gateway.desk.codex import read_patch
from gateway.desk.open_shells import find_open_shell
from gateway.hooks.wires.oneshot_answer import CLAUDE_TOOLS
from gateway.worker.tool_names import ToolNames, make_tool_name

Args: TypeAlias = Mapping[str, Any]

CODEX_TOOLS = ToolNames((make_tool_name("shell", "Bash"),), has_hyphens=True)
GEMINI_TOOLS = ToolNames(
    (
        make_tool_name("shell", "run_shell_command"),
        make_tool_name("write_file", "write_file", "file_path=path"),
        make_tool_name("edit_file", "replace", "file_path=path old_string=old new_string=new allow_multiple=every"),
        make_tool_name("read_file", "read_file", "file_path=path start_line=first_line"),
        make_tool_name("list_files", "list_directory", "dir_path=path"),
        make_tool_name("web_fetch", "web_fetch"),
        make_tool_name("web_search", "google_web_search"),
        make_tool_name("delegate", "invoke_agent", "prompt=task agent_name=agent"),
        make_tool_name("load_skill", "activate_skill", "name=skill"),
    ),
    has_hyphens=True,
)


class ProgramEvents(NamedTuple):
    """The events of a program that we take, under its names.

    `before` a tool, `after` it, and its `failure`; `start` and `end` of a turn; `question`: by which the program asks
    for itself; `guard`: of a change of its settings, which an answer can prevent.
    """

    before: str
    after: str
    start: str
    end: str
    failure: str = ""
    question: str = ""
    guard: str = ""

    @property
    def ends(self) -> frozenset[str]:
        """The events after which a question of that session, or the one about that call, needs no answer any more."""
        return frozenset({self.after, self.failure, self.start, self.end}) - {""}


class ProgramSettings(NamedTuple):
    """The place of a program's hooks, and what an entry says there beside its command.

    `folder`: in the person's home; `variable` may place it elsewhere, and for some programs the home around it.
    `second`: in the unit of its time limits; `before`: fields of the entry before a tool, and `told` of those whose
    answer the program need not wait for.
    """

    variable: str
    folder: str
    file: str
    is_home_variable: bool = False
    second: int = 1
    before: Args = MappingProxyType({})
    told: Args = MappingProxyType({})


class Program(NamedTuple):
    """One program. `has_dialog`: before a tool it takes `allow` and `ask`.

    Other programs run what they get `ask` for, or wait for ever, and take `allow` for a fault. `find_risk` returns why
    an owner decides about a call whatever hooks say, and `split` the calls of our tools for one of its calls, if
    these are several.
    """

    name: str
    title: str
    settings: ProgramSettings
    events: ProgramEvents
    tools: ToolNames
    has_dialog: bool = False
    blocks_from: str = ""  # the version from which it denies a tool if our command fails
    note: str = ""  # for the person who has just connected it
    find_risk: Callable[[str, Args], str] = lambda _tool, _args: ""
    split: Callable[[str, Args], list[tuple[str, dict[str, Any]]]] = lambda _tool, _args: []


PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        name="claude",
        title="Claude Code",
        settings=ProgramSettings(
            "CLAUDE_CONFIG_DIR", ".claude", "settings.json", before={"onFailure": "block"}, told={"async": True}
        ),
        events=ProgramEvents(
            before="PreToolUse",
            after="PostToolUse",
            start="UserPromptSubmit",
            end="Stop",
            failure="PostToolUseFailure",
            question="PermissionRequest",
            guard="ConfigChange",
        ),
        tools=CLAUDE_TOOLS,
        has_dialog=True,
        blocks_from="2.1.295",
    ),
    "codex": Program(
        name="codex",
        title="Codex",
        settings=ProgramSettings("CODEX_HOME", ".codex", "hooks.json", told={"async": True}),
        events=ProgramEvents(
            before="PreToolUse",
            after="PostToolUse",
            start="UserPromptSubmit",
            end="Stop",
            question="PermissionRequest",
        ),
        tools=CODEX_TOOLS,
        note="Codex runs none of these hooks until you trust them: start `codex`, and choose `Trust all and continue`",
        find_risk=find_open_shell,
        split=read_patch,
    ),
    "gemini": Program(
        name="gemini",
        title="Gemini CLI",
        settings=ProgramSettings(
            "GEMINI_CLI_HOME",
            ".gemini",
            "settings.json",
            is_home_variable=True,
            second=1000,
            before={"name": "hermes-gateway"},
            told={"name": "hermes-gateway"},
        ),
        events=ProgramEvents(before="BeforeTool", after="AfterTool", start="BeforeAgent", end="AfterAgent"),
        tools=GEMINI_TOOLS,
    ),
}


def make_permission_answer(*, is_allowed: bool, reason: str = "") -> str:
    """Make the answer to the program's own question."""
    decision = {"behavior": "allow"} if is_allowed else {"behavior": "deny", "message": reason}
    return _encode("PermissionRequest", decision=decision)


def make_decision(decision: str, reason: str = "") -> str:
    """Make the answer before a tool runs: `allow`, or `ask` for the program's own dialog."""
    reasons = {"permissionDecisionReason": reason} if reason else {}
    return _encode("PreToolUse", permissionDecision=decision, **reasons)


def _encode(event: str, **answer: object) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **answer}})
