"""Conversion of pictures that models do not accept, and extraction of text from PDFs.

The work is done elsewhere (`MediaReader`), with optional libraries. A converted picture is kept beside the original
under a name of its own, so that it is made once, and is removed with the original.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from gateway.agent.pictures import NOT_READABLE, find_picture, read_header
from gateway.errors import AgentError
from gateway.files.folders import find_shown_path, open_received_file, read_whole, write_file
from gateway.messages.message import Attachment
from gateway.messages.transcript import Picture
from gateway.threads import run_in_thread

SIDE = 1568  # pixels; models that are shown more make it that many themselves
PICTURE_SUFFIXES = {"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp"}
LARGEST_READ = 64_000_000  # bytes of a picture or a PDF


class DocumentText(NamedTuple):
    """The text of a PDF, or its beginning, and the number of its pages."""

    text: str
    pages: int


class MediaReader(Protocol):
    """A reader of pictures and PDFs. Each method raises AgentError, in words, if that is impossible."""

    @property
    def missing(self) -> str:
        """Describe for people what is not installed; "" if nothing is missing."""
        ...

    async def fit_picture(self, data: bytes) -> bytes:
        """Return the picture as a JPEG that is small enough."""
        ...

    async def read_document(self, data: bytes, limit: int) -> DocumentText:
        """Return its text, longer than `limit` characters if it was cut."""
        ...

    async def render_page(self, data: bytes, number: int) -> bytes:
        """Render one of its pages, from 0, as a JPEG that is small enough."""
        ...


async def show_picture(one: Attachment, media: MediaReader) -> Picture | str:
    """Return the picture in a form that a model accepts, or the reason in words."""
    found = await run_in_thread(find_picture, one)
    if isinstance(found, Picture) or found == NOT_READABLE:
        return found
    path, made = Path(one.path), find_shown_path(Path(one.path), 1)
    if isinstance(known := await run_in_thread(find_shown_picture, made), Picture):
        return known
    if media.missing:
        return f"{found}; {media.missing}"
    try:
        return await keep_picture(await media.fit_picture(await read_received(path)), made, path)
    except AgentError as error:
        return str(error)


async def keep_tool_picture(folder: Path, media: MediaReader, data: bytes) -> tuple[str, Picture | None]:
    """Keep a picture from a tool as a file of the conversation. Returns words for the model, and a picture to show.

    The file is named by a digest, like a file that came in, so that it is removed like one.
    """

    def write() -> Path:
        path = folder / f"{hashlib.sha256(data).hexdigest()[:24]}{PICTURE_SUFFIXES.get(mime, '')}"
        write_file(path, data)
        return path

    mime = (read_header(data) or ("application/octet-stream", 0, 0))[0]
    about = f"a picture ({mime}, {len(data)} bytes)"
    try:
        path = await run_in_thread(write)
    except OSError as error:
        return f"[{about} that cannot be kept: {error.strerror}]", None
    found = await show_picture(Attachment("image", str(path), path.name, mime, len(data)), media)
    if isinstance(found, Picture):
        return f"[{about}, in {path}]", found
    return f"[{about}, in {path}; you are not shown it: {found}]", None


def find_shown_picture(made: Path) -> Picture | str:
    return find_picture(Attachment("image", str(made)))


async def keep_picture(data: bytes, made: Path, received: Path) -> Picture | str:
    """Write down what was made of a file; it is as old as that, so both go together."""

    def write() -> Picture | str:
        write_file(made, data)
        age = received.stat().st_mtime
        os.utime(made, (age, age))
        return find_shown_picture(made)

    try:
        return await run_in_thread(write)
    except OSError as error:
        return f"what was made of it cannot be kept: {error.strerror}"


async def read_received(path: Path) -> bytes:
    """Read a received file. Raises AgentError if it is too large or unreadable."""
    try:
        return await run_in_thread(lambda: read_whole(open_received_file(path), LARGEST_READ))
    except OverflowError:
        raise AgentError(f"it has more than {LARGEST_READ / 1e6:.0f} MB") from None
    except OSError:
        raise AgentError(NOT_READABLE) from None
