"""A person's overheard messages in a quiet chat, on the real daemon: they outlive a kill, and go with the person."""

import json
import zipfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

pytestmark = pytest.mark.process

TOLD, NOT_TOLD, OF_ANN = "bicyclegreencanary", "umbrellabluecanary", "annswordscanary"
SETTINGS = f"""
access: {{owners: {{telegram: ["{ANN}"]}}, chats: {{telegram: ["{GROUP}"]}}}}
chats: {{"telegram:{GROUP}": {{answer: quiet}}}}
tools: {{shell: allow}}
"""
HANGS = [{"tool_calls": [{"name": "shell", "args": {"command": f"sleep 60; echo {TOLD}"}}]}]
TURNS = (
    {"user": "wait for it", "answers": HANGS},
    {"user": TOLD, "text": "You spoke of bicycles."},
    *({"user": "", "text": "Of nothing."},) * 3,
)
DURABLE = "events: [message:received, llm:before]\ndelivery: durable\n"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*TURNS, settings=SETTINGS)
        gateway.environ |= wire.environ
        gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        gateway.add_hook("hears", {"HOOK.yaml": DURABLE, "handler.py": "def handle(event_type, context): ...\n"})
        await to_thread.run_sync(gateway.start)
        yield gateway


async def cli(gateway: GatewayProcess, *args: str) -> Any:
    done = await to_thread.run_sync(partial(gateway.cli, *args))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in args else done.stdout


async def count_heard(gateway: GatewayProcess) -> int:
    (shown,) = (await cli(gateway, "people", "show", f"telegram:{BEN}", "--json"))["people"]
    return int(shown["records"].get("heard", 0))


async def ask(wire: TelegramWire, answer: str) -> None:
    before = len([one for one in wire.shown if answer in one.text])
    await wire.mention(f"what is new? {OF_ANN}", by=ANN)
    await until(lambda: len([one for one in wire.shown if answer in one.text]) > before, answer)


def find_in_home(gateway: GatewayProcess, word: str) -> list[str]:
    skipped = {gateway.home.own_folder / "script.yaml", *gateway.home.logs.rglob("*")}
    found = [path for path in gateway.home.own_folder.rglob("*") if path.is_file() and path not in skipped]
    return [path.name for path in found if word.encode() in path.read_bytes()]


async def test_what_was_heard_outlives_a_kill_and_goes_with_whoever_said_it(
    wire: TelegramWire, gateway: GatewayProcess, tmp_path: Path
) -> None:
    await wire.write(f"look, a {TOLD}", by=BEN, chat=GROUP)

    async def is_heard() -> bool:
        return await count_heard(gateway) == 1

    await until(is_heard, "the record")  # who asks what is kept of somebody has it written down
    await to_thread.run_sync(gateway.kill)
    await to_thread.run_sync(gateway.start)
    await ask(wire, "You spoke of bicycles.")
    await ask(wire, "Of nothing.")  # it stands in the conversation, and is not told again
    await wire.write(f"and an {NOT_TOLD}", by=BEN, chat=GROUP)
    await wire.write("nobody asked you", by=ANN, chat=GROUP)
    assert len(wire.shown) == 2

    async def are_kept() -> bool:
        return await count_heard(gateway) == 3  # of the first one the record of the chat, and of what Ann was told

    await until(are_kept, "the records")
    await cli(gateway, "people", "export", f"telegram:{BEN}", "-o", str(tmp_path / "ben.zip"))
    with zipfile.ZipFile(tmp_path / "ben.zip") as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert (texts["records.jsonl"].count(TOLD), texts["records.jsonl"].count(NOT_TOLD)) == (2, 1)
    (session,) = [json.loads(text) for name, text in texts.items() if name.startswith("sessions/")]
    assert [one["content"] for one in session["entries"]] == [f"look, a {TOLD}"]
    assert OF_ANN not in str(texts)

    (gone,) = (await cli(gateway, "people", "forget", f"telegram:{BEN}", "--yes", "--json"))["forgotten"]
    assert (gone["busy"], gone["turns_of_shared"]) == ([], 1)  # that which was told it
    assert await count_heard(gateway) == 0
    await ask(wire, "Of nothing.")
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, TOLD) + find_in_home(gateway, NOT_TOLD)), left
    assert find_in_home(gateway, OF_ANN)


async def test_what_a_turn_was_told_that_was_stopped_midway_goes_with_whoever_said_it(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    """The model has said it again by then, and the conversation shows nothing of it."""
    await wire.write(f"look, a {TOLD}", by=BEN, chat=GROUP)

    async def is_heard() -> bool:
        return await count_heard(gateway) == 1

    await until(is_heard, "the record")
    await wire.mention(f"wait for it {OF_ANN}", by=ANN)
    await until(lambda: gateway.call("status")["turns"]["running"] == 1, "the turn")
    await wire.write("/stop", by=ANN, chat=GROUP)
    await until(lambda: gateway.call("status")["turns"]["running"] == 0, "its end")
    (gone,) = (await cli(gateway, "people", "forget", f"telegram:{BEN}", "--yes", "--json"))["forgotten"]
    assert (gone["busy"], gone["turns_of_shared"]) == ([], 1)
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, TOLD)), left
    assert find_in_home(gateway, OF_ANN)
