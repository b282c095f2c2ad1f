"""Files from the time when all attachments were in one folder move to the conversations that they came in by."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.cluster.files import FETCHED
from gateway.config.home import Home
from gateway.daemon.notices import OTHER_FOLDERS
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.records import records
from gateway.records.subjects import token_of
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.test_own_folders import SETTINGS, Party, is_refusal
from tests.daemon.obedient import serving_obedient_model

# As version 0.1 wrote it.
INBOUND = (
    '{"kind":"in","v":1,"at":1.5,"session_key":"k","message":{"id":"%(id)s","address":{"platform":"telegram","chat_id":'
    '"%(chat)s","chat_type":"%(type)s","thread_id":""},"user_id":"%(user)s","text":"hi","user_name":"","kind":"text",'
    '"attachments":[{"kind":"document","path":"%(path)s","name":"x.txt","media_type":"text/plain","size":3}],'
    '"reply_to":"","session":"","sent_at":0.0,"extra":{}}}'
)
MOVE = """
import sys
from pathlib import Path
import anyio
from gateway.daemon.received_files import move_received_files
from gateway.engine.sqlite.engine import open_sqlite

async def move(home):
    async with await open_sqlite(home / "hermes-gateway" / "journal.db") as engine:
        print("begun", flush=True)
        await move_received_files(engine, home / "hermes-gateway" / "files")

anyio.run(move, Path(sys.argv[1]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    (home.files / "telegram").mkdir(parents=True, mode=0o700)
    return home


async def send(home: Home, name: str, *senders: str, chat: str = "") -> Path:
    """Put a file into the old place, with these senders, or none."""
    path = home.files / "telegram" / f"{token_of(name)}.txt"
    path.write_text(name)
    async with await open_sqlite(home.journal) as engine:
        for number, user in enumerate(senders):
            about = {"chat": chat or user, "type": "group" if chat else "dm", "user": user, "path": path}
            data = INBOUND % {**about, "id": f"{name}{number}"}
            await engine.append(NewRecord(f"gw.in.{token_of(user)}", data.encode(), ttl=records.TRAFFIC_TTL))
    return path


async def test_each_goes_to_whoever_sent_it_and_the_old_path_still_serves_them(home: Home) -> None:
    anns, bens = await send(home, "of Ann", ANN), await send(home, "of Ben", BEN)
    both = await send(home, "of both", ANN, BEN)
    groups = await send(home, "of all", BEN, chat=GROUP)
    nobodys = await send(home, "of nobody")
    loose = home.files / "context-1.txt"
    loose.write_text("of a plugin")
    part = home.files / FETCHED / "1f0c"
    part.parent.mkdir()
    part.write_text("cut off on its way from another gateway")
    wire = TelegramWire()
    with serving_obedient_model() as model:
        settings = SETTINGS.format(port=model.server_address[1], network="telegram", owner=ANN)
        environ = {"OPENAI_API_KEY": "k"}
        async with wire.serving(), housed(wire, home.root, settings=settings, environ=environ) as house:
            party = Party(house, wire)
            for path, folder in ((anns, ANN), (bens, BEN), (both, ANN), (groups, f"chat.{GROUP}")):
                assert path.resolve() == home.files / "telegram" / folder / path.name
            assert part.is_file()
            assert not part.is_symlink()
            assert nobodys.resolve() == home.files / ".unclaimed" / "telegram" / nobodys.name
            for path in (anns, both, nobodys, loose):
                assert await party.order(ANN, "read_file", path=str(path)) == path.read_text()
            for path in (bens, both):
                assert await party.order(BEN, "read_file", path=str(path)) == path.read_text()
            for path in (anns, groups, nobodys, loose):
                assert is_refusal(await party.order(BEN, "read_file", path=str(path)))
            for path in (bens, groups):
                assert is_refusal(await party.order(ANN, "read_file", path=str(path)))
            assert await party.order(BEN, "read_file", group=True, path=str(groups)) == "of all"


async def test_a_home_that_was_there_before_is_told_once_where_users_work_now(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    await send(home, "of Ann", ANN)
    wire = TelegramWire()
    for is_told in (True, False):
        caplog.clear()
        async with wire.serving(), housed(wire, home.root, {"text": "x"}):
            assert (OTHER_FOLDERS in caplog.messages) is is_told


async def test_killed_at_any_moment_it_is_gone_on_with_and_nothing_is_lost(home: Home) -> None:
    paths = {await send(home, f"file {number}", *senders_of(number)): f"file {number}" for number in range(120)}
    await to_thread.run_sync(kill_again_and_again, home, paths)
    for number, (path, text) in enumerate(paths.items()):
        places = [home.files / "telegram" / sender for sender in senders_of(number)]
        for place in places or [home.files / ".unclaimed" / "telegram"]:
            assert (place / path.name).read_text() == text
        assert path.resolve() == (places or [home.files / ".unclaimed" / "telegram"])[0] / path.name
    left = [name for _, _, names in os.walk(home.files) for name in names if name.endswith(".new")]
    assert left == []


def kill_again_and_again(home: Home, paths: dict[Path, str]) -> None:
    """Until one start has come to its end; at no moment an old path leads nowhere."""
    begun = False
    while not begun or any(not path.is_symlink() for path in paths):
        with subprocess.Popen([sys.executable, "-c", MOVE, str(home.root)], stdout=subprocess.PIPE) as process:
            assert process.stdout
            begun = process.stdout.readline() == b"begun\n"
            time.sleep(random.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
        assert {path: path.read_text() for path in paths} == paths
    subprocess.run([sys.executable, "-c", MOVE, str(home.root)], check=True)


def senders_of(number: int) -> tuple[str, ...]:
    return ((ANN,), (BEN,), (ANN, BEN), ())[number % 4]
