"""The pending events of durable hooks, against the senders' own notes: however the daemon ends, none is missing.

The senders write down what was answered to them, and say a thing again until it is. The hooks write down what they were
told. Neither reads the journal.
"""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.errors import GatewayError
from gateway.testing.gateway_process import GatewayProcess
from tests.chaos.people import Typist
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

PATIENCE = 90.0

NOTE = """
import json, os

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def handle(name, context):
    fields = {{field: context.get(field) for field in ("id", "message_full", "text", "turn_id", "stop", "n")}}
    os.write(FILE, json.dumps({{"name": name, "key": context["delivery"]["key"], **fields}}).encode() + b"\\n")
"""

SENDER = """
import asyncio, os

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
LIFE = os.urandom(4).hex()

async def send(gateway, lane):
    for count in range({each}):
        n = f"{{LIFE}}-{{lane}}-{{count}}"
        await gateway.emit("my:count", n=n)
        os.write(FILE, n.encode() + b"\\n")

async def handle(name, context):
    await asyncio.gather(*(send(context.gateway, lane) for lane in range({lanes})))
"""


class Notes:
    """A durable hook's records of its events."""

    def __init__(self, gateway: GatewayProcess, name: str, events: str) -> None:
        self.name = name
        self.file = gateway.home.root.parent / f"{name}.told"
        manifest = f"events: {json.dumps([events])}\ndelivery: durable\n"
        gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": NOTE.format(file=str(self.file))})

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in read_lines(self.file)]

    def texts_of(self, name: str, field: str) -> Counter[str]:
        return Counter(told[field] for told in self.read() if told["name"] == name)


def read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home", forks=False) as gateway:
        yield gateway


async def keep_ending(gateway: GatewayProcess, how: tuple[int, ...], pause: float) -> None:
    """End the daemon so often, each time in the midst of its work, and start it again."""
    for number in how:
        await anyio.sleep(pause)
        if number == signal.SIGKILL:
            gateway.kill()
        else:
            await anyio.to_thread.run_sync(gateway.stop, number)
        await anyio.to_thread.run_sync(gateway.start)


async def talk(gateway: GatewayProcess, typists: list[Typist], each: int, how: tuple[int, ...], pause: float) -> None:
    """All of them talk, while the daemon is ended again and again."""
    async with anyio.create_task_group() as tasks:
        for typist in typists:
            texts = [f"{typist.session} says {at}" for at in range(each)]
            tasks.start_soon(typist.talk, texts, 0.0)
        tasks.start_soon(keep_ending, gateway, how, pause)


async def delivered(gateway: GatewayProcess, *names: str) -> None:
    """Wait until the journal has no pending events for these hooks."""

    def is_done() -> bool:
        try:
            found = {hook["name"]: hook for hook in gateway.call("hooks.list")["hooks"]}
        except GatewayError:
            return False
        return all(found[name]["owed"] == 0 for name in names)

    await until(partial(anyio.to_thread.run_sync, is_done), "that hooks are told", PATIENCE)


@pytest.mark.parametrize(
    "how",
    [(signal.SIGTERM,) * 2, (signal.SIGKILL,) * 3],
    ids=["stopped in good order", "killed"],
)
async def test_each_turn_that_was_answered_is_told_to_the_hooks_that_are_owed_it(
    gateway: GatewayProcess, how: tuple[int, ...]
) -> None:
    """Sixteen who talk as fast as they can, with a hook at the end of turns and one for all that happens."""
    ends, everything = Notes(gateway, "ends", "agent:end"), Notes(gateway, "everything", "*")
    gateway.script({"user": "says", "text": "I hear you."})
    await anyio.to_thread.run_sync(gateway.start)
    typists = [Typist(number, gateway.home.socket) for number in range(16)]
    await talk(gateway, typists, 8, how, 0.4)
    said = {f"{typist.session} says {at}" for typist in typists for at in range(8)}
    assert sum(len(typist.answers) for typist in typists) == len(said)
    await delivered(gateway, "ends", "everything")
    told = ends.read()
    assert {one["message_full"] for one in told if one["stop"] != "interrupted"} == said
    assert set(everything.texts_of("agent:end", "message_full")) == said
    assert set(everything.texts_of("message:received", "text")) == said
    turns = {one["turn_id"] for one in told}
    assert set(everything.texts_of("llm:after", "turn_id")) == turns
    assert set(everything.texts_of("message:sent", "turn_id")) == turns
    assert len({one["key"] for one in told}) == len({one["id"] for one in told}), "an event stands there twice"


async def test_a_thousand_events_a_second_are_kept_once_their_sender_hears_so(gateway: GatewayProcess) -> None:
    """What a hook has fired, and was told that it is done, reaches the durable hook, though the daemon is killed."""
    sent = gateway.home.root.parent / "sent"
    source = SENDER.format(file=str(sent), each=400, lanes=20)
    gateway.add_hook("sender", {"HOOK.yaml": "events: [agent:start]\nuses: [emit]\n", "handler.py": source})
    notes = Notes(gateway, "notes", "my:*")
    gateway.script({"user": "go", "text": "It goes."})
    for lines in (500, 1000):
        await anyio.to_thread.run_sync(gateway.start)
        await anyio.to_thread.run_sync(gateway.say, "go")
        await anyio.to_thread.run_sync(gateway.until, lambda lines=lines: len(read_lines(sent)) >= lines)
        gateway.kill()
    await anyio.to_thread.run_sync(gateway.start)
    await delivered(gateway, "notes")
    assert set(read_lines(sent)) <= set(notes.texts_of("my:count", "n"))
