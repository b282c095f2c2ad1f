"""The real gateway fires every event of the catalogue: none is documented that never happens."""

import json
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread
from msgspec.structs import replace

from gateway.agent import Chunk, ModelRequest
from gateway.control.client import call_gateway
from gateway.events.catalogue import EVENT_SPECS
from gateway.jobs.job import Job
from gateway.jobs.journal import JobJournal
from gateway.messages.message import Address
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until
from tests.web.visits import send

SECRET = "a secret of forty characters and a few more"
SETTINGS = """\
  context_window: 1000
models: {{other: {{provider: ollama, name: parrot}}}}
access: {{admins: {{telegram: ['{ann}']}}}}
budgets: {{people: {{"telegram:{stranger}": {{day: {{tokens: 1}}}}}}}}
webhooks: {{bell: {{secret_env: BELL, verify: token}}}}
web: {{listen: "127.0.0.1:0"}}
tools: {{shell: ask, approvers: [asker]}}
voice: {{transcribe: {{command: [cat]}}}}
agents:
  main: {{agents: [helper], tools: [shell, calculate], skills: [coffee]}}
  helper: {{description: It helps., model: other}}
"""
COLLECTOR = """
import os

def handle(event_type, context):
    with open(os.path.join(os.environ["HERMES_HOME"], "events.txt"), "a") as file:
        file.write(event_type + "\\n")
"""


def calling(tool: str, **args: object) -> dict[str, object]:
    return {"tool_calls": [{"name": tool, "args": args}]}


SCRIPT = (
    {"user": "assistant:", "text": "They said many words."},
    {"user": "run", "answers": [calling("shell", command="echo 1"), {"text": "it ran"}]},
    {"user": "brew", "answers": [calling("load_skill", skill="coffee"), {"text": "brewed"}]},
    {"user": "help me", "answers": [calling("delegate", agent="helper", task="a task"), {"text": "I was helped"}]},
    {"user": "tea", "text": "the tea is ready"},
    {"user": "word", "text": "I listen."},
    *({"text": "I heard you.", "usage": {"calls": 1, "input_tokens": 5}},) * 4,
)


class Parrot:
    """The model that a hook gives."""

    name = "parrot"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        if "spill" in request.messages[-1].content:
            raise RuntimeError("it is spilt")
        yield Chunk(request.messages[-1].content)
        yield Chunk(stop="stop")


def family_of(name: str) -> str:
    family = f"{name.partition(':')[0]}:*"
    return family if family in EVENT_SPECS else name


def set_up(root: Path) -> None:
    """Hooks of three kinds, and a skill."""
    files = GatewayProcess(root)
    files.add_hook("collects", {"HOOK.yaml": "events: ['*']\n", "handler.py": COLLECTOR})
    files.add_hook("fails", {"HOOK.yaml": "events: [message:received]\n", "handler.py": "def handle(e, c): 1 / 0\n"})
    files.add_hook("ticks", {"HOOK.yaml": "schedule: every 1s\n", "handler.py": "def handle(e, c): pass\n"})
    skill = files.home.skills / "coffee"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: coffee\ndescription: How coffee is made.\n---\nGrind it.\n")


async def spend_and_ring(house: House) -> None:
    """Send a message, use up a new person's budget, call a webhook, and forget a person."""
    await house.wire.upload(("voice.ogg", b"brew"))
    await house.hears("audio:after")
    await house.shows("brewed", 2)
    for name in ("budget:warning", "budget:exceeded"):
        await house.wire.write("hello", by=STRANGER)
        await until(lambda name=name: any(told == name for told, _ in house.events), name)  # type: ignore[misc]
    await until(lambda: bool(house.gateway.web and house.gateway.web.port.url), "the port")
    assert house.gateway.web
    headers = {"Content_Type": "application/json", "Authorization": f"Bearer {SECRET}"}
    ring = partial(send, house.gateway.web.port.url, "/webhooks/bell", "POST", b"{}", **headers)
    assert (await to_thread.run_sync(ring)).status == 202
    forget = partial(call_gateway, house.gateway.home.socket, "people.forget", person="telegram:404")
    await to_thread.run_sync(forget)


async def let_jobs_come_due(house: House) -> None:
    """Jobs of one moment that runs, fails, may not run, and was missed."""
    now, here = time.time(), Address("terminal", "main")
    key = "agent:main:internal:dm:job:tea"
    tea = Job(
        "1", "tea", "terminal:owner", "1s", "tea", Address("internal", "tea"), here, key, "owner", now - 1, at=now
    )
    kinds = {
        "job:done": tea,
        "job:failed": replace(tea, id="2", name="spill", text="spill", agent="helper", session_key=f"{key}2"),
        "job:skipped": replace(tea, id="3", name="stranger", origin=Address("telegram", "404"), user_id="404"),
        "job:missed": replace(tea, id="4", name="late", since=now - 9000, at=now - 8000, missed="skip"),
    }
    for name, job in kinds.items():
        await JobJournal(house.gateway.engine).add(job)
        await until(lambda name=name: any(told == name for told, _ in house.events), name)  # type: ignore[misc]


@pytest.mark.process
@pytest.mark.timeout(90)
async def test_every_event_of_the_catalogue_is_fired_by_the_real_gateway(tmp_path: Path) -> None:
    root, fired = tmp_path / "home", set[str]()
    wire = TelegramWire()
    set_up(root)
    settings = SETTINGS.format(ann=wire.known_as(ANN), stranger=wire.known_as(STRANGER))
    async with wire.serving(), housed(wire, root, *SCRIPT, settings=settings, environ={"BELL": SECRET}) as house:
        house.gateway.registry.watch("*", lambda name, fields: fired.add(name))  # to the very end
        house.gateway.registry.on("model:create", lambda event: {"result": Parrot()})
        for text, answer in (("brew", "brewed"), ("help me", "I was helped"), ("hello", "I heard you")):
            message = await wire.write(text)
            await house.shows(answer)
        await wire.write("run it")
        await house.shows("May I run shell")
        await wire.write("/approve")
        await house.shows("it ran")
        await wire.react(message, "👍")
        await house.hears("reaction:added")
        await wire.react(message, "👍", is_taken_back=True)
        await house.hears("reaction:removed")
        await wire.write("hello", by=STRANGER)
        (shown,) = await house.shows("pairing code")
        await wire.write(f"/pairing approve {shown.text.split('code is ')[1][:8]}")
        await house.hears("access:paired")
        await spend_and_ring(house)
        await let_jobs_come_due(house)
        for number in range(5):
            await wire.write("word " * 300)
            await house.shows("I listen.", number + 1)
        await until(lambda: any(name == "session:compress" for name, _ in house.events), "the summary")
        await wire.write("/new")
        await until(lambda: any(name == "session:reset" for name, _ in house.events), "the new session")
        wire.forbid(BEN)
        await wire.write("hello", by=BEN)
        await house.hears("message:failed")
        await until(lambda: any(name.startswith("schedule:") for name, _ in house.events), "the schedule")
        await until(lambda: any(name == "hook:tripped" for name, _ in house.events), "the broken hook")
        wire.update("message", {"message_id": 1})
        await house.hears("platform:unreadable")
        wire.revoke()
        await until(lambda: bool(house.told("platform:down")), "the network's end")
    fired |= {name for name, _ in house.events} | set((root / "events.txt").read_text().split())
    missing = EVENT_SPECS.keys() - {family_of(name) for name in fired}
    assert not missing, json.dumps(sorted(missing))
