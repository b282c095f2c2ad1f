"""The files of chats, both ways.

An incoming file is kept below one folder of ours, under a name of ours: a sender chooses no part of a path. The name is
made from the file's identity on its network, so a message that is read twice has its files once.

The path of an outgoing file is the resolved one; so no link in it is followed, and a folder that is replaced by a link
later leads nowhere.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar

import anyio
import msgspec

from gateway.dispatcher.attachments import display_name_of
from gateway.errors import AdapterError
from gateway.files.folders import find_new_path, open_new_file, open_plain_file, put_in_place, read_whole, write_file
from gateway.messages.message import Attachment, AttachmentKind
from gateway.messages.parts import MessagePart
from gateway.records.subjects import token_of
from gateway.threads import run_in_thread

SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,8}\Z")
PATIENCE = 60.0  # seconds for one file to download

log = logging.getLogger(__name__)


class TextFile(msgspec.Struct, frozen=True):
    """A text that is sent as a file, and is on no disk."""

    name: str
    text: str
    kind: ClassVar[AttachmentKind] = "document"


OutboundFile: TypeAlias = Attachment | TextFile
TextT = TypeVar("TextT")


class FileMessage(msgspec.Struct, Generic[TextT], frozen=True):
    """Files that are sent as one message, with their text; or a part that is neither file nor text."""

    files: tuple[OutboundFile, ...]
    text: TextT | None = None
    part: MessagePart | None = None  # in place of files


class LoadedFile(msgspec.Struct, frozen=True):
    """An outgoing file, with its bytes."""

    name: str
    kind: AttachmentKind
    data: bytes


class LoadedMessage(msgspec.Struct, Generic[TextT], frozen=True):
    """The content of one sending: files with their text, or a text alone; then words for each file that cannot go."""

    files: tuple[LoadedFile, ...]
    text: TextT | None
    unsent: tuple[TextT, ...] = ()
    part: MessagePart | None = None

    @property
    def texts(self) -> tuple[TextT, ...]:
        """The texts that go out without a file."""
        alone = (self.text,) if self.text is not None and not self.files else ()
        return (*alone, *self.unsent)


async def fetch_file(
    about: Attachment, identity: str, folder: Path, largest: int, download: Callable[[], Awaitable[bytes]]
) -> Attachment | str:
    """Download a file to our store; return it, or the reason why it is missing: the message is kept without its file.

    `about` is the network's description of the file; `download` raises an `AdapterError` if the bytes are not
    available.
    """
    name = display_name_of(about.name)
    if about.size > largest:
        return f"[the file {name} has {about.size / 1e6:.0f} MB; {largest / 1e6:.0f} MB are fetched at most]"
    try:
        with anyio.fail_after(PATIENCE):
            data = await download()
        path = folder / file_name_of(identity, name)
        await run_in_thread(write_file, path, data)
        return Attachment(about.kind, str(path), name, about.media_type, len(data))
    except TimeoutError:
        why = f"it took more than {PATIENCE:.0f} s"
    except AdapterError as error:
        why = str(error)
    except OSError as error:
        why = f"it cannot be kept: {error.strerror}"
    log.warning("the file %s cannot be fetched: %s", name, why)
    return f"[the file {name} could not be fetched: {why}]"


def file_name_of(identity: str, name: str) -> str:
    """Return the stored name of an incoming file: made from its identity, with only the suffix of its name."""
    suffix = SUFFIX.search(name.lower())
    return f"{token_of(identity)}{suffix.group() if suffix else ''}"


async def write_pieces(path: Path, pieces: AsyncIterator[bytes]) -> int:
    """Write a whole file from pieces, or none, and return its size. No other writer may use the path meanwhile."""
    size = 0
    with await run_in_thread(open_new_file, path) as file:
        try:
            async for piece in pieces:
                size += await run_in_thread(file.write, piece)
            await run_in_thread(put_in_place, file, path)
        except BaseException:
            find_new_path(path).unlink(missing_ok=True)
            raise
    return size


async def read_attachment(attachment: OutboundFile, largest: int, network: str) -> tuple[str, bytes]:
    """Return the name and the bytes of an outgoing file; `largest` is the network's limit.

    Raises:
        AdapterError: it was not found, is not a plain file, or is too large.
    """
    if isinstance(attachment, TextFile):
        return attachment.name, attachment.text.encode("utf-8", "replace")
    path = Path(attachment.path)
    name = attachment.name or path.name
    try:
        return name, await run_in_thread(lambda: read_whole(open_plain_file(path), largest))
    except FileNotFoundError:
        why = f"file {path} not found"
    except OverflowError as error:
        why = f"{name} has {int(str(error)) / 1e6:.0f} MB; {network} takes {largest / 1e6:.0f} MB"
    except OSError as error:
        why = f"{name} cannot be read: {error.strerror}"
    raise AdapterError(why, permanent=True)
