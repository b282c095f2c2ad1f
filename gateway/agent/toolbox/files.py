"""Tools that read, write, edit, list and send files of the turn's workspace."""

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from gateway.agent.pictures import read_header
from gateway.agent.toolbox.file_reach import FindWorkspace
from gateway.agent.toolbox.shell_sandbox import is_trusted
from gateway.agent.toolbox.workspace import GuardedFile, Workspace
from gateway.agent.tools import Tool, ToolContext, tool_from
from gateway.errors import AgentError
from gateway.events import is_yes
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

MOST_ITEMS = 1000
LINES = 2000
LONGEST_CAPTION = 1000
ASK_GUARDED = (
    "{tool} is about to reach {place}, a place of keys, or of what runs by itself (a start file, a unit, settings of "
    "git). May it, this once?"
)

T = TypeVar("T")


def make_file_tools(find_workspace: FindWorkspace, output_limit: int) -> tuple[Tool, ...]:
    """Make the five tools."""
    reach = partial(_reach, find_workspace)

    async def read_file(
        path: str,
        context: ToolContext,
        first_line: Annotated[int, Meta(ge=1)] = 1,
        lines: Annotated[int, Meta(ge=1)] = LINES,
    ) -> str:
        """Read a text file, or some lines of it. A picture you are shown."""
        content = await reach("read_file", path, context, Workspace.read)
        if context.show and read_header(content):
            return await context.show(content)
        text = _text(content, path)
        every = text.splitlines(keepends=True)
        part = "".join(every[first_line - 1 : first_line - 1 + lines])
        left = len(every) - (first_line - 1 + lines)
        if len(part) > output_limit:
            return f"{part[:output_limit]}\n[cut after {output_limit} characters: read fewer lines at a time]"
        return f"{part}\n[{left} more lines]" if left > 0 else part

    async def write_file(path: str, content: str, context: ToolContext) -> str:
        """Write a text file; what was in it before is replaced."""
        data = content.encode()
        before = await reach("write_file", path, context, lambda files, place: files.write(place, data))
        return _describe_writing(path, content, before)

    async def edit_file(
        path: str, old: Annotated[str, Meta(min_length=1)], new: str, context: ToolContext, every: bool = False
    ) -> str:
        """Replace a piece of a text file. The old piece must be there exactly, and once unless `every` is true."""
        count = 0

        def replace(read: Callable[[], bytes]) -> bytes:
            nonlocal count
            text = _text(read(), path)
            count = _count_places(text, old, path, every=every)
            return text.replace(old, new).encode()

        await reach("edit_file", path, context, lambda files, place: files.change(place, replace))
        return f"Edited {path} ({count} {'place' if count == 1 else 'places'})."

    async def list_files(context: ToolContext, path: str = ".") -> str:
        """List a directory: directories end with a slash, files have their size in bytes."""
        items = await reach("list_files", path, context, Workspace.list)
        lines = [f"{name}/" if is_folder else f"{name} ({size})" for name, is_folder, size in items[:MOST_ITEMS]]
        if len(items) > MOST_ITEMS:
            lines.append(f"[{len(items) - MOST_ITEMS} more]")
        return "\n".join(lines) or "It is empty."

    return (
        tool_from(read_file, repeatable=True, read_only=True),
        tool_from(write_file, repeatable=True),
        tool_from(edit_file),
        tool_from(list_files, repeatable=True, read_only=True),
        make_send_file(find_workspace),
    )


def _describe_writing(path: str, content: str, before: os.stat_result | None) -> str:
    size = format_count(len(content), "character")
    if before is None:
        return f"Created {path} ({size})."
    ago = max(time.time() - before.st_mtime, 0.0)
    replaced = f"{format_count(before.st_size, 'byte')} that were written {ago:.0f} s before"
    return f"Replaced {path} ({size}); gone are {replaced}."


async def _reach(
    find_workspace: FindWorkspace, tool: str, path: str, context: ToolContext, work: Callable[[Workspace, str], T]
) -> T:
    """Do this with the files of the turn. An owner or admin whose turn it is may open one guarded path, for once.

    Raises:
        AgentError: it is not to be had.
    """
    files = find_workspace(context.facts)
    try:
        return await run_in_thread(work, files, path)
    except GuardedFile as guarded:
        ask, place = context.ask if is_trusted(context.facts) else None, str(guarded.place)
        question = f"guarded-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
        if ask is None or not is_yes(ask(ASK_GUARDED.format(tool=tool, place=place), question)):
            raise
        opened = msgspec.structs.replace(files, guarded=(), only=guarded.place)
        return await run_in_thread(work, opened, place)


def make_send_file(find_workspace: FindWorkspace) -> Tool:
    """Make the tool that sends a file of the workspace to the person."""

    async def send_file(
        path: str, context: ToolContext, caption: Annotated[str, Meta(max_length=LONGEST_CAPTION)] = ""
    ) -> str:
        """Send a file to the person you talk with, with a text beside it if you like."""
        if context.chat is None:
            raise AgentError("this turn has no chat to send it to")
        place = await run_in_thread(find_workspace(context.facts).resolve, path)
        return await context.chat.send_file(place, caption, context.call_id)

    # It shows people only what could be read to them anyway, so everyone who may use trusted tools has it.
    return dataclasses.replace(tool_from(send_file, repeatable=True), is_trusted=True)


def _count_places(text: str, old: str, path: str, *, every: bool) -> int:
    count = text.count(old)
    if count == 0:
        raise AgentError(f"{path} does not contain that text; read it, and give a piece exactly as it is")
    if count > 1 and not every:
        raise AgentError(f"{path} contains that text {count} times; give more of it, or set every to true")
    return count


def _text(content: bytes, path: str) -> str:
    if b"\0" in content[:8000]:
        raise AgentError(f"{path} is not a text file")
    return content.decode("utf-8", "replace")
