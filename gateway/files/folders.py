"""The folders of conversations: files that people sent, and files that the agent keeps for them.

A direct chat has the folder of its person, `files/PLATFORM/ID`; a chat of several, or a thread of it, has one of its
own, `files/PLATFORM/chat.ID` and `files/PLATFORM/chat.ID.THREAD`. Ids come from the networks, and are escaped so that
none leads elsewhere and no two are equal: letters, digits, `-` and `_` stay, any other character becomes its number,
and a dot is ours alone.

The module knows nothing else of the gateway: workers import it too.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

FOLDER = "files"
SENT = ".sent"  # the folder of outgoing files; no network has this name
MOST_SEGMENTS = 3  # of a key, a path below the folder of all files: a file has the same on every gateway
SEGMENT: Final = re.compile(r"[A-Za-z0-9%_.-]{1,200}")
LONGEST_NAME = 100
EMPTY_ID = "%"  # no other id is written so
UNCLAIMED = ".unclaimed"  # files from before such folders existed, whose senders are unknown
# A file that came in, as we call it, and what was made of it for a model. So these are known from what the agent wrote
# beside them, which does not go by itself.
RECEIVED_NAME: Final = re.compile(r"[0-9a-f]{24}(-[0-9]{1,2})?(\.[a-z0-9]{1,8})?")
# Files that agents take instructions from, and folders whose settings run programs or steer agents; in small letters.
INSTRUCTIONS = frozenset(
    {
        *("agents.md", "agent.md", "claude.md", "claude.local.md", "gemini.md", "hermes.md", ".hermes.md", "soul.md"),
        *("skill.md", "copilot-instructions.md", ".cursorrules", ".clinerules", ".windsurfrules", ".mcp.json"),
    }
)
STEERING_FOLDERS = frozenset({".claude", ".cursor", ".hermes"})
INSTRUCTION_FOLDERS = STEERING_FOLDERS | {".git", ".hg"}
OPEN_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not hold us up


def find_file_folder(files: Path, platform: str, user_id: str, *, chat_type: str, chat_id: str, thread_id: str) -> Path:
    """Return the folder of a person's conversation in this chat, which need not exist."""
    if chat_type == "dm":
        return files / f"{escape_id(platform)}/{escape_id(user_id)}"
    place = [chat_id, *([thread_id] if thread_id else [])]
    return files / f"{escape_id(platform)}/{'.'.join(['chat', *map(escape_id, place)])}"


@lru_cache(1024)
def escape_id(written: str) -> str:
    """Escape an id as the name of a folder."""
    name = quote(written, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E")
    if len(name) > LONGEST_NAME:
        return f"{name[:LONGEST_NAME]}.{hashlib.sha256(name.encode()).hexdigest()}"
    return name or EMPTY_ID


def key_of(path: Path) -> str:
    """Return the key of a path, perhaps by another gateway, by its end; "" if it is not a file of a conversation."""
    *_, folder, network, conversation, name = ("", "", "", "", *path.parts)
    key = f"{network}/{conversation}/{name}"
    return key if folder == FOLDER and RECEIVED_NAME.fullmatch(name) and is_key(key) else ""


def is_key(key: str) -> bool:
    segments = key.split("/")
    return len(segments) <= MOST_SEGMENTS and all(map(is_segment, segments))


def is_segment(text: str) -> bool:
    return text not in (".", "..") and SEGMENT.fullmatch(text) is not None


def is_sent(path: Path) -> bool:
    """Return True if the file is in the folder of outgoing files."""
    return path.parts[-3:-2] == (SENT,)


def find_shown_path(received: Path, number: int) -> Path:
    """Return the path of a picture that was made of a received file, or of its page of this number."""
    return received.with_name(f"{received.stem}-{number}.jpg")


def list_shown_files(received: Path) -> list[Path]:
    """List all pictures that were made of a received file."""
    return list(received.parent.glob(f"{received.stem}-*.jpg")) if RECEIVED_NAME.fullmatch(received.name) else []


def open_received_file(path: Path) -> BinaryIO:
    """Open a received file. Its folder may be a link of our own configuration; the file itself is not a link.

    Raises:
        OSError: it cannot be opened.
    """
    return open_plain_file(path.parent.resolve() / path.name)


def open_plain_file(path: Path) -> BufferedReader:
    """Open a plain file, reached from the root of all folders without following a link.

    Raises:
        OSError: it cannot be opened.
    """
    folder = os.open(path.anchor or "/", OPEN_FOLDER)
    try:
        for part in path.parts[1:-1]:
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        file = os.fdopen(os.open(path.name, OPEN_FILE, dir_fd=folder), "rb")
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileNotFoundError(path)
    return file


def read_plain_file(path: Path, most: int = -1) -> bytes:
    """Return the content of a plain file, also where a link leads to it; no more than so many bytes.

    Raises:
        OSError: it cannot be read, or is another thing, such as a named pipe, which would hold us up for ever.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(most)


def read_whole(file: BinaryIO, largest: int) -> bytes:
    """Read the whole file and close it.

    Raises:
        OverflowError: it is too large; the error has its size.
    """
    with file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > largest else file.read(largest + 1)  # it may grow meanwhile
    if max(size, len(data)) > largest:
        raise OverflowError(max(size, len(data)))
    return data


def write_file(path: Path, data: bytes) -> None:
    """Write the whole file or none of it, readable by the owner alone."""
    with open_new_file(path) as file:
        file.write(data)
        put_in_place(file, path)


def open_new_file(path: Path) -> BinaryIO:
    """Open a new file, which is put in place when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = find_new_path(path)
    beside.unlink(missing_ok=True)
    return os.fdopen(os.open(beside, OPEN_NEW, 0o600), "wb")


def put_in_place(file: BinaryIO, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    find_new_path(path).replace(path)


def find_new_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


@contextmanager
def lock_path(place: Path, flags: int = os.O_RDONLY | os.O_DIRECTORY) -> Generator[int, None, None]:
    """Lock a file or folder while inside, and yield its descriptor. BlockingIOError: another process has it."""
    descriptor = os.open(place, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)
