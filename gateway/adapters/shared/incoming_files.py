"""Where files from chats are kept: below one folder of ours, under names of ours. A sender chooses nothing of a path.

A name is made from what identifies the file on its network, so that a message that is read twice has its files once.
"""

import os
import re
from pathlib import Path
from typing import Final

import anyio.to_thread

from gateway.messages import Attachment
from gateway.records import token_of

SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,8}\Z")
LONGEST_NAME = 200


async def save_file(folder: Path, identity: str, data: bytes, about: Attachment) -> Attachment:
    """Write a file; `about` says what it is, and comes back with its place and size."""
    name = display_name_of(about.name)
    suffix = SUFFIX.search(name.lower())
    path = folder / f"{token_of(identity)}{suffix.group() if suffix else ''}"
    await anyio.to_thread.run_sync(write_file, path, data)
    return Attachment(about.kind, str(path), name, about.media_type, len(data))


def display_name_of(name: str) -> str:
    """What the sender calls the file, for people to read: one line, and no path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(sign for sign in last if sign.isprintable())[:LONGEST_NAME]


def write_file(path: Path, data: bytes) -> None:
    """The whole file or none of it, for the owner's eyes."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    beside.replace(path)
