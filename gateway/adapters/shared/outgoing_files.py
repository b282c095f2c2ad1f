"""Files that go out: their bytes, or in words why there are none.

Whoever owes a file names where it really lies; so no link is followed here, and a folder that is swapped for one
between then and now leads nowhere.
"""

import os
import stat
from pathlib import Path

import anyio.to_thread

from gateway.errors import AdapterError
from gateway.messages import Attachment

OPEN_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not hold us up


async def read_attachment(attachment: Attachment, largest: int, network: str) -> bytes:
    """The bytes of a file that goes out; `largest` is what the network takes.

    Raises:
        AdapterError: it is not there, no plain file, or too large.
    """
    path = Path(attachment.path)
    name = attachment.name or path.name
    try:
        return await anyio.to_thread.run_sync(read_plain_file, path, largest)
    except FileNotFoundError:
        why = f"there is no file {path}"
    except OverflowError as error:
        why = f"{name} has {int(str(error)) / 1e6:.0f} MB; {network} takes {largest / 1e6:.0f} MB"
    except OSError as error:
        why = f"{name} cannot be read: {error.strerror}"
    raise AdapterError(why, permanent=True)


def read_plain_file(path: Path, largest: int) -> bytes:
    """A plain file, reached from the root of all folders without following a link.

    Raises:
        OSError: it is not to be had.
        OverflowError: it has so many bytes, which is too many.
    """
    folder = os.open(path.anchor or "/", OPEN_FOLDER)
    try:
        for part in path.parts[1:-1]:
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        with os.fdopen(os.open(path.name, OPEN_FILE, dir_fd=folder), "rb") as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode):
                raise FileNotFoundError(path)
            if known.st_size > largest:
                raise OverflowError(known.st_size)
            return file.read()
    finally:
        os.close(folder)
