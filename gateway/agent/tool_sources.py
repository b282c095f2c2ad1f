"""Tools that come from elsewhere: asked for at the beginning of a turn, since they may have changed or be gone.

A source that has none to offer now holds up no turn: the model is told why, and does without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

from gateway.agent.tools import Tool
from gateway.errors import AgentError


class ToolSource(Protocol):
    """Where tools come from. The names of all of them begin with `prefix` and an underscore."""

    @property
    def prefix(self) -> str: ...

    async def tools(self) -> Sequence[Tool]:
        """Those that there are now. Raises AgentError, with the reason, when they cannot be had."""
        ...


@dataclass(frozen=True, slots=True)
class FilteredToolSource:
    """Some of a source's tools: those of these names; its prefix stands for all of them."""

    source: ToolSource
    names: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return self.source.prefix

    async def tools(self) -> Sequence[Tool]:
        found = await self.source.tools()
        return found if self.prefix in self.names else [tool for tool in found if tool.name in self.names]


def choose_sources(sources: Sequence[ToolSource], names: tuple[str, ...] | None) -> tuple[ToolSource, ...]:
    """The sources that an agent with these tools needs; without a list, all. The others are left alone."""
    if names is None:
        return tuple(sources)
    wanted = [one for one in sources if any(name == one.prefix or name.startswith(f"{one.prefix}_") for name in names)]
    return tuple(FilteredToolSource(one, names) for one in wanted)


async def gather_tools(sources: Sequence[ToolSource]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools of all sources, asked side by side, in their order; and why some of them have none."""
    found: dict[int, Sequence[Tool]] = {}
    missing: dict[int, str] = {}

    async def ask(place: int, source: ToolSource) -> None:
        try:
            found[place] = await source.tools()
        except AgentError as error:
            missing[place] = str(error)

    if sources:
        async with anyio.create_task_group() as group:
            for place, source in enumerate(sources):
                group.start_soon(ask, place, source)
    tools = tuple(tool for place in sorted(found) for tool in found[place])
    return tools, tuple(missing[place] for place in sorted(missing))
