"""Writes down what every hook name that it knows of is told."""

import json
import os
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-plugin.jsonl"
NAMES = (
    "pre_tool_call post_tool_call transform_tool_result transform_llm_output pre_llm_call post_llm_call pre_api_request "
    "post_api_request api_request_error on_session_start on_session_end on_session_finalize on_session_reset "
    "subagent_start subagent_stop pre_gateway_dispatch pre_approval_request post_approval_response on_stream_start "
    "on_stream_delta on_stream_end agent_loop_stopped pre_command post_gateway_admission on_human_input_request "
    "on_human_input_resolved kanban_task_claimed pre_tts_synthesis no_such_hook"
)


def shown(value):
    return {"text": value.text, "platform": value.source.platform.value} if hasattr(value, "source") else repr(value)


def noting(name):
    def note(**kwargs):
        with SEEN.open("a") as file:
            file.write(json.dumps([name, kwargs], default=shown) + "\n")

    return note


def register(ctx):
    for name in NAMES.split():
        ctx.register_hook(name, noting(name))
    schema = {"name": "moon", "description": "its phase", "parameters": {"type": "object", "properties": {}}}
    ctx.register_tool("moon", "sky", schema, lambda args, **_: json.dumps({"phase": "full"}))
