"""Voice notes: their words reach the model, by a program of this machine or an endpoint."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from anyio import to_thread

from gateway.events import Deny
from gateway.records.subjects import AUDIO_SUBJECTS
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from gateway.voice.transcriber import LARGEST
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.voice_endpoint import VoiceEndpoint
from tests.spine import chain, until

# Whose audio is text, and is what was said in it.
EAR = """#!/bin/sh
echo "$*" >> {root}/calls
words=$(cat "$1")
case "$words" in
hang*) sleep 1000 ;;
crash*) echo "I have no ears" >&2; exit 3 ;;
wait*) while [ ! -e {root}/go ]; do sleep 0.02; done ;;
esac
echo "  $words  "
"""
SCRIPT = ({"user": "milk", "text": "Milk it is."}, *({"text": "I heard you."},) * 20)
ENDPOINT = """\
models:
  ear: {{provider: openai, name: whisper-9, base_url: "{url}", api_key: "${{EAR_KEY}}", input_price: 3,
    output_price: 7}}
voice: {{transcribe: {{model: ear}}, language: en}}
"""
KEY = {"EAR_KEY": "key-of-the-ear"}


class Ear:
    """The program, and its requests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "ear"
        self.path.write_text(EAR.format(root=root))
        self.path.chmod(0o700)

    @property
    def settings(self) -> str:
        reach = f"read: [{self.root}], write: [{self.root}]"
        return f"voice: {{transcribe: {{command: [{json.dumps(str(self.path))}, '{{file}}'], {reach}}}}}\n"

    @property
    def calls(self) -> list[str]:
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def let_go(self) -> None:
        (self.root / "go").touch()

    def is_running(self) -> bool:
        """Does anything that it started still live?"""
        return any(str(self.path) in line for line in list_commands())


def list_commands() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                found.append((entry / "cmdline").read_text(errors="replace"))
    return found


@pytest.fixture
def ear(tmp_path: Path) -> Ear:
    return Ear(tmp_path)


@asynccontextmanager
async def listening(ear: Ear, *more: str) -> AsyncIterator[House]:
    """A gateway on Telegram that has this ear."""
    wire = TelegramWire()
    async with (
        wire.serving(),
        housed(wire, ear.root / "home", *SCRIPT, settings="".join([ear.settings, *more])) as house,
    ):
        yield house


async def say(house: House, words: str, by: str = ANN) -> str:
    """Send this as a voice note."""
    return str(await house.wire.upload(("voice.ogg", words.encode()), by=by))


async def test_what_is_said_is_read_by_the_model(ear: Ear) -> None:
    async with listening(ear) as house:
        await say(house, "Please buy milk")
        await house.shows("Milk it is.")
        (received,) = house.told("message:received")
        assert received["text"] == "Please buy milk"
        assert received["extra"]["transcription"] == [{"file": 0, "text": "Please buy milk", "error": ""}]
        (file,) = received["attachments"]
        assert ear.calls == [file["path"]]
        assert file["kind"] == "voice"
        (before,), (after,) = house.told("audio:before"), house.told("audio:after")
        assert before["file"]["path"] == file["path"]
        assert (after["text"], after["error"], after["user_id"]) == ("Please buy milk", "", received["user_id"])


async def test_without_a_setting_nobody_listens(tmp_path: Path, ear: Ear) -> None:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, tmp_path / "home", *SCRIPT) as house:
        await say(house, "Please buy milk")
        await house.shows("I heard you.")
        assert not house.told("audio:before")
        assert await chain(house.gateway.engine, AUDIO_SUBJECTS) == []


async def test_to_a_stranger_nobody_listens(ear: Ear) -> None:
    async with listening(ear) as house:
        await say(house, "Please buy milk", by=STRANGER)
        await house.hears("access:denied")
        await say(house, "Please buy milk")
        await house.shows("Milk it is.")
        assert len(ear.calls) == 1


async def test_what_is_said_is_no_command(ear: Ear) -> None:
    async with listening(ear) as house:
        await say(house, "/new please")
        await house.shows("I heard you.")
        (received,) = house.told("message:received")
        assert received["text"] == "new please"


async def test_who_fails_is_asked_twice_and_the_message_goes_on_and_says_so(ear: Ear) -> None:
    async with listening(ear) as house:
        await say(house, "crash")
        await house.shows("I heard you.")
        (received,) = house.told("message:received")
        assert received["text"] == (
            "[voice.ogg could not be made into words: ear: its process ended with exit code 3: I have no ears]"
        )
        assert len(ear.calls) == 2
        (ended,) = await house.hears("agent:end")
        assert received["attachments"][0]["path"] in ended["message_full"]
        states = [(one.state, one.tries) for one in await chain(house.gateway.engine, AUDIO_SUBJECTS)]
        assert states == [("begun", 1), ("begun", 2), ("failed", 0)]


async def test_a_program_that_is_not_there_is_said_and_not_looked_for_again(ear: Ear) -> None:
    ear.path.unlink()
    async with listening(ear) as house:
        await say(house, "hello")
        await house.shows("I heard you.")
        (received,) = house.told("message:received")
        assert "ear cannot be started: No such file or directory" in received["text"]


async def test_whoever_hangs_holds_up_its_own_lane_alone_and_stop_ends_it(ear: Ear) -> None:
    async with listening(ear) as house:
        await say(house, "hang")
        await until(lambda: ear.calls, "the ear")
        await until(lambda: house.wire.signs(ANN), "the sign that somebody is at work")
        await say(house, "Please buy milk", by=BEN)
        await house.shows("Milk it is.")
        assert ear.is_running()
        await house.wire.write("/stop")
        await house.shows("Stopped.")
        await until(lambda: not ear.is_running(), "the end of the program")
        await house.wire.write("milk")
        await house.shows("Milk it is.", 2)
        assert not house.with_text("I heard you.")
        assert len(ear.calls) == 2
        assert [one["text"] for one in house.told("message:received")] == ["Please buy milk", "/stop", "", "milk"]


async def test_a_hook_gives_the_words_changes_them_or_leaves_it_a_file(ear: Ear) -> None:
    async with listening(ear) as house:
        words = iter(["cheese", None, None])

        def give(event: Any) -> Any:
            given = next(words)
            if given is not None:
                return {"result": given}
            return None

        house.gateway.registry.on("audio:before", give)
        house.gateway.registry.on("audio:after", lambda event: {"text": event["text"].upper()})
        await say(house, "milk")
        await house.hears("message:received")
        await say(house, "milk")
        await house.hears("message:received", 2)
        house.gateway.registry.on("audio:before", lambda event: Deny("not now"))
        await say(house, "milk")
        received = await house.hears("message:received", 3)
        assert [one["text"] for one in received[:2]] == ["CHEESE", "MILK"]
        assert received[2]["text"] == "[voice.ogg could not be made into words: not now]"
        assert len(ear.calls) == 1


async def test_who_wants_it_sees_what_was_understood_before_the_answer(ear: Ear) -> None:
    async with listening(ear) as house:
        await house.wire.write("/voice")
        await house.shows("Voice notes are heard; the words that I understood are not shown")
        await say(house, "Please buy milk\nand bread")
        await house.shows("Milk it is.")
        await house.wire.write("/voice quote on")
        await house.shows("are shown to you")
        await house.wire.write("/new")
        await house.shows("A new session begins")
        await say(house, "Please buy milk\nand bread")
        await house.shows("Milk it is.", 2)
        quote, answer = house.wire.shown[-2:]
        assert (quote.text, answer.text) == ("Please buy milk\nand bread", "Milk it is.")
        await house.wire.write("milk")
        await house.shows("Milk it is.", 3)
        await house.wire.write("/voice quote off")
        await house.shows("are not shown", 2)
        await say(house, "Please buy milk\nand bread")
        await house.shows("Milk it is.", 4)
        assert len(house.with_text("bread")) == 1
        await house.wire.write("/voice loud")
        await house.shows("/voice takes nothing")


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_a_killed_gateway_listens_once_more_and_never_to_what_it_has_heard(ear: Ear) -> None:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(ear.root / "home") as gateway:
            gateway.script(*SCRIPT, settings=ear.settings)
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.upload(("voice.ogg", b"wait for milk"))
            await until(lambda: len(ear.calls) == 1, "the first try")
            await to_thread.run_sync(gateway.kill)
            await to_thread.run_sync(gateway.start)
            await until(lambda: len(ear.calls) == 2, "the second try")
            ear.let_go()
            await until(lambda: any("Milk it is." in one.text for one in wire.shown), "the answer")
            await wire.upload(("voice.ogg", b"hang"))
            for tries in (3, 4):
                await until(lambda tries=tries: len(ear.calls) == tries, "a try")  # type: ignore[misc]
                await to_thread.run_sync(gateway.kill)
                await to_thread.run_sync(gateway.start)
            await until(lambda: any("I heard you." in one.text for one in wire.shown), "the answer without words")
            assert len(ear.calls) == 4
            assert not ear.is_running()


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_a_stop_in_good_order_takes_no_try(ear: Ear) -> None:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(ear.root / "home") as gateway:
            gateway.script(*SCRIPT, settings=ear.settings)
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.upload(("voice.ogg", b"wait for milk"))
            for tries in (1, 2, 3):
                await until(lambda tries=tries: len(ear.calls) == tries, "a try")  # type: ignore[misc]
                assert (await to_thread.run_sync(gateway.stop))[0] == 0
                assert not ear.is_running()
                await to_thread.run_sync(gateway.start)
            ear.let_go()
            await until(lambda: any("Milk it is." in one.text for one in wire.shown), "the answer")


async def test_an_endpoint_listens_and_whoever_spoke_pays(tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:
            await say(house, "Please buy milk", by=BEN)
            await house.shows("Milk it is.")
            about = {"key": "Bearer key-of-the-ear", "model": "whisper-9", "language": "en"}
            assert endpoint.asked == [{**about, "name": "voice.ogg", "type": "audio/ogg"}]
            rows = [row async for day in house.gateway.groups.people.usage.read_days() for row in day.rows]
            (heard,) = [row for row in rows if row.usage.model == "whisper-9"]
            assert (heard.person, heard.usage.cost, heard.usage.calls) == (f"telegram:{BEN}", 10.0, 1)


async def test_an_endpoint_that_fails_is_asked_again_and_one_that_refuses_is_not(tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:
            endpoint.ills = [web.json_response({"error": {"message": "busy"}}, status=503)]
            await say(house, "Please buy milk")
            await house.shows("Milk it is.")
            assert len(endpoint.asked) == 2
            endpoint.ills = [web.json_response({"error": {"message": "no such model for key-of-the-ear"}}, status=404)]
            await say(house, "Please buy milk")
            await house.shows("I heard you.")
            assert len(endpoint.asked) == 3
            said = house.told("message:received")[-1]["text"]
            assert "the endpoint answered 404: no such model" in said
            assert KEY["EAR_KEY"] not in said


async def test_over_a_budget_it_stays_a_file(tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = f"{ENDPOINT.format(url=endpoint.url)}budgets: {{each_person: {{day: {{money: 5}}}}}}\n"
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:
            await say(house, "Please buy milk")
            await house.shows("Stopped" if house.with_text("Stopped") else "I stopped here")
            await say(house, "Please buy milk")
            await house.hears("message:received", 2)
            assert len(endpoint.asked) == 1


def become_link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def become_pipe(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


def become_folder(path: Path, secret: Path) -> None:
    path.mkdir()
    (path / secret.name).symlink_to(secret)


@pytest.mark.parametrize("become", [become_link, become_pipe, become_folder])
@pytest.mark.parametrize("listener", ["program", "endpoint"])
async def test_nobody_listens_to_what_has_taken_the_place_of_a_voice_note(
    become: Callable[[Path, Path], None], listener: str, tmp_path: Path, ear: Ear
) -> None:
    """Its folder is open to the agent's commands; what they put there is read by nobody with the gateway's rights."""
    secret, wire, endpoint = tmp_path / "secret", TelegramWire(), VoiceEndpoint()
    secret.write_text("the key to everything")
    async with endpoint.serving(), wire.serving():
        settings = ear.settings if listener == "program" else ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:

            def swap(event: Any) -> None:
                path = Path(event["file"]["path"])
                path.unlink()
                become(path, secret)

            house.gateway.registry.on("audio:before", swap)
            await say(house, "Please buy milk")
            await house.shows("I heard you.")
            (received,) = house.told("message:received")
            assert received["text"] == "[voice.ogg could not be made into words: its file is not there any more]"
            assert (ear.calls, endpoint.asked) == ([], [])


async def test_no_more_goes_to_an_endpoint_than_is_said(tmp_path: Path) -> None:
    """What a file holds counts, whatever was said of it when it came."""
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:

            def grow(event: Any) -> None:
                with Path(event["file"]["path"]).open("ab") as file:
                    file.truncate(LARGEST + 1)

            house.gateway.registry.on("audio:before", grow)
            await say(house, "Please buy milk")
            await house.shows("I heard you.")
            assert "it has 25 MB; 25 MB are sent at most" in house.told("message:received")[0]["text"]
            assert not endpoint.asked


async def test_half_a_key_is_not_told_either(tmp_path: Path) -> None:
    """An endpoint's answer is cut; a key that it repeats may stand where."""
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    async with endpoint.serving(), wire.serving():
        settings = ENDPOINT.format(url=endpoint.url)
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings, environ=KEY) as house:
            said = "x" * 292 + KEY["EAR_KEY"]
            endpoint.ills = [
                web.json_response({"error": {"message": said}}, status=404),
                web.Response(text=said, status=404),
            ]
            for count in (1, 2):
                await say(house, "Please buy milk")
                received = await house.hears("message:received", count)
                assert "xx" in received[-1]["text"]
                assert KEY["EAR_KEY"][:5] not in received[-1]["text"]
