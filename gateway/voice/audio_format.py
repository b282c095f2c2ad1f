"""The format of audio data, and the length and loudness of a voice note (Opus in Ogg, as networks want it).

Nothing is decoded: a packet of Opus has more bytes for louder sound, and the pages of Ogg hold the length.
"""

from collections.abc import Iterator
from typing import NamedTuple

RATE = 48_000  # in which Ogg counts the samples of Opus, whatever was recorded
NOTE_TYPE = "audio/ogg"
SUFFIXES = {NOTE_TYPE: ".ogg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/flac": ".flac", "audio/mp4": ".m4a"}
PAGE_HEAD = 27  # bytes of a page of Ogg before its table of segments


class NoteShape(NamedTuple):
    """The length of a voice note, in seconds, and the loudness of each of some equal pieces of it, from 0 to 255."""

    seconds: float
    loudness: bytes


def infer_media_type(data: bytes) -> str:
    """Infer the media type by the first bytes; empty for unknown audio. Ogg counts only with Opus in it."""
    begin = data[:64]
    if begin[:4] == b"OggS":
        return NOTE_TYPE if b"OpusHead" in begin else ""
    if begin[:4] == b"RIFF" and begin[8:12] == b"WAVE":
        return "audio/wav"
    if begin[:3] == b"ID3" or (begin[:1] == b"\xff" and begin[1:2] > b"\xdf"):
        return "audio/mpeg"
    if begin[:4] == b"fLaC":
        return "audio/flac"
    return "audio/mp4" if begin[4:8] == b"ftyp" else ""


def calculate_shape(note: bytes, pieces: int) -> NoteShape:
    """Calculate the shape of a voice note; a damaged one has no length."""
    sizes, samples, skipped = list[int](), 0, 0
    for page in _read_pages(note):
        if page.body.startswith(b"OpusHead"):
            skipped = int.from_bytes(page.body[10:12], "little")
        elif not page.body.startswith(b"OpusTags"):
            sizes += page.packets
            samples = max(samples, page.samples)
    seconds = max(samples - skipped, 0) / RATE
    if not sizes:
        return NoteShape(seconds, bytes(1))
    count = min(pieces, len(sizes))
    groups = [sizes[at * len(sizes) // count : (at + 1) * len(sizes) // count] for at in range(count)]
    means = [sum(group) / len(group) for group in groups]
    return NoteShape(seconds, bytes(round(255 * mean / max(*means, 1.0)) for mean in means))


class _OggPage(NamedTuple):
    samples: int
    packets: tuple[int, ...]  # their sizes
    body: bytes


def _read_pages(data: bytes) -> Iterator[_OggPage]:
    at = 0
    while data[at : at + 4] == b"OggS" and at + PAGE_HEAD < len(data):
        table = data[at + PAGE_HEAD : at + PAGE_HEAD + data[at + 26]]
        begin = at + PAGE_HEAD + len(table)
        packets, size = list[int](), 0
        for part in table:
            size += part
            if part < 255:
                packets.append(size)
                size = 0
        position = int.from_bytes(data[at + 6 : at + 14], "little", signed=True)
        at = begin + sum(table)
        yield _OggPage(position, tuple(packets), data[begin : min(at, begin + 64)])
