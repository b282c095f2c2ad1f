"""A home that version 0.1.0 left, killed in the midst of its work: the gateway of today reads it, and goes on.

`make_0_1_0.py` made it. All clocks go on where they were: questions and requests would be over by now.
"""

import itertools
import json
import tarfile
import time
import urllib.request
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.config.home import Home
from gateway.testing.networks.wire import ANN, BEN, Shown
from tests.adapters.telegram_wire import TelegramWire
from tests.chaos.moved_gateway import MovedGateway
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

ARCHIVE = Path(__file__).with_name("home-0.1.0.tar.xz")
CLEO, DORA, STRANGER = "3003", "4004", "6666"
GUARD_WORDS = "a hook that fails before a tool"
VOICE_WORDS = "programs under `voice`"


class Grown:
    """The home, the gateway of today in it, and the network before it."""

    def __init__(self, folder: Path, wire: TelegramWire) -> None:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
        self.home = Home(folder / "home")
        self.about: dict[str, Any] = json.loads((self.home.own_folder / "ABOUT.json").read_text())
        wire.ago = time.time() - self.about["made"]
        self.wire, self.gateway = wire, MovedGateway(self.home.root, -wire.ago)
        self.gateway.environ |= wire.environ
        (self.data,) = self.home.hook_data.glob("clerk@*")
        (self.data / "away").unlink()
        script = self.home.own_folder / "script.yaml"
        script.write_text(script.read_text().replace('"1h"', '"0s"'))

    async def start(self) -> None:
        await to_thread.run_sync(self.gateway.start)

    async def call(self, verb: str, **params: Any) -> Any:
        return await to_thread.run_sync(self.gateway.call, verb, params)

    async def cli(self, *args: str) -> str:
        done = await to_thread.run_sync(partial(self.gateway.cli, *args))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def say(self, text: str, session: str = "main") -> str:
        return str((await to_thread.run_sync(self.gateway.say, text, session))["reply"])

    async def read(self, name: str) -> list[tuple[str, str]]:
        """Return the role and words of each entry in a session of the terminal."""
        found = await self.call("sessions.show", session=f"agent:main:terminal:dm:{name}")
        return [(one["role"], one["content"]) for one in found["entries"]]

    async def list_hooks(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in (await self.call("hooks.list"))["hooks"]}

    async def are_loaded(self, *names: str) -> None:
        async def are_loaded() -> bool:
            found = await self.list_hooks()
            return all(found[name]["state"] == "loaded" for name in names)

        await until(are_loaded, f"{names} loaded")

    async def is_idle(self) -> bool:
        status = await self.call("status")
        return not (status["turns"]["running"] or any(status["backlog"]["replies"].values()))

    def ask(self, path: str, key: str, body: dict[str, Any] | None = None) -> str:
        headers = {"authorization": f"Bearer {self.about[key]}", "content-type": "application/json"}
        data = json.dumps(body).encode() if body else None
        url = self.gateway.call("status")["web"]["url"] + path
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
            return str(answer.read().decode())

    def said_to(self, chat: str, text: str) -> list[Shown]:
        return [one for one in self.wire.shown if one.chat == chat and text in one.text]


@pytest.fixture
async def grown(tmp_path: Path) -> AsyncIterator[Grown]:
    wire = TelegramWire(_numbers=itertools.count(1000))  # it goes on behind what the home knows
    async with wire.serving():
        grown = Grown(tmp_path, wire)
        with grown.gateway:
            yield grown


async def test_what_was_under_way_goes_on_and_is_done_once(grown: Grown) -> None:
    asked = Shown(grown.about["question"]["id"], ANN, grown.about["question"]["text"])
    asked.buttons = grown.about["question"]["buttons"]
    grown.wire.shown.append(asked)
    await grown.start()
    await until(lambda: bool(grown.said_to(CLEO, "I am here. *")), "the reply that was owed")
    (waiting,) = (await grown.call("approvals.list"))["approvals"]
    assert (waiting["id"], waiting["user_id"]) == (grown.about["approval"], BEN)
    assert waiting["calls"] == [{"tool": "shell", "args": {"command": "echo it ran"}}]
    await grown.wire.press(asked, "Yes", by=ANN)
    await until(lambda: bool(grown.said_to(BEN, "It did run. *")), "the end of Ben's turn")
    await until(lambda: not asked.buttons and "Allowed by" in asked.text, "the end of the question")
    await until(grown.is_idle, "idle")
    slow = await grown.read("slow")
    assert [words for role, words in slow if role == "assistant" and words] == ["It took a while.", "I am here."]
    assert [words for role, words in slow if role == "user"] == ["take your time", "are you there, behind it"]
    assert (await to_thread.run_sync(grown.gateway.stop))[0] == 0
    await grown.start()
    await until(grown.is_idle, "idle once more")
    assert len(grown.said_to(CLEO, "I am here. *")) == len(grown.said_to(BEN, "It did run. *")) == 1


async def test_people_conversations_and_all_that_was_kept_are_there(grown: Grown) -> None:
    await grown.start()
    people = {one["person"]: one["role"] for one in (await grown.call("people.list"))["people"]}
    roles = {ANN: "owner", BEN: "user", CLEO: "user", DORA: "operator"}
    assert {f"telegram:{person}": role for person, role in roles.items()}.items() <= people.items()
    assert "telegram:5005" not in people
    pairing = await grown.call("pairing.list")
    assert ([one["user_id"] for one in pairing["asking"]], len(pairing["invited"])) == ([STRANGER], 1)
    assert len((await grown.call("sessions.list", limit=50))["sessions"]) == grown.about["sessions"]
    main = await grown.read("main")
    assert ("user", "remember tea") in main
    assert any("no secrets are written" in words for role, words in main if role == "tool")
    assert len(await grown.read("long")) == 140
    assert "Of tea" in await grown.cli("sessions", "list")
    assert "take your time" in await grown.cli("sessions", "search", "time")
    assert (await grown.call("usage", by="person"))["total"]["calls"] > 100
    assert {"keys.create", "people.forget", "sessions.delete"} <= {
        one["what"] for one in (await grown.call("activity.list"))["activity"]
    }
    (job,) = (await grown.call("jobs.list"))["jobs"]
    assert (job["text"], job["maker"], job["state"]) == ("water the plants", "terminal:owner", "waiting")
    await grown.say("what is set")
    await grown.say("what do you know")
    told = [words for role, words in await grown.read("main") if role == "tool"][-2:]
    assert "water the plants" in told[0]
    assert "Ann likes tea." in told[1]
    assert "# HELP" in await to_thread.run_sync(grown.ask, "/metrics", "figures")
    body = {"model": "main", "messages": [{"role": "user", "content": "are you there"}], "user": "ann"}
    assert "I am here." in await to_thread.run_sync(grown.ask, "/v1/chat/completions", "notes", body)
    assert (grown.home.own_folder / "workspace" / "note.txt").read_text() == "a line\n"
    for copy in (grown.home.journal, grown.home.backups / "by-hand.db"):
        assert "is whole" in await grown.cli("backup", "verify", str(copy))
    assert {"tea", "coffee"} <= {one.split()[0] for one in (await grown.cli("skills", "list")).splitlines() if one}


async def test_hooks_run_as_they_were_installed_and_trusted(grown: Grown) -> None:
    await grown.start()
    await grown.are_loaded("greeter", "daily", "clerk", "tally")
    hooks = await grown.list_hooks()
    assert hooks["untrusted"]["state"] == "pending"
    assert (await grown.call("hooks.dead_letters", name="scribe"))["letters"]
    assert "clerk" in await grown.cli("hooks", "freeze")

    async def has_heard_all() -> bool:
        return "clerk" not in (await grown.call("status"))["behind"]

    await until(has_heard_all, "what the clerk was owed")
    heard = (grown.data / "log").read_text().splitlines()
    assert len(heard) == len({*heard}) > 200
    turns = (await grown.call("hooks.info", name="greeter"))["kept"]["turns"]
    assert turns > 90, "it goes on counting"
    assert await grown.say("count it") == "Counted."
    assert json.loads([words for role, words in await grown.read("main") if role == "tool"][-1])["counted"] > 8
    await grown.say("keep a secret", "other")
    assert any("no secrets are written" in words for role, words in await grown.read("other") if role == "tool")
    (installed,) = grown.home.installed_hooks.glob("clerk@*")
    (installed / "handler.py").chmod(0o600)
    for folder, reason in (
        (grown.home.hooks / "greeter", "not trusted as it is now"),
        (grown.home.plugins / "tally", "not trusted as it is now"),
        (installed, "install it again"),
    ):
        with next(folder.glob("*.py")).open("a") as code:
            code.write("# changed\n")
        name = folder.name.partition("@")[0]
        await grown.call("hooks.reload", name=name)
        assert reason in (await grown.list_hooks())[name]["reason"]
    after = (await grown.call("hooks.info", name="greeter"))["kept"]["turns"]
    assert after > turns


async def test_a_start_says_once_what_is_another_way_now(grown: Grown) -> None:
    await grown.start()
    await until(lambda: GUARD_WORDS in grown.home.log.read_text(), "the word of guards")
    (line,) = [line for line in grown.home.log.read_text().splitlines() if GUARD_WORDS in line]
    assert "it: greeter; to keep one as it was" in line
    assert VOICE_WORDS in grown.home.log.read_text()
    assert VOICE_WORDS in await grown.cli("status"), "until the configuration says it"
    await to_thread.run_sync(grown.gateway.stop)
    await grown.start()
    await grown.are_loaded("greeter", "daily", "scribe", "clerk", "tally")
    assert grown.home.log.read_text().count(GUARD_WORDS) == 1
