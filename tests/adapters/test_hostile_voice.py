"""A transcriber or speaker may hang, flood, die or lie: the message is answered, and all its processes are ended."""

import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from aiohttp import web
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.voice_endpoint import VoiceEndpoint
from tests.adapters.wires import WIRES
from tests.spine import until

pytestmark = pytest.mark.thorough

SCRIPT = ({"user": "milk", "text": "Milk it is."}, *({"text": "I heard you."},) * 20)
# Each begins with a note of its being called; what it leaves running knows the folder of the test.
PROGRAMS = {
    "flood": "yes | head -c 1000000000",
    "flood of errors": "yes | head -c 1000000000 >&2; exit 1",
    "death": "kill -9 $$",
    "hang": "trap '' TERM INT HUP; sleep 1000; sleep 1000",
    "held pipes": "sleep 1000 & exit 1",
    "no words": "exit 0",
    "no text": "printf '\\000\\001\\002'",
}
SAYS = {"death": "SIGKILL", "hang": "it took more than 10 s", "held pipes": "exit code 1"}
LARGEST_GROWTH = 150_000  # kilobytes, of what is one gigabyte
KEY = {"VOICE_KEY": "key-of-the-voice"}
ENDPOINT = """\
models: {{voice: {{provider: openai, name: v-1, base_url: "{url}", api_key: "${{VOICE_KEY}}"}}}}
voice: {{patience: {patience}s, language: en, {what}: {{model: voice}}}}
"""


class Program:
    """A program that listens or speaks, and does so badly."""

    def __init__(self, root: Path, script: str) -> None:
        self.root, self.path = root, root / "program"
        self.path.write_text(f"#!/bin/sh\necho called >> {root}/calls\n{script}\n")
        self.path.chmod(0o700)

    def settings(self, what: str) -> str:
        reach = f"read: [{self.root}], write: [{self.root}]"
        return f"voice: {{patience: 10s, {what}: {{command: [{json.dumps(str(self.path))}], {reach}}}}}\n"

    @property
    def calls(self) -> int:
        log = self.root / "calls"
        return len(log.read_text().splitlines()) if log.exists() else 0


def list_left(root: Path) -> list[int]:
    """List the programs of this test that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            is_sleeper = (entry / "cmdline").read_bytes().startswith(b"sleep\x001000")
            if is_sleeper and str(root).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def make_settings(endpoint: VoiceEndpoint, what: str, patience: int = 60) -> str:
    return ENDPOINT.format(url=endpoint.url, what=what, patience=patience)


@asynccontextmanager
async def served(root: Path, settings: str) -> AsyncIterator[House]:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, root / "home", *SCRIPT, settings=settings, environ=KEY) as house:
        yield house


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_that_listens_badly_leaves_the_message_a_file(name: str, tmp_path: Path) -> None:
    program, before = Program(tmp_path, PROGRAMS[name]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with served(tmp_path, program.settings("transcribe")) as house:
        await house.wire.upload(("voice.ogg", b"milk"))
        await house.shows("I heard you.")
        (received,) = house.told("message:received")
        assert SAYS.get(name, "") in received["text"]
        assert program.calls <= (1 if name in ("hang", "no words", "no text") else 2)
        assert await anyio.Path(received["attachments"][0]["path"]).read_bytes() == b"milk"
        assert not list_left(tmp_path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST_GROWTH


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_that_speaks_badly_leaves_the_text(name: str, tmp_path: Path) -> None:
    program = Program(tmp_path, PROGRAMS[name])
    async with served(tmp_path, program.settings("speak")) as house:
        await house.wire.write("/voice on")
        await house.wire.write("milk")
        await house.shows("Milk it is.")
        (told,) = await house.shows("I could not say this aloud")
        assert SAYS.get(name, "") in told.text
        assert not [one for one in house.wire.shown if one.file]
        assert program.calls <= (1 if name in ("hang", "no words", "no text") else 2)
        assert not list_left(tmp_path)
        await house.wire.write("what else?")
        await house.shows("I heard you.")


@pytest.mark.parametrize("network", ["telegram", "telegram, which does not say how large it is", "discord", "slack"])
async def test_a_voice_note_of_two_hundred_megabytes_is_not_fetched_and_answered(network: str, tmp_path: Path) -> None:
    program, wire = Program(tmp_path, "echo words"), WIRES[network.partition(",")[0]](tmp_path / "home")
    if isinstance(wire, TelegramWire):
        wire.tells_sizes = network == "telegram"
    settings = program.settings("transcribe")
    async with wire.serving(), housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await wire.upload(("voice.ogg", bytes(200_000_000)))  # of which nothing is in memory before it is read
        await house.shows("I heard you.")
        (received,) = house.told("message:received")
        assert "200 MB" in received["text"]
        assert not received["attachments"]
        assert program.calls == 0
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST_GROWTH


@pytest.mark.process
@pytest.mark.timeout(240)
async def test_what_programs_left_running_ends_with_them(tmp_path: Path) -> None:
    """However it detached itself, for a gateway marks what it starts."""
    wire = TelegramWire()
    program = Program(tmp_path, "setsid sleep 1000 & (trap '' TERM; sleep 1000) & exit 1")
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*SCRIPT, settings=program.settings("transcribe"))
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.upload(("voice.ogg", b"milk"))
            await until(lambda: any("I heard you." in one.text for one in wire.shown), "the answer")
            assert 1 <= program.calls <= 2
            assert not list_left(tmp_path)


@pytest.mark.process
@pytest.mark.timeout(240)
async def test_a_program_ends_with_a_gateway_that_is_killed(tmp_path: Path) -> None:
    wire = TelegramWire()
    program = Program(tmp_path, "setsid sleep 1000 & sleep 1000")
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*SCRIPT, settings=program.settings("transcribe"))
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.upload(("voice.ogg", b"milk"))
            await until(lambda: len(list_left(tmp_path)) == 2, "the program at work")
            gateway.kill()
            await until(lambda: not list_left(tmp_path), "the end of all that it started")


@pytest.mark.parametrize("data", [b"", b"\0" * 100_000, b"%PDF-1.4 no audio"])
@pytest.mark.parametrize("listener", ["program", "endpoint"])
async def test_what_is_no_audio_is_answered_all_the_same(data: bytes, listener: str, tmp_path: Path) -> None:
    program, endpoint = Program(tmp_path, "exit 0"), VoiceEndpoint()
    refusal = {"error": {"message": "Invalid file format."}}
    endpoint.ills = [web.json_response(refusal, status=400) for _ in range(3)]
    async with endpoint.serving():
        settings = program.settings("transcribe") if listener == "program" else make_settings(endpoint, "transcribe")
        async with served(tmp_path, settings) as house:
            await house.wire.upload(("voice.ogg", data))
            await house.shows("I heard you.")
            assert program.calls + len(endpoint.asked) <= 1


ILLS: dict[str, Callable[[], web.Response]] = {
    "a page": lambda: web.Response(text="<html>welcome</html>", content_type="text/html"),
    "no text": lambda: web.json_response({"text": None}),
    "another shape": lambda: web.json_response([[[[]]]] * 1000),
    "nothing": lambda: web.Response(body=b""),
    "too long": lambda: web.Response(body=b"x" * 30_000_000),
    "another place": lambda: web.Response(status=302, headers={"location": "http://127.0.0.1:9/"}),
    "an error": lambda: web.Response(status=500, text="\0\x1b[31mbroken" * 10_000),
}


@pytest.mark.parametrize("what", ["transcribe", "speak"])
@pytest.mark.parametrize("ill", ILLS)
async def test_an_endpoint_that_answers_wrongly_is_asked_twice_at_most(what: str, ill: str, tmp_path: Path) -> None:
    endpoint = VoiceEndpoint()
    endpoint.ills = [ILLS[ill]() for _ in range(3)]
    async with endpoint.serving(), served(tmp_path, make_settings(endpoint, what)) as house:
        if what == "speak":
            await house.wire.write("/voice on")
            await house.wire.write("milk")
            (told,) = await house.shows("I could not say this aloud")
            said = told.text
        else:
            await house.wire.upload(("voice.ogg", b"milk"))
            await house.shows("I heard you.")
            said = house.told("message:received")[0]["text"]
            assert "could not be made into words" in said
        assert len(said) < 400
        assert 1 <= len(endpoint.asked) <= 2


async def test_an_endpoint_that_never_answers_is_left_after_a_while_and_by_stop_at_once(tmp_path: Path) -> None:
    endpoint = VoiceEndpoint()
    endpoint.silent = True
    async with endpoint.serving():
        async with served(tmp_path / "a", make_settings(endpoint, "transcribe", 3)) as house:
            await house.wire.upload(("voice.ogg", b"milk"))
            await house.shows("I heard you.")
            assert "it took more than 3 s" in house.told("message:received")[0]["text"]
            assert len(endpoint.asked) <= 1  # a machine that is busy may be late for the first try
        endpoint.asked.clear()
        async with served(tmp_path / "b", make_settings(endpoint, "transcribe", 600)) as house:
            await house.wire.upload(("voice.ogg", b"milk"))
            await until(lambda: len(endpoint.asked) == 1, "the endpoint")
            await house.wire.write("/stop")
            await house.shows("Stopped.")
            await house.wire.write("milk")
            await house.shows("Milk it is.")
            assert not house.with_text("I heard you.")
            assert len(endpoint.asked) == 1


async def test_an_endpoint_that_never_speaks_is_left_and_the_text_stands_alone(tmp_path: Path) -> None:
    endpoint = VoiceEndpoint()
    endpoint.silent = True
    async with endpoint.serving(), served(tmp_path, make_settings(endpoint, "speak", 3)) as house:
        await house.wire.write("/voice on")
        await house.wire.write("milk")
        await house.shows("I could not say this aloud: it took more than 3 s")
        assert len(house.with_text("Milk it is.")) == 1
        assert len(endpoint.asked) <= 1


@pytest.mark.process
@pytest.mark.timeout(240)
@pytest.mark.parametrize("what", ["transcribe", "speak"])
async def test_an_endpoint_is_asked_twice_at_most_over_all_lives(what: str, tmp_path: Path) -> None:
    wire, endpoint = TelegramWire(), VoiceEndpoint()
    endpoint.silent = True

    async def is_shown(text: str, count: int = 1) -> None:
        await until(lambda: sum(text in one.text for one in wire.shown) >= count, f"{count} x {text}")

    async with endpoint.serving(), wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*SCRIPT, settings=make_settings(endpoint, what, 600))
            gateway.environ |= {**wire.environ, **KEY, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            if what == "speak":
                await wire.write("/voice on")
                await is_shown("are spoken too.")
                await wire.write("milk")
            else:
                await wire.upload(("voice.ogg", b"milk"))
            for tries in (1, 2):
                await until(lambda tries=tries: len(endpoint.asked) == tries, "a try")  # type: ignore[misc]
                await to_thread.run_sync(gateway.kill)
                await to_thread.run_sync(gateway.start)
            end = "I could not say this aloud" if what == "speak" else "I heard you."
            await is_shown(end)
            await wire.write("/voice off")
            await is_shown("are written alone")
            for life in (1, 2):
                await to_thread.run_sync(gateway.kill)
                await to_thread.run_sync(gateway.start)
                await wire.write("milk")
                await is_shown("Milk it is.", life + (what == "speak"))
            assert len(endpoint.asked) == 2
            assert sum(end in one.text for one in wire.shown) == 1
