"""Pictures on their way to a model: which may go as they are, and how a request holds them.

A picture is a file that a person sent, in the folder of their conversation. Its type and size are read from its header,
whatever its sender claims; it is never decoded here. An entry of the transcript names it by path and digest. The bytes
are read when a request is made, and only if they are those that came: the folder is open to the agent's tools, so no
link is followed, and a file with another digest is not shown.
"""

import hashlib
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from gateway.files.folders import open_received_file, read_whole
from gateway.messages.message import Attachment
from gateway.messages.transcript import Entry, Picture

LARGEST = 1_500_000  # bytes of one picture
WIDEST = 4096  # pixels a side
LARGEST_SUM = 12_000_000  # bytes of all pictures of one request; endpoints refuse more than about twice of it
SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".ico", ".heic")
PARTS = attrgetter("parts")
NOT_TAKEN = "it is not a JPEG, PNG, GIF or WebP"
NOT_READABLE = "it cannot be read"


def is_picture(attachment: Attachment) -> bool:
    """Return True if its network or its sender calls it a picture."""
    is_called = attachment.kind == "image" or attachment.media_type.startswith("image/")
    return is_called or attachment.name.lower().endswith(SUFFIXES)


def find_picture(attachment: Attachment) -> Picture | str:
    """Return the picture in a form that a model accepts, or the reason in words."""
    try:
        data = read_whole(open_received_file(Path(attachment.path)), LARGEST)
    except OverflowError:
        return f"it has more than {LARGEST / 1e6:g} MB"
    except OSError:
        return NOT_READABLE
    header = read_header(data)
    if header is None:
        return NOT_TAKEN
    mime, width, height = header
    if not (0 < width <= WIDEST and 0 < height <= WIDEST):
        return f"it has {width} x {height} pixels, and {WIDEST} a side are shown at most"
    return Picture("image", attachment.path, hashlib.sha256(data).hexdigest(), len(data), mime)


def load_pictures(entries: Sequence[Entry]) -> dict[str, str]:
    """Load the pictures of a request by their digest, in base64: the newest ones, as far as they still exist."""
    loaded: dict[str, str] = {}
    left = LARGEST_SUM
    for part in (part for entry in reversed(entries) for part in entry.parts):
        if part.digest in loaded:
            continue
        try:
            data = read_whole(open_received_file(Path(part.path)), LARGEST)
        except (OSError, OverflowError):
            continue
        if hashlib.sha256(data).hexdigest() == part.digest and len(data) <= left:
            loaded[part.digest] = b64encode(data).decode()
            left -= len(data)
    return loaded


def describe_withheld_pictures(entry: Entry, pictures: Mapping[str, str]) -> str:
    """Return the text of an entry, with the paths of those of its pictures that are not shown."""
    withheld = [f"[you are not shown the picture in {one.path}]" for one in entry.parts if one.digest not in pictures]
    return "\n".join([*([entry.content] if entry.content else []), *withheld])


def limit_pictures(history: tuple[Entry, ...], turns: int) -> tuple[Entry, ...]:
    """Return the history before a turn, with the pictures of so many turns."""
    if not any(map(PARTS, history)):
        return history
    kept = list(history)
    for place in range(len(kept) - 1, -1, -1):
        if turns <= 0 and kept[place].parts:
            kept[place] = msgspec.structs.replace(kept[place], parts=())
        turns -= kept[place].role == "user"
    return tuple(kept)


def read_header(data: bytes) -> tuple[str, int, int] | None:
    """Return media type, width and height of a JPEG, PNG, GIF or WebP; None for other or incomplete data."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return ("image/png", *struct.unpack_from(">II", data, 16))
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return ("image/gif", *struct.unpack_from("<HH", data, 6))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _read_webp(data)
        return _read_jpeg(data) if data.startswith(b"\xff\xd8") else None
    except (struct.error, IndexError):
        return None


def _read_webp(data: bytes) -> tuple[str, int, int] | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return "image/webp", width & 0x3FFF, height & 0x3FFF
        case b"VP8L" if data[20] == 0x2F:
            (bits,) = struct.unpack_from("<I", data, 21)
            return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(data) >= 30:
            width, height = (int.from_bytes(data[begin : begin + 3], "little") + 1 for begin in (24, 27))
            return "image/webp", width, height
    return None


def _read_jpeg(data: bytes) -> tuple[str, int, int] | None:
    """Find the size in the first frame header; segments precede it, each with its length."""
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # a byte that fills
            place += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return "image/jpeg", width, height
        (length,) = struct.unpack_from(">H", data, place + 2)
        place += 2 + max(length, 2)
    return None
