"""The tools by Hermes's names, and the tool set of each: `tools.registry` and `toolsets`.

Only tools that exist here are named; a guard that asks if a call belongs to the tool set `file` gets the same answer as
in Hermes.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.hermes.shim.gateway_calls import ask_gateway, refuse_attribute

INSIDE = "it is a part of Hermes's own process; a plugin brings tools by ctx.register_tool"
_TOOLSETS: Mapping[str, tuple[str, ...]] = {
    "cronjob": ("cronjob",),
    "delegation": ("delegate_task",),
    "file": ("patch", "read_file", "search_files", "write_file"),
    "memory": ("memory",),
    "skills": ("skill_view",),
    "terminal": ("terminal",),
    "web": ("web_extract", "web_search"),
}
_SETS_BY_TOOL = {tool: name for name, tools in _TOOLSETS.items() for tool in tools}
_EVERYTHING = frozenset({"all", "*"})


class ToolRegistry:
    """The part of Hermes's registry that works outside its process."""

    def get_all_tool_names(self) -> list[str]:
        return sorted(_SETS_BY_TOOL)

    def get_tool_to_toolset_map(self) -> dict[str, str]:
        return dict(_SETS_BY_TOOL)

    def get_toolset_for_tool(self, name: str) -> str | None:
        return _SETS_BY_TOOL.get(name)

    def get_registered_toolset_names(self) -> list[str]:
        return sorted(_TOOLSETS)

    def get_tool_names_for_toolset(self, toolset: str) -> list[str]:
        return list(_TOOLSETS.get(toolset, ()))

    def is_toolset_available(self, toolset: str) -> bool:
        return toolset in _TOOLSETS

    def dispatch(self, name: str, args: Mapping[str, Any], **_: Any) -> str:
        """Use a tool of the agent; return its result as the model would see it."""
        return str(ask_gateway("tool", name=name, args=dict(args)))

    def __getattr__(self, name: str) -> Any:
        refuse_attribute("tools.registry.registry", name, INSIDE)


registry = ToolRegistry()


def resolve_toolset(name: str, visited: Any = None, *, include_registry: bool = True) -> list[str]:  # noqa: ARG001 - Hermes's
    """Return the tools of one tool set, or of all."""
    return sorted(_SETS_BY_TOOL) if name in _EVERYTHING else list(_TOOLSETS.get(name, ()))


def resolve_multiple_toolsets(toolset_names: Iterable[str]) -> list[str]:
    return sorted({tool for name in toolset_names for tool in resolve_toolset(name)})


def validate_toolset(name: str) -> bool:
    return name in _EVERYTHING or name in _TOOLSETS


def tool_error(message: object, **extra: Any) -> str:
    """Return the result of a tool that has failed."""
    return json.dumps({"error": str(message), **extra}, ensure_ascii=False)


def tool_result(data: Any = None, **fields: Any) -> str:
    """Return a tool's result: this value, or an object of these fields."""
    return json.dumps(fields if data is None else data, ensure_ascii=False)
