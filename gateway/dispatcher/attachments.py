"""The files beside a reply that hooks put there, or an answer names: taken from the folders that are open to the agent,
and from nowhere else.

A hook may have the name of a file from a model or a person, so it is judged by where it leads, in whichever spelling.
What is allowed goes on under its real path, and is read there following no link. A file that is not allowed is left
out, and the reply says so: its text is not to blame.
"""

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import anyio.to_thread

from gateway.agent.toolbox.workspace import Workspace
from gateway.errors import AgentError
from gateway.messages import Attachment, Reply, attachment_from
from gateway.records import OwedReply
from gateway.shared_files import SharedFiles

log = logging.getLogger(__name__)

FILE_SCHEME = "file:"
LONGEST_NAME = 200
MOST_NAMED = 10  # files, by one answer
NO_TOOL = "[no file is sent: the agent has no tool for that when you ask]"

FindWorkspace: TypeAlias = Callable[[OwedReply], Awaitable[Workspace]]
"""What may go out with a reply. Asked at each: the configuration may have changed."""


@dataclass(frozen=True, slots=True)
class ReplyFiles:
    """Where the files of replies lie here, and those that hooks may put beside one."""

    shared: SharedFiles
    find_workspace: FindWorkspace


async def attach_allowed(reply: Reply, wanted: Sequence[Attachment], workspace: Workspace) -> Reply:
    """Returns the reply with those files of `wanted` that may go out; what it had before is not judged again."""
    kept: list[Attachment] = []
    left_out: list[str] = []
    for one in wanted:
        if one in reply.attachments:
            kept.append(one)
            continue
        try:
            place = await anyio.to_thread.run_sync(workspace.resolve, path_from(one.path))
            kept.append(dataclasses.replace(one, path=str(place), name=one.name or place.name))
        except AgentError as error:
            log.warning("a file that was to go with %s is not sent: %s", reply.id, error)
            name = display_name_of(one.name or one.path)
            left_out.append(f"[the file {name} is not sent: it is not there, or may not be taken from there]")
    text = "\n".join([*([reply.text] if reply.text else []), *left_out])
    return dataclasses.replace(reply, text=text, attachments=tuple(kept))


async def attach_files(reply: Reply, names: Sequence[str], workspace: Workspace | None) -> Reply:
    """The reply with the files that its answer names; without a workspace, with the words that none is sent."""
    if workspace is None:
        return dataclasses.replace(reply, text=f"{reply.text}\n{NO_TOOL}".strip())
    wanted = [Attachment("document", name) for name in names[:MOST_NAMED]]
    named = await attach_allowed(reply, wanted, workspace)
    files = [await anyio.to_thread.run_sync(describe_file, one) for one in named.attachments]
    if (more := len(names) - MOST_NAMED) > 0:
        text = f"{named.text}\n[{more} more files are not sent: an answer has {MOST_NAMED} at most]".strip()
        named = dataclasses.replace(named, text=text)
    return dataclasses.replace(named, attachments=tuple(files))


def describe_file(named: Attachment) -> Attachment:
    """The same file, as what its name says it is; one that has gone meanwhile stays what it is called."""
    try:
        return attachment_from(Path(named.path))
    except OSError:
        return named


def path_from(spelled: str) -> str:
    """Returns the path of a file that is named by its path or by a `file:` address.

    Raises:
        AgentError: the address is not one of a file here.
    """
    if not spelled.lower().startswith(FILE_SCHEME):
        return spelled
    address = urlsplit(spelled)
    if address.netloc not in ("", "localhost"):
        raise AgentError(f"{spelled} lies on another machine")
    return unquote(address.path)


def display_name_of(name: str) -> str:
    """What somebody calls a file, for people to read: one line, and no path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(sign for sign in last if sign.isprintable())[:LONGEST_NAME]
