"""Spoken answers, if the person wants them: as each network's own voice note, once, behind the text."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from anyio import to_thread

from gateway.dispatcher.voice_answers import UNSPOKEN
from gateway.events import Deny
from gateway.records.records import VoiceAnswer
from gateway.records.subjects import VOICE_SUBJECTS
from gateway.sessions.removal import forget_sessions
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, Shown, Wire
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.voice_endpoint import VoiceEndpoint
from tests.adapters.wires import WIRES
from tests.spine import chain

SAID = "please remind me to buy milk tomorrow morning"
SCRIPT = (
    {"user": "code", "text": "```sh\nrm -rf milk\n```"},
    *({"user": "milk", "text": f"**{SAID}**\n```sh\nrm -rf milk\n```"},) * 20,
)
FLITE = 'voice: {speak: {command: [flite, -voice, slt, -o, "{file}"]}}\n'
SPHINX = """\
import subprocess, sys, pocketsphinx
sound = subprocess.run(["opusdec", "--quiet", "--rate", "16000", sys.argv[1], "-"], capture_output=True, check=True)
decoder = pocketsphinx.Decoder(samprate=16000, loglevel="FATAL")
decoder.start_utt()
decoder.process_raw(sound.stdout[44:], full_utt=True)
decoder.end_utt()
print(decoder.hyp().hypstr)
"""
# Which notes down what it is to say, and says it as Ogg that it makes itself.
MOUTH = """#!/bin/sh
words=$(cat)
echo "$words" >> {root}/calls
case "$words" in
hang*) while [ ! -e {root}/go ]; do sleep 0.05; done ;;
crash*) [ -e {root}/well ] || {{ echo "I have no mouth" >&2; exit 3; }} ;;
noise*) echo nothing; exit ;;
esac
printf 'OggS0000000000000000000000000000OpusHead%s' "$words"
"""
ANSWERS = tuple({"user": word, "text": f"{word} it is."} for word in ("hang", "crash", "noise", "milk") for _ in "1234")
ENDPOINT = """\
models:
  mouth: {{provider: openai, name: tts-9, base_url: "{url}", api_key: "${{MOUTH_KEY}}", input_price: 1000000}}
voice: {{speak: {{model: mouth, voice: coral}}}}
"""
KEY = {"MOUTH_KEY": "key-of-the-mouth"}


class Mouth:
    """A program that speaks, and its requests."""

    def __init__(self, root: Path) -> None:
        self.root, self.path = root, root / "mouth"
        self.path.write_text(MOUTH.format(root=root))
        self.path.chmod(0o700)

    @property
    def settings(self) -> str:
        reach = f"read: [{self.root}], write: [{self.root}]"
        return f"voice: {{speak: {{command: [{json.dumps(str(self.path))}], {reach}}}}}\n"

    @property
    def calls(self) -> list[str]:
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def let_go(self) -> None:
        """Let the hanging program go on."""
        (self.root / "go").touch()


@pytest.fixture
def mouth(tmp_path: Path) -> Mouth:
    return Mouth(tmp_path)


@asynccontextmanager
async def spoken_to(wire: Wire, mouth: Mouth, patience: int = 60) -> AsyncIterator[House]:
    """A gateway that has this mouth, and a person who wants to hear."""
    settings = mouth.settings.replace("voice: {", f"voice: {{patience: {patience}s, ")
    async with wire.serving(), housed(wire, mouth.root / "home", *ANSWERS, settings=settings) as house:
        await wire.write("/voice on")
        await house.shows("My answers are spoken too.")
        yield house


def notes(wire: Wire) -> list[Shown]:
    return [one for one in wire.shown if one.file]


async def hear(house: House, count: int) -> Shown:
    """The voice note that comes as so manieth."""
    await until(lambda: len(notes(house.wire)) >= count, f"voice note {count}, not {house.wire.shown},")
    assert len(notes(house.wire)) == count
    return notes(house.wire)[-1]


@pytest.mark.parametrize("network", ["telegram", "discord", "slack"])
async def test_an_answer_is_spoken_behind_its_text_on_each_network(network: str, tmp_path: Path) -> None:
    wire = WIRES[network](tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home", *SCRIPT, settings=FLITE) as house:
        await house.wire.write("/voice on")
        await house.shows("My answers are spoken too.")
        await house.wire.write("milk")
        await hear(house, 1)
        text, note = house.wire.shown[-2:]
        assert SAID in text.text
        assert note.file.startswith(b"OggS")
        assert note.file_name.endswith(".ogg")
        assert note.is_note == (network != "slack")


async def test_what_one_program_says_another_understands(tmp_path: Path) -> None:
    wire, ear = TelegramWire(), tmp_path / "ear.py"
    ear.write_text(SPHINX)
    hears = json.dumps([sys.executable, str(ear), "{file}"])
    settings = f"{FLITE.rstrip()[:-1]}, transcribe: {{command: {hears}}}}}\n"
    async with wire.serving(), housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        await wire.write("/voice on")
        await wire.write("milk")
        note = await hear(house, 1)
        await wire.upload(("voice.ogg", note.file))
        received = await house.hears("message:received", 3)
        assert received[-1]["text"] == SAID
        await hear(house, 2)


async def test_nobody_speaks_before_somebody_wants_it_or_can(tmp_path: Path, mouth: Mouth) -> None:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, tmp_path / "home", *ANSWERS) as house:
        await wire.write("/voice on")
        await house.shows("Answers cannot be spoken here")
        await wire.write("milk")
        await house.shows("milk it is.")
    async with wire.serving(), housed(wire, tmp_path / "other", *ANSWERS, settings=mouth.settings) as house:
        await wire.write("milk")
        await house.shows("milk it is.", 2)
        await wire.write("/voice quote on")
        await house.shows("My answers are written alone; `/voice on` has them spoken too.".replace("`", ""))
        await wire.write("/voice on")
        await house.shows("are shown to you.\nMy answers are spoken too.")
        await wire.write("/new")
        await house.shows("A new session begins")
        await wire.write("milk")
        await hear(house, 1)
        await wire.write("milk", by=BEN)
        await house.shows("milk it is.", 4)
        await wire.write("/voice off")
        await house.shows("are shown to you.\nMy answers are written alone")
        await wire.write("milk")
        await house.shows("milk it is.", 5)
    assert mouth.calls == ["milk it is."]


async def test_what_left_the_hooks_is_spoken_and_no_code(tmp_path: Path, mouth: Mouth) -> None:
    wire = TelegramWire()
    script = ({"user": "milk", "text": "milk\n```\nrm milk\n```"}, {"user": "code", "text": "```\nrm\n```"}, *ANSWERS)
    async with wire.serving(), housed(wire, tmp_path / "home", *script, settings=mouth.settings) as house:
        await wire.write("/voice on")
        await house.shows("are spoken too.")

        def change(event: Any) -> Any:
            if "hang" in event["text"]:
                return Deny("no")
            return {"text": event["text"].replace("milk", "[oats](http://oats)")} if event["text"] else None

        house.gateway.registry.on("message:sending", change)
        await wire.write("hang")
        await house.hears("message:failed")
        await wire.write("code")
        await house.shows("rm")
        await wire.write("milk")
        await hear(house, 1)
    assert mouth.calls == ["oats"]


async def test_who_cannot_speak_leaves_the_text_and_says_so_once(mouth: Mouth) -> None:
    async with spoken_to(TelegramWire(), mouth) as house:
        for count in (1, 2):
            await house.wire.write("crash")
            await house.shows("crash it is.", count)
            await until(lambda count=count: len(mouth.calls) == 2 * count, "both tries")  # type: ignore[misc]
            await is_settled(house)
        why = "mouth: its process ended with exit code 3: I have no mouth"
        assert [one.text for one in house.with_text("aloud")] == [UNSPOKEN.format(why)]
        (mouth.root / "well").touch()
        await house.wire.write("crash")
        await hear(house, 1)
        (mouth.root / "well").unlink()
        await house.wire.write("crash")
        await house.shows("aloud", 2)
        await house.wire.write("noise")
        await until(lambda: mouth.calls[-1] == "noise it is.", "what is not audio")
        await is_settled(house)
        assert mouth.calls.count("noise it is.") == 1


async def is_settled(house: House) -> None:
    """Wait until no spoken answer is pending."""

    async def is_owed() -> bool:
        kept = [one for one in await chain(house.gateway.engine, VOICE_SUBJECTS) if isinstance(one, VoiceAnswer)]
        return any(one.state in ("owed", "begun") for one in {one.reply.id: one for one in kept}.values())

    await until(lambda: house.told("message:sent"), "a reply")
    while await is_owed():
        await to_thread.run_sync(lambda: None)


async def test_who_speaks_for_too_long_is_not_waited_for_and_holds_up_nothing(mouth: Mouth) -> None:
    async with spoken_to(TelegramWire(), mouth, patience=1) as house:
        await house.wire.write("hang")
        await house.shows("hang it is.")
        await house.wire.write("milk")
        await house.shows("milk it is.")
        await house.shows("I could not say this aloud: it took more than 1 s")
        await hear(house, 1)
        assert mouth.calls == ["hang it is.", "milk it is."]


async def test_whoever_wants_it_no_more_is_not_spoken_to(mouth: Mouth) -> None:
    async with spoken_to(TelegramWire(), mouth) as house:
        await house.wire.write("hang")
        await until(lambda: mouth.calls, "the first one")
        await house.wire.write("milk")
        await house.shows("milk it is.")
        await house.wire.write("/voice off")
        await house.shows("are written alone")
        mouth.let_go()
        await is_settled(house)
        assert mouth.calls == ["hang it is."]


async def test_what_discord_takes_for_no_voice_note_comes_as_a_file(mouth: Mouth) -> None:
    async with spoken_to(DiscordWire(), mouth) as house:
        await house.wire.write("milk")
        note = await hear(house, 1)
        assert (note.is_note, note.file_name, note.file[:4]) == (False, "answer.ogg", b"OggS")


async def test_what_is_forgotten_is_not_spoken_and_its_audio_goes(mouth: Mouth) -> None:
    async with spoken_to(TelegramWire(), mouth) as house:
        await house.wire.write("milk")
        await hear(house, 1)
        await is_settled(house)
        files = list(house.gateway.home.files.rglob("*.ogg"))
        assert len(files) == 1
        await house.wire.write("hang")
        await until(lambda: len(mouth.calls) == 2, "the second one")
        (received, *_) = house.told("message:received")
        await forget_sessions(house.gateway.engine, house.gateway.sessions, received["session_key"])
        assert not list(house.gateway.home.files.rglob("*.ogg"))
        assert await chain(house.gateway.engine, VOICE_SUBJECTS) == []


@pytest.mark.process
@pytest.mark.timeout(180)
async def test_a_killed_gateway_speaks_once_more_and_says_each_answer_once(mouth: Mouth) -> None:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(mouth.root / "home") as gateway:
            gateway.script(*ANSWERS, settings=mouth.settings)
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.write("/voice on")
            await wire.write("hang")
            for tries in (1, 2):
                await until(lambda tries=tries: len(mouth.calls) == tries, "a try")  # type: ignore[misc]
                await to_thread.run_sync(gateway.kill)
                await to_thread.run_sync(gateway.start)
            told = "I could not say this aloud: the gateway ended in the middle of it"
            await until(lambda: any(told in one.text for one in wire.shown), "that it was not said")
            await wire.write("milk")
            await until(lambda: notes(wire), "the voice note")
            await wire.write("noise")  # whose text comes once it is written that the note has arrived
            await until(lambda: any("noise" in one.text for one in wire.shown), "the next answer")
            await to_thread.run_sync(gateway.kill)
            await to_thread.run_sync(gateway.start)
            await wire.write("hang")
            for tries in (1, 2, 3):
                await until(lambda tries=tries: mouth.calls.count("hang it is.") == 2 + tries, "a try")  # type: ignore[misc]
                assert (await to_thread.run_sync(gateway.stop))[0] == 0
                await to_thread.run_sync(gateway.start)
            await until(lambda: mouth.calls.count("hang it is.") == 6, "a try, since a stop in good order takes none")
    assert mouth.calls.count("milk it is.") == 1
    assert len(notes(wire)) == 1
    assert sum("hang it is." in one.text for one in wire.shown) == 2


async def test_an_endpoint_speaks_and_whoever_asked_pays(tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *ANSWERS, settings=settings, environ=KEY) as house:
            endpoint.ills = [web.json_response({"error": {"message": "busy"}}, status=503)]
            await wire.write("/voice on", by=BEN)
            await house.shows("are spoken too.")
            await wire.write("milk", by=BEN)
            await hear(house, 1)
            about = {"key": "Bearer key-of-the-mouth", "model": "tts-9", "voice": "coral", "response_format": "opus"}
            assert endpoint.asked == [{**about, "input": "milk it is."}] * 2
            rows = [row async for day in house.gateway.groups.people.usage.read_days() for row in day.rows]
            (said,) = [row for row in rows if row.usage.model == "tts-9"]
            assert (said.person, said.usage.cost, said.usage.calls) == (f"telegram:{BEN}", 11.0, 1)
            endpoint.ills = [web.json_response({"error": {"message": "no key-of-the-mouth here"}}, status=401)]
            await wire.write("milk", by=BEN)
            (told,) = await house.shows("I could not say this aloud: the endpoint answered 401")
            assert KEY["MOUTH_KEY"] not in told.text
            assert len(endpoint.asked) == 3


async def test_over_a_budget_the_text_stands_alone(tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = f"{ENDPOINT.format(url=endpoint.url)}budgets: {{each_person: {{day: {{money: 5}}}}}}\n"
        async with housed(wire, tmp_path / "home", *ANSWERS, settings=settings, environ=KEY) as house:
            await wire.write("/voice on", by=BEN)
            await house.shows("are spoken too.")
            await wire.write("milk", by=BEN)
            await hear(house, 1)
            await wire.write("milk", by=BEN)
            await house.shows("I could not say this aloud: I stopped here")
            assert len(endpoint.asked) == 1
