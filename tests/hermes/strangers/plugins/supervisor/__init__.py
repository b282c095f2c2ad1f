"""Lets sub-agents look and not write: it knows them by the sessions that `subagent_start` names."""

import json
import os
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-supervisor.jsonl"


class Supervisor:
    def __init__(self):
        self.children = {}

    def note(self, *line):
        with SEEN.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def started(self, child_session_id, child_subagent_id, parent_session_id, **_):
        self.children[child_session_id] = child_subagent_id
        self.note("child", parent_session_id in self.children)

    def before(self, tool_name, args, session_id, task_id, **_):
        self.note("tool", tool_name, session_id in self.children, task_id == self.children.get(session_id))
        if session_id in self.children and tool_name == "write_file":
            return {"action": "block", "message": "sub-agents do not write"}

    def after(self, tool_name, status, session_id, **_):
        self.note("after", tool_name, status, session_id in self.children)

    def began(self, session_id, **_):
        self.note("session", session_id in self.children)

    def asked(self, session_id, task_id, **_):
        self.note("turn", session_id in self.children, task_id == self.children.get(session_id))


def register(ctx):
    one = Supervisor()
    ctx.register_hook("subagent_start", one.started)
    ctx.register_hook("pre_tool_call", one.before)
    ctx.register_hook("post_tool_call", one.after)
    ctx.register_hook("on_session_start", one.began)
    ctx.register_hook("pre_llm_call", one.asked)
    ctx.register_hook("post_llm_call", one.asked)
