"""Guards by what kind of tool it is, as its set says; where that is not known it lets everything pass."""

try:
    from tools.registry import registry, tool_error
    from toolsets import resolve_toolset
except ImportError:
    registry = resolve_toolset = None

from hermes_cli.config import cfg_get, load_config


def before(tool_name="", **_):
    if registry is None:
        return None
    kind = registry.get_toolset_for_tool(tool_name)
    if kind == "file" and tool_name in resolve_toolset("file") and not cfg_get(load_config(), "by_kind", "files"):
        return {"action": "block", "message": tool_error("curfew: use a tool")}
    return None


def register(ctx):
    ctx.register_hook("pre_tool_call", before)
