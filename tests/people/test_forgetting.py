"""A person is forgotten, on the real daemon with a bot on loopback: their data is gone, and the others' stays."""

import json
import zipfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.engine.sqlite.backup import read_in
from gateway.records.subjects import AUDIO_SUBJECTS
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

pytestmark = pytest.mark.process

SECRET = "bicyclegreencanary"
OF_ANN = "annswordscanary"
SETTINGS = f"""
access: {{owners: {{telegram: ["{ANN}"]}}, users: {{telegram: ["{BEN}"]}}, chats: {{telegram: ["{GROUP}"]}}}}
sessions: {{per_user_in_groups: false}}
platforms: {{telegram: {{require_mention: false}}}}
"""
EAR = """
tools: {shell: allow}
voice: {transcribe: {command: [sh, -c, 'it=$(cat "$0"); case $it in dawdle*) sleep 3;; esac; echo "$it"', "{file}"]}}
"""
DURABLE = "events: [message:received, agent:end, person:forgotten]\ndelivery: durable\n"
HEARS = """
import json
from pathlib import Path

def handle(event_type, context):
    with Path(__file__).with_name("told.txt").open("a") as file:
        file.write(json.dumps({"event": event_type, "user_id": str(context["user_id"])}) + "\\n")
"""


def calling(word: str, tool: str, **args: Any) -> dict[str, Any]:
    """Make a turn of the model that uses a tool when a message begins with this word."""
    return {"user": word, "answers": [{"tool_calls": [{"name": tool, "args": args}]}, {"text": "Done."}]}


TURNS = (
    calling("remember", "remember", text=SECRET),
    calling("later", "schedule", text=SECRET, when="3d"),
    calling("write", "write_file", path="note.txt", content=SECRET),
    {"user": "slow", "chunks": ["well "] * 4, "delay": 1.5},
    calling("hang", "shell", command=f"sleep 60; echo {SECRET}"),
    {"user": "", "text": "I heard."},
)


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*TURNS, settings=SETTINGS + EAR)
        gateway.environ |= wire.environ
        gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        gateway.add_hook("hears", {"HOOK.yaml": DURABLE, "handler.py": HEARS})
        await to_thread.run_sync(gateway.start)
        yield gateway


async def cli(gateway: GatewayProcess, *args: str) -> dict[str, Any]:
    done = await to_thread.run_sync(partial(gateway.cli, *args))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout) if "--json" in args else {"text": done.stdout + done.stderr}
    return found


async def say(wire: TelegramWire, text: str, **how: Any) -> None:
    before = len(wire.shown)
    await wire.write(text, **how)
    await until(lambda: len(wire.shown) > before, f"the answer to {text}")


async def speak(wire: TelegramWire) -> None:
    """Write Ben's and Ann's messages."""
    for text in (f"remember {SECRET}", f"later {SECRET}", f"write {SECRET}", f"that is all {SECRET}"):
        await say(wire, text, by=BEN)
    before = len(wire.shown)
    await wire.upload(("photo.txt", SECRET.encode()), caption="see", by=BEN)
    await until(lambda: len(wire.shown) > before, "the answer to the file")
    await say(wire, f"hello all {OF_ANN}", by=ANN, chat=GROUP)
    await say(wire, f"hello from ben {SECRET}", by=BEN, chat=GROUP)
    await say(wire, f"mine alone {OF_ANN}", by=ANN)


def find_in_home(gateway: GatewayProcess, word: str, *but: Path) -> list[str]:
    """Find the files that contain it, as bytes."""
    logs = gateway.home.logs.rglob("*")  # those who run it have what it printed
    skipped = {gateway.home.config, gateway.home.own_folder / "script.yaml", *logs, *but}
    found = [path for path in gateway.home.own_folder.rglob("*") if path.is_file() and path not in skipped]
    return [path.name for path in found if word.encode() in path.read_bytes()]


async def test_nothing_is_left_of_them_and_all_of_the_others(wire: TelegramWire, gateway: GatewayProcess) -> None:
    await speak(wire)
    person = f"telegram:{BEN}"
    assert find_in_home(gateway, SECRET)
    (shown,) = (await cli(gateway, "people", "show", person, "--json"))["people"]
    assert (len(shown["conversations"]), len(shown["shared"]), shown["role"]) == (1, 1, "user")
    assert (shown["notes"], shown["files"]) == (1, 2)

    (gone,) = (await cli(gateway, "people", "forget", person, "--yes", "--json"))["forgotten"]
    assert (gone["conversations"], gone["turns_of_shared"], gone["notes"], gone["busy"]) == (1, 1, 1, [])
    assert any(str(gateway.home.config) in line and "still let them in" in line for line in gone["left"])
    told = gateway.home.hooks / "hears" / "told.txt"
    await until(lambda: "person:forgotten" in told.read_text(), "the hook is told")

    journal = [*gateway.home.own_folder.glob("journal*")]  # its log is empty once it is closed
    await until(lambda: not find_in_home(gateway, SECRET, *journal), "all is gone")
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left
    assert find_in_home(gateway, OF_ANN)

    await to_thread.run_sync(gateway.start)
    listed = {one["person"] for one in (await cli(gateway, "people", "list", "--json"))["people"]}
    assert listed == {"terminal:owner", "web:owner", f"telegram:{ANN}", person}  # a line of the configuration names Ben
    found = await cli(gateway, "sessions", "search", OF_ANN, "--json")
    assert len(found["hits"]) == 2
    assert (await cli(gateway, "sessions", "search", SECRET, "--json"))["hits"] == []
    used = json.dumps(await cli(gateway, "usage", "--by", "person", "--json"))
    assert gone["pseudonym"] in used
    assert person not in used
    did = await cli(gateway, "activity", "list", "--json")
    assert [one["on"] for one in did["activity"] if one["what"] == "people.forget"] == [gone["pseudonym"]]
    assert not any(person in (one["who"], one["on"]) for one in did["activity"])


async def test_a_call_that_runs_while_they_are_forgotten_is_counted_under_the_pseudonym(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    person = f"telegram:{BEN}"
    await say(wire, "hello", by=BEN)
    await wire.write("slow", by=BEN)
    await until(lambda: gateway.call("status")["turns"]["running"] == 1, "the turn runs")
    (gone,) = (await cli(gateway, "people", "forget", person, "--yes", "--json"))["forgotten"]
    await until(lambda: gateway.call("status")["turns"]["running"] == 0, "the turn has ended")

    def used() -> dict[str, int]:
        rows = json.loads(gateway.cli("usage", "--by", "person", "--json").stdout)["rows"]
        return {row["name"]: row["calls"] for row in rows}

    await until(lambda: used().get(gone["pseudonym"]) == 2, "both calls are counted")
    assert list(used()) == [gone["pseudonym"]]
    await to_thread.run_sync(gateway.stop)
    await to_thread.run_sync(gateway.start)
    assert used() == {gone["pseudonym"]: 2}


async def test_all_that_is_held_of_somebody_is_in_the_archive(
    wire: TelegramWire, gateway: GatewayProcess, tmp_path: Path
) -> None:
    await speak(wire)
    archive = tmp_path / "ben.zip"
    await cli(gateway, "people", "export", f"telegram:{BEN}", "-o", str(archive))
    assert archive.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(archive) as opened:
        parts = {name: opened.read(name) for name in opened.namelist()}
    assert {name.split("/")[0] for name in parts} == {
        "person.json",
        "sessions",
        "records.jsonl",
        "memory.json",
        "files",
    }
    assert all(SECRET.encode() in parts[name] for name in parts if name != "person.json"), list(parts)
    assert not any(OF_ANN.encode() in part for part in parts.values())


async def test_who_is_nobody_is_said(gateway: GatewayProcess) -> None:
    for written in ("ben", "telegram:", ":5", "x" * 400):
        done = await to_thread.run_sync(partial(gateway.cli, "people", "show", written))
        assert (done.returncode, "is not an id" in done.stderr) == (1, True), done.stderr
    gone = await cli(gateway, "people", "forget", "telegram:404", "--yes")
    assert "there was no data of this person" in gone["text"]


async def test_whom_a_program_may_name_again_is_said(gateway: GatewayProcess) -> None:
    made = await to_thread.run_sync(partial(gateway.cli, "keys", "new", "notes", "--as", "user"))
    assert "this key has no access yet" in made.stderr
    gone = await cli(gateway, "people", "forget", "api:notes:ann", "--yes")
    assert "keys revoke" not in gone["text"], "a key that speaks to no agent speaks for nobody"
    for verb in (("revoke", "notes"), ("new", "notes", "--as", "user", "--agent", "main")):
        await to_thread.run_sync(partial(gateway.cli, "keys", *verb))
    gone = await cli(gateway, "people", "forget", "api:notes:ann", "--yes")
    assert "hermes-gateway keys revoke notes" in gone["text"]


async def test_what_they_said_while_another_turn_ran_is_gone_with_them(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    """Nothing of them stands in the conversation yet: it waits its turn."""
    await wire.write("slow", by=ANN, chat=GROUP)
    await until(lambda: gateway.call("status")["turns"]["running"] == 1, "the turn of another runs")
    await wire.write(f"hello from ben {SECRET}", by=BEN, chat=GROUP)
    await until(lambda: bool(find_in_home(gateway, SECRET)), "it is in the journal")
    await cli(gateway, "people", "forget", f"telegram:{BEN}", "--yes", "--json")
    await say(wire, f"hello all {OF_ANN}", by=ANN, chat=GROUP)
    await until(lambda: gateway.call("status")["turns"]["running"] == 0, "all turns have ended")
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left
    assert find_in_home(gateway, OF_ANN)


async def runs(gateway: GatewayProcess, turns: int) -> None:
    await until(lambda: gateway.call("status")["turns"]["running"] == turns, f"{turns} turns that run")


async def forget(gateway: GatewayProcess) -> None:
    (gone,) = (await cli(gateway, "people", "forget", f"telegram:{BEN}", "--yes", "--json"))["forgotten"]
    assert gone["busy"] == []


async def test_of_turns_that_were_stopped_midway_or_undone_nothing_is_left(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    """Their words stand in the chain of a conversation that shows none of them."""
    await say(wire, f"hello all {OF_ANN}", by=ANN, chat=GROUP)
    await say(wire, f"hello from ben {SECRET}", by=BEN, chat=GROUP)
    await say(wire, "/undo", by=BEN, chat=GROUP)
    await wire.upload(("note.ogg", f"hang {SECRET}".encode()), by=BEN, chat=GROUP)
    await runs(gateway, 1)
    await say(wire, "/stop", by=BEN, chat=GROUP)
    await runs(gateway, 0)
    await say(wire, "/undo", by=BEN, chat=GROUP)
    assert find_in_home(gateway, SECRET)
    await forget(gateway)
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left
    assert find_in_home(gateway, OF_ANN)


@pytest.mark.parametrize("where", [GROUP, ""], ids=["of several", "their own"])
async def test_who_is_forgotten_while_a_voice_note_of_theirs_is_listened_to_is_gone_with_it(
    wire: TelegramWire, gateway: GatewayProcess, where: str
) -> None:
    await wire.upload(("note.ogg", f"dawdle {SECRET}".encode()), by=BEN, chat=where)
    await until(lambda: bool(read_in(gateway.home.journal, AUDIO_SUBJECTS, 1)), "somebody who listens")
    await forget(gateway)
    await say(wire, f"slow {OF_ANN}", by=ANN)
    await runs(gateway, 0)
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left


async def test_who_is_forgotten_while_their_turn_runs_in_a_conversation_of_several_is_gone_with_it(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    await wire.write(f"slow, please {SECRET}", by=BEN, chat=GROUP)
    await runs(gateway, 1)
    await forget(gateway)
    await runs(gateway, 0)
    await to_thread.run_sync(gateway.stop)
    assert not (left := find_in_home(gateway, SECRET)), left
