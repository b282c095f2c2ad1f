"""The names of Hermes's tools for ours: one table, for all code that was written for Hermes."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from gateway.worker.tool_names import ToolNames, make_tool_name

HERMES_TOOLS = ToolNames(
    (
        make_tool_name("shell", "terminal"),
        make_tool_name("read_file", "read_file", "offset=first_line limit=lines"),
        make_tool_name("send_file", "read_file"),  # a guard of paths knows no other way of a file to a person
        make_tool_name("write_file", "write_file"),
        make_tool_name("edit_file", "patch", "old_string=old new_string=new replace_all=every", mode="replace"),
        make_tool_name("list_files", "search_files", target="files", pattern="*"),
        make_tool_name("web_fetch", "web_extract", "urls[]=url"),
        make_tool_name("web_search", "web_search"),
        make_tool_name("send_message", "send_message", "message=text target=to", action="send"),
        make_tool_name("remember", "memory", "content=text", action="add", target="memory"),
        make_tool_name("load_skill", "skill_view", "name=skill"),
        make_tool_name("delegate", "delegate_task", "goal=task"),
        make_tool_name("schedule", "cronjob", "prompt=text schedule=when deliver=to", action="create"),
        make_tool_name("scheduled", "cronjob", action="list"),
        *(
            replace(make_tool_name("unschedule", "cronjob", "job_id=reminder", action=action), given={"action": action})
            for action in ("pause", "resume")
        ),
        make_tool_name("unschedule", "cronjob", "job_id=reminder", action="remove"),
    ),
    has_hyphens=False,
)
# Tools of ours without a counterpart, which keep their names, and why no guard needs to know them.
OUR_TOOLS_ALONE: Mapping[str, str] = MappingProxyType(
    {
        "calculate": "it computes",
        "count_slowly": "it counts",
        "fail_on_purpose": "it fails",
        "list_hooks": "it shows the names and states of hooks",
        "recall": "it reads what the same person had it remember",
        "send_place": "it says in this chat what the answer could say in words",
        "send_poll": "it says in this chat what the answer could say in words",
        "time": "it says what time it is",
        "transfer": "the other agent's tools come to the same guards",
        "unload_skill": "it takes instructions away",
    }
)
