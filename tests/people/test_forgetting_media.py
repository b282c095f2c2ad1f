"""A person is forgotten who sent and received speech and pictures, on a network that calls: no byte of it is left."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.engine.sqlite.backup import read_in
from gateway.records.subjects import AUDIO_SUBJECTS, UPDATE_SUBJECTS, VOICE_SUBJECTS
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_calls_wire import TelegramCallsWire
from tests.adapters.test_spoken import Mouth
from tests.adapters.test_voice import Ear
from tests.http_server import QuietHandler, serving
from tests.parser.media_files import noisy_jpeg
from tests.people.test_forgetting import OF_ANN, SECRET, SETTINGS, cli, find_in_home, say
from tests.spine import until

pytestmark = pytest.mark.process

SAID = json.dumps({"choices": [{"index": 0, "delta": {"content": "I see."}, "finish_reason": "stop"}]})
HEARD = "was heard and"  # in what the ear understands


class SeeingModel(QuietHandler):
    """It is shown pictures, and says the same to all."""

    def do_POST(self) -> None:  # noqa: N802 - as the library calls it
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(f"data: {SAID}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")


@pytest.fixture
def model() -> Iterator[str]:
    """Yield its address."""
    with serving(SeeingModel) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramCallsWire]:
    wire = TelegramCallsWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramCallsWire, model: str, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    (tools := tmp_path / "tools").mkdir()
    ear, mouth = Ear(tools).settings.strip(), Mouth(tools).settings.strip()
    voice = "voice: {" + ", ".join(one.removeprefix("voice: {").removesuffix("}") for one in (ear, mouth)) + "}\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure(f'{SETTINGS}{voice}model: {{provider: openai, name: m, base_url: "{model}"}}\n')
        gateway.environ |= {**wire.environ, "OPENAI_API_KEY": "none"}
        await to_thread.run_sync(gateway.start)
        yield gateway


async def send(wire: TelegramCallsWire, name: str, data: bytes, *, by: str, chat: str = "", spoken: bool) -> None:
    """A file, until it is answered: in words, and where they are spoken, by a voice note behind them."""
    before = len(wire.shown)
    await wire.upload((name, data), by=by, chat=chat)
    await until(lambda: len(wire.shown) >= before + 1 + spoken, f"the answer to {name}")


def list_files(gateway: GatewayProcess) -> list[str]:
    """List all files of conversations."""
    return sorted(one.name for one in gateway.home.files.rglob("*") if one.is_file())


def count_kept(gateway: GatewayProcess) -> dict[str, int]:
    """Count the records of the network's calls, of transcriptions, and of spoken answers."""
    found = {"calls": UPDATE_SUBJECTS, "heard": AUDIO_SUBJECTS, "spoken": VOICE_SUBJECTS}
    return {name: len(read_in(gateway.home.journal, subject, 1000)) for name, subject in found.items()}


async def test_no_voice_note_picture_or_call_of_the_network_is_left(
    wire: TelegramCallsWire, gateway: GatewayProcess
) -> None:
    await say(wire, "/voice on", by=ANN)
    await send(wire, "note.ogg", f"{HEARD} {OF_ANN}".encode(), by=ANN, spoken=True)
    files, kept = list_files(gateway), count_kept(gateway)
    assert (len(files), kept["calls"]) == (2, 2)
    await say(wire, "/voice on", by=BEN)
    photo = noisy_jpeg(5000, 1200)  # so large that a smaller one is made of it
    for chat in ("", GROUP):
        await send(wire, "note.ogg", f"{HEARD} {SECRET}".encode(), by=BEN, chat=chat, spoken=not chat)
        await send(wire, "barn.jpg", photo + SECRET.encode(), by=BEN, chat=chat, spoken=not chat)
    of_ben = [one for one in list_files(gateway) if one not in files]
    ends = sorted(one[24:] for one in of_ben)
    assert ends == ["-1.jpg"] * 2 + [".jpg"] * 2 + [".ogg"] * 4, "and of each picture a smaller one, and two answers"
    assert all(after > before for after, before in zip(count_kept(gateway).values(), kept.values(), strict=True))
    await cli(gateway, "sessions", "list", "--json")  # so the index is as new as the journal
    assert {"journal.db", "search.db"} <= {one.removesuffix("-wal") for one in find_in_home(gateway, SECRET)}

    await cli(gateway, "people", "forget", f"telegram:{BEN}", "--yes", "--json")
    assert list_files(gateway) == files
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left
    assert not [one for one in gateway.home.voice.iterdir() if one.is_file()]
    assert count_kept(gateway) == kept
    assert find_in_home(gateway, OF_ANN)
