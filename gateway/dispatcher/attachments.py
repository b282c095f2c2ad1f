"""The files that hooks or answers attach to a reply, from the folders that are open to the agent and no others.

A hook may get a file's name from a model or a person. The gateway therefore checks the real target of the name, in any
spelling, against the rights of the hook that attached the file.

The gateway sends an allowed file under its real path, and reads the file without following links. It leaves out a
forbidden file, and a line in the reply says that; the text is sent. An answer may also name pictures, sounds and films
in the folders of plugins: under Hermes a plugin appends such a line to the answer.
"""

import dataclasses
import logging
import mimetypes
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from gateway.agent.toolbox.workspace import Workspace
from gateway.errors import AgentError
from gateway.events import Event, Pause
from gateway.events.outcomes import find_refusal, find_reply
from gateway.hooks.field_watcher import FieldChange
from gateway.messages.files import HomeFiles
from gateway.messages.message import Attachment, Reply, attachment_from, kind_of
from gateway.records.records import OwedReply
from gateway.threads import run_in_thread

log = logging.getLogger(__name__)

FILE_SCHEME = "file:"
LONGEST_NAME = 200
MOST_NAMED = 10  # files named by one answer
NO_TOOL = "[no file is sent: the agent has no tool for that when you ask]"


class HookFiles(msgspec.Struct, frozen=True):
    """The files that a hook may attach to a reply: those that the turn's `person` may read, and the hook's `own`.

    A restricted hook may send only those files of the person that are also `within` the hook's reach.
    """

    person: Workspace
    own: Workspace
    within: tuple[Path, ...] | None = None

    def resolve(self, path: str) -> Path:
        """Return the real path of a file. Raises AgentError if the hook may not send the file."""
        with suppress(AgentError):
            place = self.person.resolve(path)
            if self.within is None or any(place.is_relative_to(one.resolve()) for one in self.within):
                return place
        place = self.own.resolve(path)
        if self.within is not None and place.stat().st_nlink > 1:
            raise AgentError(f"{path} has another name, somewhere else: a hard link")
        return place


FindHookFiles: TypeAlias = Callable[[OwedReply, str], Awaitable[HookFiles]]
"""Return the files that a hook may attach to this reply. These files depend on the current configuration."""
RunEvent: TypeAlias = Callable[..., Awaitable[Event]]
FindPlace: TypeAlias = Callable[[str], Path]
"""Return the real path of a file with this name. Raises AgentError if the file may not be taken from there."""


class ReplyFiles(msgspec.Struct, frozen=True):
    """The local files of replies, and the files that hooks may attach to them."""

    shared: HomeFiles
    find_files: FindHookFiles


def find_hooks_by_file(before: Sequence[Attachment], changes: Iterable[FieldChange]) -> dict[Attachment, str]:
    """Return, for each new file of a reply, the hook that attached it."""
    placed: dict[Attachment, str] = {}
    there = {*before}
    for change in changes:
        with suppress(msgspec.ValidationError):  # a later hook replaced the value, or the reply is not sent
            now = {*msgspec.convert(change.value, tuple[Attachment, ...])}
            placed |= dict.fromkeys(now - there, change.hook)
            there = now
    return placed


async def attach_allowed(
    reply: Reply, wanted: Sequence[Attachment], find_place: Callable[[Attachment], FindPlace]
) -> Reply:
    """Return the reply with the allowed files of `wanted`; do not check files again that the reply already had."""
    kept: list[Attachment] = []
    left_out: list[str] = []
    for one in wanted:
        if one in reply.attachments:
            kept.append(one)
            continue
        try:
            place = await run_in_thread(find_place(one), path_from(one.path))
            kept.append(dataclasses.replace(one, path=str(place), name=one.name or place.name))
        except AgentError as error:
            log.warning("a file that was to go with %s is not sent: %s", reply.id, error)
            name = display_name_of(one.name or one.path)
            left_out.append(f"[the file {name} is not sent: it is not there, or may not be taken from there]")
    text = "\n".join([*([reply.text] if reply.text else []), *left_out])
    return dataclasses.replace(reply, text=text, attachments=tuple(kept))


def find_file(path: str, workspace: Workspace, plugins: Path | None, hooks: Iterable[HookFiles] = ()) -> Path:
    """Return the real path of a file to send; raise AgentError if the file may not be sent.

    `hooks` are the files of the restricted hooks that named the file.
    """
    if places := [one.resolve(path) for one in hooks]:
        return places[0]
    try:
        return workspace.resolve(path)
    except AgentError:
        is_medium = kind_of(mimetypes.guess_type(path)[0] or "") != "document"
        if not (plugins and is_medium and Path(path).is_absolute()):
            raise
        return Workspace((plugins,)).resolve(path)


async def attach_files(
    reply: Reply,
    names: Sequence[str],
    workspace: Workspace | None,
    plugins: Path | None = None,
    find_hooks: Callable[[str], Sequence[HookFiles]] = lambda _name: (),
) -> Reply:
    """Return the reply with the files that its answer names; without a workspace, say that no file is sent."""
    if workspace is None:
        return dataclasses.replace(reply, text=f"{reply.text}\n{NO_TOOL}".strip())
    wanted = [Attachment("document", name) for name in names[:MOST_NAMED]]
    find = partial(find_file, workspace=workspace, plugins=plugins)
    named = await attach_allowed(reply, wanted, lambda one: partial(find, hooks=find_hooks(one.path)))
    files = [await run_in_thread(describe_file, one) for one in named.attachments]
    if (more := len(names) - MOST_NAMED) > 0:
        text = f"{named.text}\n[{more} more files are not sent: an answer has {MOST_NAMED} at most]".strip()
        named = dataclasses.replace(named, text=text)
    return dataclasses.replace(named, attachments=tuple(files))


async def ask_guards(names: Sequence[str], run: RunEvent) -> tuple[list[str], list[str]]:
    """Ask the hooks before tools about the files that an answer names; return the allowed files, and denials.

    To these hooks, a line that names a file is a call of `send_file`.
    """
    allowed: list[str] = list(names[MOST_NAMED:])
    refused: list[str] = []
    for name in reversed(names[:MOST_NAMED]):
        call = {"tool": "send_file", "args": {"path": name}, "impl": None, "result": None, "call_id": "", "hop": 0}
        try:
            event = await run("tool:before", **call)
            why, is_allowed = find_refusal(event.outcome), find_reply(event.outcome) is None
        except Pause:
            why, is_allowed = "a person would have to approve it", False
        if is_allowed:
            allowed.insert(0, name)
        else:
            refused.insert(0, f"[the file {display_name_of(name)} is not sent: {why or 'a hook did not allow it'}]")
    return allowed, refused


def describe_file(named: Attachment) -> Attachment:
    """Return the file with the type that its name says, or unchanged if the file is gone."""
    try:
        return attachment_from(Path(named.path))
    except OSError:
        return named


def path_from(spelled: str) -> str:
    """Return the path of a file from its path or its `file:` address.

    Raises:
        AgentError: the address names no local file.
    """
    if not spelled.lower().startswith(FILE_SCHEME):
        return spelled
    address = urlsplit(spelled)
    if address.netloc not in ("", "localhost"):
        raise AgentError(f"{spelled} is on another machine")
    return unquote(address.path)


def display_name_of(name: str) -> str:
    """Return a foreign file name for people to read: one line, and no path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(sign for sign in last if sign.isprintable())[:LONGEST_NAME]
