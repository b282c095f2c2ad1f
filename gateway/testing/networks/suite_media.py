"""The media on every chat network: the agent gets pictures and voice, and those that it sends arrive as such.

Like `suite`: a file of tests that imports all of this module and has a fixture `wire` runs it.
"""

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import Wire

PICTURE = b64decode(  # a PNG of 37 x 23 pixels
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7Ru0jCAApBwEyyIYo"
    "iAAAAABJRU5ErkJggg=="
)
OPUS = "OggS0000000000000000000000000000OpusHead"
EARS = 'voice: {transcribe: {command: [cat, "{file}"]}}\n'  # the audio is the words themselves
MOUTH = f'voice: {{speak: {{command: [sh, -c, "printf {OPUS}; cat"]}}}}\n'
pytestmark = pytest.mark.anyio


async def asked(house: House, count: int = 1) -> dict[str, Any]:
    """Return the last message to the model, after this many calls."""
    await until(lambda: len(house.told("llm:before")) >= count, f"question {count} to the model")
    newest: dict[str, Any] = house.told("llm:before")[-1]["messages"][-1]
    return newest


def paths_of(message: dict[str, Any]) -> list[str]:
    """Return the paths of the pictures in a message to the model."""
    return [one["path"] for one in message.get("parts", ())]


async def test_a_picture_that_a_message_answers_is_shown_too(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        answered = await wire.upload(("barn.jpg", PICTURE), caption="for later")
        await house.shows("I heard you.")
        await wire.write("what is it?", reply_to=answered)
        message = await asked(house, 2)
        received = await house.hears("message:received", 2)
        assert [one["is_quoted"] for one in received[-1]["attachments"]] == [True]
        assert paths_of(message) == [one["path"] for one in received[-1]["attachments"]]


async def test_a_voice_note_is_heard(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=EARS) as house:
        await wire.upload(("voice.ogg", b"what is it?"))
        await house.shows("It is 42.")
        (received,) = await house.hears("message:received")
        (file,) = received["attachments"]
        assert (received["text"], file["kind"] in ("voice", "audio")) == ("what is it?", True)
        (before,), (after,) = house.told("audio:before"), house.told("audio:after")
        assert (before["file"]["path"], after["text"]) == (file["path"], "what is it?")


async def test_who_wants_it_hears_the_answer_behind_its_text(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=MOUTH) as house:
        await wire.write("/voice on")
        await house.shows("are spoken too.")
        await wire.write("what is it?")
        await until(lambda: any(one.file for one in wire.shown), "the voice note")
        text, note = wire.shown[-2:]
        assert "It is 42." in text.text
        assert note.file == f"{OPUS}It is 42.".encode()
