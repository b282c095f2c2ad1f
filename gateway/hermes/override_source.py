"""Which tools a plugin takes the place of, seen in its source before anything of it runs.

While it is not up, these tools wait for it or are refused: its own is there to keep ours from being used. Where the
names cannot all be seen, it may be any tool. Somebody has allowed it to override tools (`allow_tool_override`), or
nothing of this counts.
"""

import ast
from collections.abc import Mapping

from gateway.hermes.handler_source import HandlerSource, is_word
from gateway.hermes.patches import call_name_of
from gateway.hermes.shim.tool_names import HERMES_TOOLS

REGISTER, OVERRIDE = "register_tool", "override"
ANY_TOOL = "*"
_PLACE_OF_OVERRIDE = 9  # among the arguments of `register_tool`


def find_overrides(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The names, ours or Hermes's, under which it registers tools with `override`."""
    source = HandlerSource(files)
    calls = [node for node in source.nodes if isinstance(node, ast.Call) and call_name_of(node) == REGISTER]
    if source.unreadable or not calls or len(calls) != sum(is_word(node, REGISTER) for node in source.nodes):
        return (ANY_TOOL,)
    names = [_name_of(call, source) for call in calls if _overrides(call)]
    return tuple(dict.fromkeys(names))


def is_same_tool(tool: str, name: str) -> bool:
    """Whether this tool of ours is what a plugin means by that name."""
    return name in (tool, ANY_TOOL, HERMES_TOOLS.describe_name(tool))


def _overrides(call: ast.Call) -> bool:
    """What cannot be seen overrides."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return True
    said = [one.value for one in call.keywords if one.arg == OVERRIDE] or call.args[_PLACE_OF_OVERRIDE:]
    return any(not (isinstance(one, ast.Constant) and not one.value) for one in said)


def _name_of(call: ast.Call, source: HandlerSource) -> str:
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "name"), None)
    if isinstance(given, ast.Name):
        given = source.find_value(given.id)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ANY_TOOL
