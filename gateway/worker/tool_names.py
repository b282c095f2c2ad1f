"""Our tools under the names that others have for them, and back: the name of a tool, and those of its arguments.

Code that was written for another system looks for that system's names: a guard that waits for `terminal` never sees a
call of `shell`. So it is told what it knows, and what it answers is read as what it means.

A tool of an MCP server is `mcp_SERVER_TOOL` here and `mcp__SERVER__TOOL` there. Where a server's name has an `_` of its
own, only the list of the servers that there are says where it ends.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias

import msgspec

Args = Mapping[str, Any]
ListServers: TypeAlias = Callable[[], Collection[str]]

# The servers of tools that there are now, by their configured names; in a worker, those of when it was called.
TOOL_SERVERS: ContextVar[ListServers] = ContextVar("gateway_tool_servers", default=tuple)
FORBIDDEN_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")  # in the names that models are given
MARK_DIGITS = 6  # of what ends the name of a tool in which characters had to be changed
_MARK = re.compile(rf"_[0-9a-f]{{{MARK_DIGITS}}}\Z")


class ToolName(msgspec.Struct, frozen=True):
    """One tool: `args` has their name of each argument by ours, `says` what their call says besides.

    What is in `listed` is one value to us, and a list to them.
    """

    ours: str
    theirs: str
    args: Mapping[str, str] = msgspec.field(default_factory=dict)
    says: Mapping[str, Any] = msgspec.field(default_factory=dict)
    listed: frozenset[str] = frozenset()

    def describe(self, args: Args) -> dict[str, Any]:
        told = {self.args.get(name, name): [value] if name in self.listed else value for name, value in args.items()}
        return {**told, **self.says}

    def resolve(self, args: Args) -> dict[str, Any]:
        ours = {theirs: name for name, theirs in self.args.items()}
        given = {ours.get(name, name): value for name, value in args.items() if name not in self.says}
        for name in self.listed & given.keys():
            if isinstance(given[name], list) and len(given[name]) == 1:
                given[name] = given[name][0]
        return given

    def matches(self, args: Args) -> bool:
        """Whether a call of theirs means this one of our tools, where one of theirs is several of ours."""
        return all(args.get(name, value) == value for name, value in self.says.items())


class ToolNames:
    """One system's names. Not all have hyphens in those of tools of MCP servers."""

    def __init__(self, rows: Iterable[ToolName], has_hyphens: bool) -> None:
        self.rows = tuple(rows)
        self._ours = {row.ours: row for row in self.rows}
        self._has_hyphens = has_hyphens

    @property
    def theirs(self) -> frozenset[str]:
        return frozenset(row.theirs for row in self.rows)

    def describe_name(self, tool: str) -> str:
        """What they call this tool of ours; a tool that they do not know keeps its name."""
        server, name = _split_name(tool)
        if name:
            return self._spell(f"mcp__{server}__{name}")
        return row.theirs if (row := self._ours.get(tool)) else tool

    def describe_call(self, tool: str, args: Any) -> tuple[str, Any]:
        row = self._ours.get(tool)
        return self.describe_name(tool), row.describe(args) if row and isinstance(args, Mapping) else args

    def resolve_args(self, tool: str, args: Args) -> dict[str, Any]:
        """Arguments of theirs for this tool of ours, as ours."""
        row = self._ours.get(tool)
        return row.resolve(args) if row else dict(args)

    def resolve_call(self, tool: str, args: Args) -> tuple[str, dict[str, Any]]:
        """A call of theirs as one of ours; one that means nothing here stays as it is."""
        row = next((row for row in self.rows if row.theirs == tool and row.matches(args)), None)
        if row:
            return row.ours, row.resolve(args)
        return self._resolve_name(tool), dict(args)

    def _resolve_name(self, tool: str) -> str:
        for server in _list_servers():
            prefix, told = prefix_of(server), self._spell(f"mcp__{FORBIDDEN_CHARACTERS.sub('_', server)}__")
            if tool.startswith(told):
                return f"{prefix}_{tool.removeprefix(told)}"
        parts = tool.split("__", 2)
        return "_".join(parts) if parts[0] == "mcp" and len(parts) == 3 else tool

    def _spell(self, name: str) -> str:
        return name if self._has_hyphens else name.replace("-", "_")


def prefix_of(server: str) -> str:
    """The beginning of our names of a server's tools."""
    return f"mcp_{FORBIDDEN_CHARACTERS.sub('_', server)}"


def _split_name(tool: str) -> tuple[str, str]:
    """The server and its own name of a tool that is `mcp_SERVER_TOOL` here; of any other tool, nothing."""
    if not tool.startswith("mcp_"):
        return "", ""
    for server in _list_servers():
        prefix = prefix_of(server)
        if tool.startswith(f"{prefix}_"):
            name = tool.removeprefix(f"{prefix}_")
            is_marked = prefix != f"mcp_{server}"  # then the names of all its tools are
            return prefix.removeprefix("mcp_"), _MARK.sub("", name) if is_marked else name
    server, _, name = tool.removeprefix("mcp_").partition("_")
    return server, name


def _list_servers() -> Iterator[str]:
    """The longest name first: what `a_b` and `a` may both mean is `a_b`'s."""
    yield from sorted(TOOL_SERVERS.get()(), key=len, reverse=True)


def make_tool_name(ours: str, theirs: str, args: str = "", **says: Any) -> ToolName:
    """A row: `args` has `theirs=ours` for each argument that is called otherwise, `theirs[]=ours` for a list there."""
    pairs = [word.split("=") for word in args.split()]
    named = {own: other.removesuffix("[]") for other, own in pairs}
    return ToolName(ours, theirs, named, says, frozenset(own for other, own in pairs if other.endswith("[]")))
