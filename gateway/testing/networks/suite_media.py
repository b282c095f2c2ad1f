"""What people send is seen and heard by the agent on every chat network, and what it gives comes as what it is.

Like `suite`: a file of tests that imports all of this module and has a fixture `wire` runs it.
"""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, Wire

PICTURE = b64decode(  # a PNG of 37 x 23 pixels
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7Ru0jCAApBwEyyIYo"
    "iAAAAABJRU5ErkJggg=="
)
OPUS = "OggS0000000000000000000000000000OpusHead"
EARS = 'voice: {transcribe: {command: [cat, "{file}"]}}\n'  # whose audio is the words
HARD = 'case "$(cat "$0")" in hang) sleep 1000;; crash) exit 3;; esac; cat "$0"'
HARD_OF_HEARING = f"voice: {{transcribe: {{command: {json.dumps(['sh', '-c', HARD, '{file}'])}}}}}\n"
MOUTH = f'voice: {{speak: {{command: [sh, -c, "printf {OPUS}; cat"]}}}}\n'
pytestmark = pytest.mark.anyio


async def asked(house: House, count: int = 1) -> dict[str, Any]:
    """What was last said to the model, once it was asked so often."""
    await until(lambda: len(house.told("llm:before")) >= count, f"question {count} to the model")
    newest: dict[str, Any] = house.told("llm:before")[-1]["messages"][-1]
    return newest


def paths_of(message: dict[str, Any]) -> list[str]:
    """The pictures of a message to the model."""
    return [one["path"] for one in message.get("parts", ())]


async def test_pictures_of_an_album_are_shown_to_the_model_with_their_words(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        await wire.upload(("barn.jpg", PICTURE), ("roof.jpg", PICTURE + b"\0"), caption="what is it?")
        message = await asked(house)
        (received,) = await house.hears("message:received")
        assert paths_of(message) == [one["path"] for one in received["attachments"]]
        assert message["content"].startswith("what is it?")
        await house.shows("It is 42.")
        await wire.write("and you?")
        await asked(house, 2)
        shown = [path for one in house.told("llm:before")[-1]["messages"] for path in paths_of(one)]
        assert shown == paths_of(message)


async def test_a_picture_that_a_message_answers_is_shown_too(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        answered = await wire.upload(("barn.jpg", PICTURE), caption="for later")
        await house.shows("I heard you.")
        await wire.write("what is it?", reply_to=answered)
        message = await asked(house, 2)
        received = await house.hears("message:received", 2)
        assert [one["is_quoted"] for one in received[-1]["attachments"]] == [True]
        assert paths_of(message) == [one["path"] for one in received[-1]["attachments"]]


async def test_a_text_file_is_read_with_its_message(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        await wire.upload(("notes.txt", "Zwölf Äpfel".encode()), caption="what is it?")
        message = await asked(house)
        assert message["content"].startswith("what is it?")
        assert "\nZwölf Äpfel\n" in message["content"]


async def test_a_picture_that_a_tool_gives_is_shown_and_can_be_sent(wire: Wire, tmp_path: Path) -> None:
    calls = (
        {"tool_calls": [{"name": "read_file", "args": {"path": "barn.png"}}]},
        {"tool_calls": [{"name": "send_file", "args": {"path": "barn.png", "caption": "The barn."}}]},
    )
    script = {"user": "barn", "answers": [*calls, {"text": "Done."}]}
    async with housed(wire, tmp_path / "home", script, settings=wire.own(ANN)) as house:
        await anyio.Path(house.gateway.home.own_folder / "workspace" / "barn.png").write_bytes(PICTURE)
        await wire.write("show me the barn")
        await house.shows("Done.")
        drawn = next(one for one in house.told("tool:after") if one["tool"] == "read_file")
        (part,) = drawn["parts"]
        assert (part["mime"], await anyio.Path(part["path"]).read_bytes()) == ("image/png", PICTURE)
        assert [part["path"]] in [paths_of(one) for one in house.told("llm:before")[1]["messages"]]
        await until(lambda: [one.file for one in wire.shown if one.file] == [PICTURE], "the picture")
        await house.shows("The barn.")


async def test_another_model_says_what_pictures_show(wire: Wire, tmp_path: Path) -> None:
    eyes = tmp_path / "eyes.yaml"
    turns = {"turns": [{"user": "what is", "text": "A red barn."}]}
    await anyio.Path(eyes).write_text(json.dumps(turns))
    settings = f"models: {{eyes: {{provider: demo, script: {eyes}}}}}\nagents: {{main: {{vision: eyes}}}}\n"
    async with housed(wire, tmp_path / "home", settings=settings) as house:
        await wire.upload(("barn.jpg", PICTURE), caption="what is it?")
        message = await asked(house)
        assert (paths_of(message), "A red barn." in message["content"]) == ([], True)
        await house.shows("It is 42.")


async def test_a_voice_note_is_heard(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=EARS) as house:
        await wire.upload(("voice.ogg", b"what is it?"))
        await house.shows("It is 42.")
        (received,) = await house.hears("message:received")
        assert received["text"] == "what is it?"
        (before,), (after,) = house.told("audio:before"), house.told("audio:after")
        assert (before["file"]["path"], after["text"]) == (received["attachments"][0]["path"], "what is it?")


async def test_a_voice_note_that_hangs_is_stopped_and_one_that_fails_is_a_file(wire: Wire, tmp_path: Path) -> None:
    """And of one that is heard, who wants it sees what was understood."""
    async with housed(wire, tmp_path / "home", settings=HARD_OF_HEARING) as house:
        await wire.upload(("voice.ogg", b"hang"))
        await until(lambda: bool(house.told("audio:before")), "somebody who listens")
        await wire.write("/stop")
        await house.shows("Stopped.")
        await wire.upload(("voice.ogg", b"crash"))
        await house.shows("I heard you.")
        received, start = house.told("message:received")[-1], house.told("agent:start")[-1]
        assert "could not be made into words" in received["text"]
        assert received["attachments"][0]["path"] in start["message_full"]
        await wire.write("/voice quote on")
        await house.shows("are shown to you")
        await wire.upload(("voice.ogg", b"what is it?"))
        await house.shows("It is 42.")
        await house.shows("what is it?")


async def test_who_wants_it_hears_the_answer_behind_its_text(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=MOUTH) as house:
        await wire.write("/voice on")
        await house.shows("are spoken too.")
        await wire.write("what is it?")
        await until(lambda: any(one.file for one in wire.shown), "the voice note")
        text, note = wire.shown[-2:]
        assert "It is 42." in text.text
        assert note.file == f"{OPUS}It is 42.".encode()


async def test_files_that_an_answer_names_come_with_it(wire: Wire, tmp_path: Path) -> None:
    script = {"user": "charts", "text": "Here they are.\nMEDIA:chart.csv\nMEDIA:notes.csv"}
    async with housed(wire, tmp_path / "home", script, settings=wire.own(ANN)) as house:
        for name in ("chart.csv", "notes.csv"):
            await anyio.Path(house.gateway.home.own_folder / "workspace" / name).write_text(name)
        await wire.write("the charts, please")

        def list_files() -> list[bytes]:
            return [data for one in wire.shown if one.file for data in (one.file, *(it for _, it in one.more_files))]

        await until(lambda: list_files() == [b"chart.csv", b"notes.csv"], "both files")
        await house.shows("Here they are.")
        assert not house.with_text("MEDIA")
        await house.hears("message:sent")
