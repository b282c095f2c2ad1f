"""Work that a hook requests has the rights of the person whose event it received, along the whole chain."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

pytestmark = pytest.mark.row("T18")

SUBMIT = "def handle(event_type, context):\n    context.gateway.submit({text!r}, session={session!r})\n"
TELL = 'def handle(event_type, context):\n    context.gateway.emit("mine:told", role="owner", rights="owner")\n'
LATER = """
import threading

def work(gateway):
    gateway.submit("work of a thread", session="later").result()

def handle(event_type, context):
    if context.get("text") == "go":
        threading.Thread(target=work, args=(context.gateway,)).start()
"""
REMIND = {"tool_calls": [{"name": "schedule", "args": {"text": "drink tea", "when": "1s"}}]}
SCRIPT: tuple[Mapping[str, Any], ...] = (
    {"user": "remind", "answers": [REMIND, {"text": "I will."}]},
    *({"text": "Done."},) * 40,
)
SETTINGS = f"access: {{owners: {{telegram: ['{ANN}']}}, everybody: [telegram], rate: 100}}\n"
NOT_INTERNAL = "when: {platform: telegram}\n"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


def submit(session: str, text: str = "work") -> str:
    return SUBMIT.format(text=text, session=session)


def add_hook(root: Path, name: str, manifest: str, handler: str) -> None:
    GatewayProcess(root).add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler})


async def role_of_work(house: House, session: str, count: int = 1) -> str:
    """The role of the last turn that a hook submitted into this session."""

    def turns() -> list[dict[str, Any]]:
        found = (fields for event, fields in house.events if event == "agent:end")
        return [fields for fields in found if str(fields["session_key"]).endswith(f":{session}")]

    await until(lambda: len(turns()) >= count, f"the work in {session}")
    return str(turns()[-1]["role"])


@pytest.mark.parametrize(("by", "role"), [(ANN, "owner"), (BEN, "user"), (STRANGER, "guest")])
async def test_it_is_that_of_the_person_also_when_another_hook_stands_between(
    wire: TelegramWire, tmp_path: Path, by: str, role: str
) -> None:
    root = tmp_path / "home"
    add_hook(root, "near", f"events: [message:received]\nuses: [submit]\n{NOT_INTERNAL}", submit("near"))
    add_hook(root, "teller", f"events: [message:received]\nuses: [emit]\n{NOT_INTERNAL}", TELL)
    add_hook(root, "far", "events: [mine:told]\nuses: [submit]\n", submit("far"))
    durable = f"events: [message:received]\ndelivery: durable\nuses: [submit]\n{NOT_INTERNAL}"
    add_hook(root, "durable", durable, submit("durable"))
    add_hook(root, "after", f"events: [message:sent]\nuses: [submit]\n{NOT_INTERNAL}", submit("after"))
    add_hook(root, "later", "intercepts: [message:received]\nuses: [submit]\n", LATER)
    async with housed(wire, root, *SCRIPT, settings=SETTINGS) as house:
        await house.gateway.folder_hooks.settled()
        await wire.write("go", by=by)
        for session in ("near", "far", "durable", "after", "later"):
            assert await role_of_work(house, session) == role, session


async def test_a_start_is_the_owners_and_who_is_turned_away_has_the_least(wire: TelegramWire, tmp_path: Path) -> None:
    root = tmp_path / "home"
    add_hook(root, "begin", "events: [gateway:startup]\nuses: [submit]\n", submit("begin"))
    add_hook(root, "door", "events: [access:denied]\nuses: [submit]\n", submit("door"))
    settings = f"access: {{owners: {{telegram: ['{ANN}']}}, strangers: ignore}}\n"
    async with housed(wire, root, *SCRIPT, settings=settings) as house:
        assert await role_of_work(house, "begin") == "owner"
        await wire.write("hello", by=STRANGER)
        assert await role_of_work(house, "door") == "guest"


@pytest.mark.parametrize("delivery", ["memory", "durable"])
async def test_a_schedule_is_the_owners_and_what_somebody_else_sends_on_is_not(
    wire: TelegramWire, tmp_path: Path, delivery: str
) -> None:
    root = tmp_path / "home"
    timetable = f"schedule: every 1s\ndelivery: {delivery}\nuses: [submit]\n"
    add_hook(root, "clock", timetable, submit("clock"))
    add_hook(root, "teller", f"events: [message:received]\nuses: [emit]\n{NOT_INTERNAL}", TELL)
    add_hook(root, "far", f"events: [mine:told]\ndelivery: {delivery}\nuses: [submit]\n", submit("far"))
    async with housed(wire, root, *SCRIPT, *({"text": "Done."},) * 40, settings=SETTINGS) as house:
        await house.gateway.folder_hooks.settled()
        assert await role_of_work(house, "clock") == "owner"
        await wire.write("go", by=STRANGER)
        assert await role_of_work(house, "far") == "guest"


async def test_what_a_durable_hook_was_owed_before_a_restart_has_the_rights_that_it_had(
    wire: TelegramWire, tmp_path: Path
) -> None:
    root, gate = tmp_path / "home", tmp_path / "open"
    waits = f"    import os, time\n    while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    submits = submit("durable").replace("):\n", f"):\n{waits}")
    add_hook(root, "durable", f"events: [message:received]\ndelivery: durable\nuses: [submit]\n{NOT_INTERNAL}", submits)
    async with housed(wire, root, *SCRIPT, settings=SETTINGS):
        await wire.write("go", by=BEN)
        await until(lambda: bool(wire.shown), "the answer")
    gate.touch()
    async with housed(wire, root, *SCRIPT, settings=SETTINGS) as house:
        assert await role_of_work(house, "durable") == "user"


async def test_a_reminder_that_such_work_sets_comes_with_the_same_rights(wire: TelegramWire, tmp_path: Path) -> None:
    root = tmp_path / "home"
    remind = submit("near", "remind")
    add_hook(root, "near", f"events: [message:received]\nuses: [submit]\n{NOT_INTERNAL}", remind)
    async with housed(wire, root, *SCRIPT, settings=SETTINGS) as house:
        await house.gateway.folder_hooks.settled()
        await wire.write("go", by=BEN)
        assert await role_of_work(house, "near", 2) == "user"
        due = [fields for event, fields in house.events if event == "agent:start" and "drink tea" in fields["message"]]
        assert [fields["role"] for fields in due] == ["user"]
