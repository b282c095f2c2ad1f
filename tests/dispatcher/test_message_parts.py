"""The agent's view of a message's files, with and without the libraries for them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.agent import libraries
from gateway.agent.libraries import describe_install
from gateway.dispatcher.message_parts import MOST_TEXT, make_entry, text_of
from gateway.messages.files import HomeFiles
from gateway.messages.message import Address, Attachment, Message, attachment_from
from tests.dispatcher.room import WithoutMedia
from tests.parser.media_files import noisy_jpeg, picture, text_pdf


class Around:
    """Nobody reads pictures, and there is one gateway."""

    def __init__(self) -> None:
        self.media = WithoutMedia()
        self.shared = HomeFiles(Path("/nowhere/files"))


def message_with(*files: Path) -> Message:
    return Message("1", Address("net", "1"), "7", "look", attachments=tuple(attachment_from(one) for one in files))


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


async def lines_of(*files: Path) -> Sequence[str]:
    return (await make_entry(message_with(*files), Around())).content.split("\n")


async def test_without_the_extra_what_is_not_shown_is_named_with_what_it_needs(tmp_path: Path) -> None:
    large = write(tmp_path, "large.jpg", noisy_jpeg(1500, 1500))
    other = write(tmp_path, "other.tiff", picture("TIFF", 5, 5))
    letter = write(tmp_path, "letter.pdf", text_pdf("Dear Ann"))
    small = write(tmp_path, "small.png", picture("PNG", 5, 5))
    entry = await make_entry(message_with(large, other, letter, small), Around())
    text, *lines = entry.content.split("\n")
    assert text == "look"
    size = f"(image/jpeg, {large.stat().st_size} bytes)"
    reason = "you are not shown it: it has more than 1.5 MB; that needs what is not installed here"
    assert lines[0] == f"[attached image: large.jpg {size}, in {large}; {reason}]"
    assert lines[1].endswith(
        "you are not shown it: it is not a JPEG, PNG, GIF or WebP; that needs what is not installed here]"
    )
    assert lines[2].endswith("you are not shown what is in it: that needs what is not installed here]")
    assert lines[3].endswith(f"in {small}]")
    assert [part.path for part in entry.parts] == [str(small)]


async def test_texts_stand_in_the_text_as_far_as_there_is_room(tmp_path: Path) -> None:
    short = write(tmp_path, "short.md", b"one\r\ntwo")
    long = write(tmp_path, "long.txt", "ä".encode() * (MOST_TEXT + 5))
    late = write(tmp_path, "late.txt", b"three")
    lines = await lines_of(short, long, late)
    assert lines[1].endswith("; its text:]")
    assert lines[2:5] == ["one", "two", "[end of short.md]"]
    left = MOST_TEXT - len("one\ntwo")
    assert lines[5].endswith(f"; the first {left} characters of its text:]")
    assert lines[6] == "ä" * left
    assert lines[8].endswith("; its text does not fit here: read it with your tools]")
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfone", "one"),
        ("zwölf".encode("utf-16"), "zwölf"),
        ("zwölf".encode()[:3], "zw"),
        ("zwölf".encode("latin-1"), ""),
        (b"a\0b", ""),
        (b"", ""),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ],
)
def test_what_is_no_text_is_not_taken_for_one(data: bytes, text: str) -> None:
    assert text_of(data) == text


async def test_a_file_that_is_gone_is_named_all_the_same(tmp_path: Path) -> None:
    gone = Message(
        "1", Address("net", "1"), "7", "", attachments=(Attachment("document", str(tmp_path / "gone"), "gone"),)
    )
    assert "you are not shown it: it cannot be read]" in (await make_entry(gone, Around())).content


def test_the_line_that_installs_an_extra_names_it_and_what_it_brings() -> None:
    line = describe_install("media")
    assert line.startswith("that needs the extra `media`, which whoever runs the gateway installs with: ")
    assert line.endswith(" ".join(libraries.EXTRAS["media"]))
