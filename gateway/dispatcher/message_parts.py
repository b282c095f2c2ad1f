"""The input of an agent: a message's text, and the parts of its files that a model can see.

The text is followed by each file's local name. A picture becomes a part; a text file is quoted in the text, as far as
there is room; a PDF becomes both, if the libraries for PDFs are installed. The text names each thing that is left out,
with the reason, so that the agent can tell the person, or read the file with its tools.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from gateway.agent.media import (
    MediaReader,
    find_shown_picture,
    keep_picture,
    keep_tool_picture,
    read_received,
    show_picture,
)
from gateway.agent.pictures import NOT_READABLE, is_picture
from gateway.errors import AgentError
from gateway.files.folders import find_shown_path, open_received_file
from gateway.messages.files import HomeFiles
from gateway.messages.message import Attachment, Message
from gateway.messages.pieces import quote_heard
from gateway.messages.transcript import Entry, Picture
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

MOST_TEXT = 30_000  # characters of all files of a message
MOST_PAGES = 4  # of a PDF, as pictures
BINARY = bytes((*range(7), *range(14, 27), *range(28, 32)))  # bytes that no text contains


class ShownFile(msgspec.Struct, frozen=True):
    """The part of a file that a model sees: words about the file, its text, and pictures."""

    about: str = ""
    text: str = ""
    parts: tuple[Picture, ...] = ()


class MessageSurroundings(Protocol):
    """The services that read files, and share them with other gateways."""

    @property
    def media(self) -> MediaReader: ...

    @property
    def shared(self) -> HomeFiles: ...


async def make_entry(message: Message, around: MessageSurroundings) -> Entry:
    """Make the agent's input: overheard messages, the text, the files by their local names, and the pictures.

    Pictures that are made of the message's files are available to later turns too, on any node.
    """
    before, _ = quote_heard(message.address, message.heard)
    lines = [message.text] if message.text else []
    parts: list[Picture] = []
    room = MOST_TEXT
    for one in message.attachments:
        shown = await show_file(one, around.media, room)
        room -= len(shown.text)
        parts += shown.parts
        lines.append(describe_file(one, shown.about))
        if shown.text:
            lines += [shown.text, f"[end of {one.name or 'it'}]"]
    for path in {part.path for part in parts} - {one.path for one in message.attachments}:
        await around.shared.put(Path(path))
    return Entry("user", before + "\n".join(lines), parts=tuple(parts))


async def keep_shared_picture(around: MessageSurroundings, folder: Path, data: bytes) -> tuple[str, Picture | None]:
    """Keep a tool's picture like `keep_tool_picture`, and share the picture with later turns on any node."""
    words, picture = await keep_tool_picture(folder, around.media, data)
    if picture:
        await around.shared.put(Path(picture.path))
    return words, picture


def describe_file(one: Attachment, about: str) -> str:
    """Return the line that names a file."""
    where = f"{one.name or 'without a name'} ({one.media_type}, {one.size} bytes), in {one.path}"
    what = f"the message that this answers has the {one.kind}" if one.is_quoted else f"attached {one.kind}"
    return f"[{what}: {where}{f'; {about}' if about else ''}]"


async def show_file(one: Attachment, media: MediaReader, room: int) -> ShownFile:
    """Return the visible part of a file; `room` is the number of characters that still fit."""
    if is_picture(one):
        found = await show_picture(one, media)
        return ShownFile(parts=(found,)) if isinstance(found, Picture) else ShownFile(f"you are not shown it: {found}")
    if one.kind != "document":
        return ShownFile()
    try:
        begin = await run_in_thread(_read_beginning, Path(one.path), 4 * room)
    except OSError:
        return ShownFile(f"you are not shown it: {NOT_READABLE}")
    if begin.startswith(b"%PDF-"):
        return await _show_pdf(one, media, room)
    text = text_of(begin)
    return _show_text(text, room, is_whole=len(begin) == one.size) if text else ShownFile()


def text_of(data: bytes) -> str:
    """Return the text of a file that starts with these bytes; "" if the file is not text."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    if encoding != "utf-16" and data.translate(None, BINARY) != data:
        return ""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data).replace("\r\n", "\n").strip()
    except UnicodeDecodeError:
        return ""


def _show_text(text: str, room: int, *, is_whole: bool = True) -> ShownFile:
    if room <= 0:
        return ShownFile("its text does not fit here: read it with your tools")
    if is_whole and len(text) <= room:
        return ShownFile("its text:", text)
    return ShownFile(f"the first {min(room, len(text))} characters of its text:", text[:room])


async def _show_pdf(one: Attachment, media: MediaReader, room: int) -> ShownFile:
    if media.missing:
        return ShownFile(f"you are not shown what is in it: {media.missing}")
    path = Path(one.path)
    try:
        data = await read_received(path)
        found = await media.read_document(data, max(room, 0))
        pages = [await _show_page(path, data, number, media) for number in range(min(found.pages, MOST_PAGES))]
    except AgentError as error:
        return ShownFile(f"you are not shown what is in it: {error}")
    text = _show_text(found.text, room) if found.text else ShownFile("it has no text of its own")
    count = (
        f"{format_count(found.pages, 'page')}, of which you are shown {_range_of(pages)} as pictures; " if pages else ""
    )
    return ShownFile(f"{count}{text.about}", text.text, tuple(pages))


async def _show_page(path: Path, data: bytes, number: int, media: MediaReader) -> Picture:
    made = find_shown_path(path, number + 1)
    found = await run_in_thread(find_shown_picture, made)
    if not isinstance(found, Picture):
        found = await keep_picture(await media.render_page(data, number), made, path)
    if not isinstance(found, Picture):
        raise AgentError(found)
    return found


def _range_of(pages: Sequence[Picture]) -> str:
    return "the first" if len(pages) == 1 else f"the first {len(pages)}"


def _read_beginning(path: Path, length: int) -> bytes:
    with open_received_file(path) as file:
        return file.read(max(length, 1000))
