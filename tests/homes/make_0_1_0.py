"""Make `home-0.1.0.tar.xz`: a home as version 0.1.0 leaves it when it is killed in the midst of its work.

The script imports the gateway of a checkout of that version, and runs there for seven minutes:

    $ git worktree add /tmp/old v0.1.0
    $ cd /tmp/old && ./x check floors
    $ PYTHONPATH=. .venv/bin/python .../tests/homes/make_0_1_0.py .../tests/homes/home-0.1.0.tar.xz

`test_home_0_1_0.py` reads the archive; `ABOUT.json` in it has keys, ids and the number of records of each kind. No
record there is of the kinds `deleted`, `update` (other networks), `file`, `hooks` (NATS), `removed`, `unheard` and
`unremembered`.
"""

import asyncio
import json
import re
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.telegram_wire import TelegramWire

RUNNING = ("greeter", "daily", "scribe", "clerk", "tally")
CLEO, DORA, EVE = "3003", "4004", "5005"
CONFIG = f"""\
gateway: {{shutdown_timeout: 2s}}
model: {{script: hermes-gateway/script.yaml, input_price: 1, output_price: 2}}
node: {{name: house}}
hooks: {{trust: pinned, each: {{greeter: {{options: {{sign: "*"}}}}}}}}
platforms: {{telegram: {{streaming: "off", home_channel: "{ANN}"}}}}
access:
  owners: {{telegram: ["{ANN}"]}}
  users: {{telegram: ["{BEN}"]}}
  tools: {{user: [shell]}}
  groups: {{family: {{people: ["telegram:{ANN}", "telegram:{BEN}"], role: user}}}}
budgets: {{each_person: {{day: {{tokens: 1000000}}}}}}
chats: {{"telegram:{GROUP}": {{answer: quiet}}}}
voice:
  transcribe: {{command: [sh, -c, "echo the words of a voice note"]}}
  speak: {{command: [sh, -c, "cat >$0", "{{file}}"]}}
webhooks: {{bell: {{secret_env: BELL_SECRET, verify: token, template: "are you there: {{{{kind}}}}"}}}}
sessions: {{state_db: "on"}}
"""
USED = {"input_tokens": 100, "output_tokens": 20}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}], "usage": USED}


def turn(words: str, *answers: dict[str, Any]) -> dict[str, Any]:
    return {"user": words, "answers": list(answers)}


SCRIPT = [
    turn("run it", call("shell", command="echo it ran"), {"text": "It did run."}),
    turn("keep a secret", call("write_file", path="secret.txt", content="a line\n"), {"text": "It is not kept."}),
    turn(
        "keep a note",
        {"text": "Let me see."} | call("write_file", path="note.txt", content="a line\n"),
        {"text": "It is kept."},
    ),
    turn("a word first", call("send_message", text="A word."), {"text": "And the rest."}),
    turn("remember", call("remember", text="Ann likes tea."), {"text": "I shall."}),
    turn("remind me", call("schedule", text="water the plants", when="360d"), {"text": "I shall remind you."}),
    turn("what is set", call("scheduled"), {"text": "That is all."}),
    turn("what do you know", call("recall", query="likes"), {"text": "You know it."}),
    turn("count it", call("tally"), {"text": "Counted."}),
    turn("take your time", call("list_files", path="."), {"text": "It took a while.", "delay": "1h"}),
    turn("are you there", {"text": "I am here.", "usage": USED}),
    turn("fall over", {"error": {"kind": "other", "message": "it fell"}}),
]
GREETER = {
    "HOOK.yaml": """\
events: [agent:end]
intercepts: [message:sending, tool:before]
uses: [store]
options: {sign: "-"}
""",
    "handler.py": """\
from gateway.hooks import Deny


async def handle(event_type, context):
    store = context.gateway.store
    if event_type == "agent:end":
        await store.set("turns", await store.get("turns", 0) + 1)
    elif event_type == "tool:before":
        if context["args"].get("path") == "secret.txt":
            raise Deny("no secrets are written")
    else:
        context["text"] = f"{context['text']} {context.options['sign']}"
""",
}
UNTRUSTED = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context):\n    pass\n"}
CLERK = {  # installed; durable, and there is a file that it waits for
    "HOOK.yaml": "events: [message:received, agent:end]\ndelivery: durable\nversion: 1.0.0\nuses: [store]\n",
    "handler.py": """\
async def handle(event_type, context):
    if (context.data / "away").exists():
        raise RuntimeError("the clerk is away")
    with (context.data / "log").open("a") as log:
        log.write(f"{context['delivery']['key']} {event_type}\\n")
    await context.gateway.store.set("last", event_type)
""",
}
SCRIBE = {  # what it is owed ends among the dead letters
    "HOOK.yaml": "events: ['command:title']\ndelivery: durable\n",
    "handler.py": "def handle(event_type, context):\n    raise RuntimeError('no ink')\n",
}
DAILY = {
    "HOOK.yaml": "schedule: '@daily'\n",
    "handler.py": "def handle(event_type, context):\n    print('called')\n",
}
PLUGIN = {
    "plugin.yaml": "name: tally\nversion: '1'\ndescription: Counts\n",
    "__init__.py": """\
import json
import os
from pathlib import Path

LOG = Path(os.environ["HERMES_HOME"]) / "tally.log"


def before(tool_name="", **_):
    with LOG.open("a") as log:
        log.write(f"{tool_name}\\n")
    if tool_name == "write_file" and (LOG.parent / "tally.shut").exists():
        return {"action": "block", "message": "the tally is shut"}


def count(args, **_):
    return json.dumps({"counted": len(LOG.read_text().splitlines())})


def register(ctx):
    ctx.register_hook("pre_tool_call", before)
    schema = {"name": "tally", "description": "Count", "parameters": {"type": "object", "properties": {}}}
    ctx.register_tool("tally", "tally", schema, count)
    ctx.register_command("tally", lambda raw: "counted by hand")
""",
}


def write_folder(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


class Maker:
    """The gateway of 0.1.0 in a home, with people who write to it."""

    def __init__(self, folder: Path) -> None:
        self.is_ill = False
        self.wire = TelegramWire(middlewares=[self._refuse])
        self.gateway = GatewayProcess(folder / "home")
        self.about: dict[str, Any] = {"made": time.time(), "people": {"cleo": CLEO, "dora": DORA}}

    @web.middleware
    async def _refuse(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.is_ill and request.path.endswith("/sendMessage") and (await request.post()).get("chat_id") == CLEO:
            return web.json_response({"ok": False, "error_code": 502, "description": "Bad Gateway"}, status=502)
        return await handler(request)  # type: ignore[no-any-return]

    async def run(self, *args: str) -> str:
        done = await asyncio.to_thread(partial(self.gateway.cli, *args))
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    async def call(self, verb: str, **params: Any) -> Any:
        return await asyncio.to_thread(self.gateway.call, verb, params)

    async def say(self, text: str, session: str = "main") -> str:
        said = await asyncio.to_thread(self.gateway.say, text, session)
        assert said["status"] in ("ok", "command", "failed"), said
        return str(said["reply"])

    async def shown(self, text: str, chat: str) -> None:
        await until(
            lambda: any(text in one.text and one.chat == chat for one in self.wire.shown), f"{text!r} in {chat}"
        )

    async def stored(self, *words: str) -> None:
        """Wait until the journal holds a record with these words."""
        await until(lambda: self._has_record(words), f"a record with {words}")

    def _has_record(self, words: Sequence[str]) -> bool:
        with closing(sqlite3.connect(self.gateway.home.journal)) as db:
            where = " AND ".join(["CAST(data AS TEXT) LIKE ?"] * len(words))
            return bool(db.execute(f"SELECT 1 FROM log WHERE {where}", [f"%{one}%" for one in words]).fetchone())

    def ask(self, path: str, key: str, body: dict[str, Any]) -> Any:
        url = f"{self.web}{path}"
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return json.loads(answer.read())

    async def make(self, folder: Path) -> None:
        home = self.gateway.home
        self.gateway.environ |= self.wire.environ
        self.gateway.configure(CONFIG)
        (home.own_folder / "script.yaml").write_text(json.dumps({"turns": SCRIPT}))
        (home.root / ".env").write_text("HERMES_TEA=oolong\nBELL_SECRET=a-secret-of-the-bell\n")
        (home.root / ".env").chmod(0o600)
        (home.root / "config.yaml").write_text("plugins: {enabled: [tally]}\n")
        for name, files in (("greeter", GREETER), ("untrusted", UNTRUSTED), ("daily", DAILY), ("scribe", SCRIBE)):
            self.gateway.add_hook(name, files)
        write_folder(home.plugins / "tally", PLUGIN)
        write_folder(home.skills / "tea", {"SKILL.md": "---\nname: tea\ndescription: Makes tea\n---\nBoil water.\n"})
        await asyncio.to_thread(self.gateway.start)
        self.web = (await self.call("status"))["web"]["url"]
        await self.run("hooks", "install", "--yes", str(write_folder(folder / "clerk", CLERK)))
        skill = {"SKILL.md": "---\nname: coffee\ndescription: Makes coffee\n---\nGrind beans.\n"}
        await self.run("skills", "install", "--yes", str(write_folder(folder / "coffee", skill)))
        for name in ("greeter", "daily", "scribe", "tally"):
            await self.run("hooks", "trust", name)
        await until(self._are_up, "up")
        await self.let_people_in()
        await self.talk()
        await self.give_keys()
        await self.leave_undone()

    async def _are_up(self) -> bool:
        found = {one["name"]: one["state"] for one in (await self.call("hooks.list"))["hooks"]}
        self.about["hooks"] = found
        return {found.get(name) for name in RUNNING} <= {"loaded", "registered"}

    async def let_people_in(self) -> None:
        for person in (CLEO, DORA, EVE, STRANGER):
            await self.wire.write("let me in", by=person)
            await self.shown("pairing approve", person)
        for person, role in ((CLEO, "user"), (DORA, "operator"), (EVE, "user")):
            (text,) = [one.text for one in self.wire.shown if one.chat == person]
            code = re.search(r"pairing approve (\w+)", text)
            assert code, text
            await self.run("pairing", "approve", code[1], "--as", role)
        await self.run("pairing", "revoke", "telegram", EVE)
        await self.run("pairing", "invite", "--as", "user", "--for", "2d")

    async def talk(self) -> None:
        for words in (
            "are you there",
            "keep a note",
            "keep a secret",
            "remember tea",
            "remind me",
            "count it",
            "/title Of tea",
        ):
            await self.say(words)
        await self.say("are you there", "old")
        await self.say("/new", "old")
        await self.say("are you there", "old")
        await self.say("/undo", "old")
        await self.say("/branch", "old")
        await self.say("fall over", "old")
        for _ in range(70):  # behind 200 records there is a summary of the session
            await self.say("are you there", "long")
        await self.say("are you there", "gone")
        await self.run("sessions", "delete", "agent:main:terminal:dm:gone", "--yes")
        await self.wire.write("are you there", by=ANN)
        await self.shown("I am here. *", ANN)
        await self.wire.upload(("plan.pdf", b"%PDF-1.4 a plan"), caption="are you there, with a plan", by=ANN)
        await self.wire.upload(("note.ogg", b"OggS a voice note"), caption="are you there, by voice", by=ANN)
        await self.wire.edit(await self.wire.write("are you there, Bob", by=ANN), "are you there, Ben")
        await self.wire.write("run it", by=ANN)
        await self.shown("May I run shell", ANN)
        await self.wire.write("/approve always", by=ANN)
        await self.shown("It did run. *", ANN)
        await self.wire.write("a word first", by=ANN)
        await self.shown("And the rest. *", ANN)
        await self.wire.write("/settings language en", by=ANN)
        await self.shown("anguage", ANN)
        await self.wire.write("/voice on", by=DORA)
        await self.shown("spoken", DORA)
        await self.wire.write("are you there", by=DORA)
        await until(self._is_told, "told")
        self.wire.update("message", {"message_id": "none"})
        fire = await self.wire.write("the printer is on fire", by=BEN, chat=GROUP)
        await self.stored('"kind":"heard"', "on fire")
        await self.wire.edit(fire, "the printer was on fire", by=BEN)
        await self.stored('"kind":"heard"', "was on fire")
        await self.wire.mention("are you there", by=ANN)
        await self.shown("I am here. *", GROUP)
        await self.wire.write("are you there", by=CLEO)
        await self.shown("I am here. *", CLEO)

    async def give_keys(self) -> None:
        for name, more in (("figures", ["--as", "operator"]), ("notes", ["--as", "user", "--agent", "main"])):
            self.about[name] = (await self.run("keys", "new", name, *more)).strip()
        said = [{"role": "user", "content": "are you there"}]
        for user in ("ann", "dan"):
            body = {"model": "main", "messages": said, "user": user}
            await asyncio.to_thread(self.ask, "/v1/chat/completions", self.about["notes"], body)
        body = {"model": "main", "messages": [{"role": "user", "content": "remember tea"}], "user": "dan"}
        await asyncio.to_thread(self.ask, "/v1/chat/completions", self.about["notes"], body)
        body = {"model": "main", "input": "are you there"}
        made = await asyncio.to_thread(self.ask, "/v1/responses", self.about["notes"], body)
        self.about["response"] = made["id"]
        await self.run("people", "forget", "api:notes:dan", "--yes")
        link = (await self.call("web.open"))["url"]
        await asyncio.to_thread(self.chat_on_the_page, link)
        await until(self._is_told, "told")
        await self.call("web.open")
        await asyncio.to_thread(self.ask, "/webhooks/bell", "a-secret-of-the-bell", {"kind": "door"})
        await self.run("backup", "create", str(self.gateway.home.backups / "by-hand.db"))

    def chat_on_the_page(self, link: str) -> None:
        with urllib.request.urlopen(link) as entered:
            cookie = entered.headers["set-cookie"].split(";")[0]
        with urllib.request.urlopen(urllib.request.Request(f"{self.web}/", headers={"cookie": cookie})) as page:
            token = re.search(r'name="token" content="([0-9a-f]{64})"', page.read().decode())
        assert token
        headers = {"cookie": cookie, "x-token": token[1], "content-type": "application/json"}
        body = json.dumps({"id": "message-000001", "text": "are you there"}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.web}/chat/say", body, headers)).read()

    async def leave_undone(self) -> None:
        await until(self._has_dead_letters, "dead", 600)  # after four repetitions: 336 seconds
        (next(self.gateway.home.hook_data.glob("clerk@*")) / "away").touch()  # from here on it is owed what happens
        await self.wire.write("run it", by=BEN)
        await self.shown("echo it ran", ANN)
        await until(self._is_told, "told")
        self.is_ill = True
        await self.wire.write("are you there, once more", by=CLEO)
        await until(self._is_owed, "owed")
        slow = asyncio.create_task(self.say("take your time", "slow"))
        await until(self._is_slow, "slow")
        await asyncio.to_thread(self.gateway.stop)  # after two seconds the turn is given back
        await asyncio.gather(slow, return_exceptions=True)
        await asyncio.to_thread(self.gateway.start)
        await until(self._is_slow, "slow once more")
        behind = asyncio.create_task(self.say("are you there, behind it", "slow"))
        await self.stored('"kind":"in"', "behind it")
        (asked,) = (await self.call("approvals.list"))["approvals"]
        self.about["approval"] = asked["id"]
        self.about["sessions"] = len((await self.call("sessions.list"))["sessions"])
        self.gateway.kill()
        await asyncio.gather(behind, return_exceptions=True)
        question = next(one for one in self.wire.shown if one.buttons)
        self.about["question"] = {"id": question.id, "text": question.text, "buttons": question.buttons}

    async def _is_told(self) -> bool:
        return not any((await self.call("status"))["backlog"]["replies"].values())

    async def _is_owed(self) -> bool:
        return any((await self.call("status"))["backlog"]["replies"].values())

    async def _has_dead_letters(self) -> bool:
        return bool((await self.call("hooks.dead_letters", name="scribe"))["letters"])

    async def _is_slow(self) -> bool:
        log = self.gateway.home.root / "tally.log"
        return "search_files" in log.read_text() and (await self.call("status"))["turns"]["running"] > 0


def list_kinds(journal: Path) -> dict[str, int]:
    """How many records of each kind the journal has."""
    with sqlite3.connect(journal) as db:
        kinds: dict[str, int] = {}
        for (data,) in db.execute("SELECT data FROM log"):
            kind = json.loads(data)["kind"]
            kinds[kind] = kinds.get(kind, 0) + 1
    return dict(sorted(kinds.items()))


async def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        maker = Maker(folder)
        async with maker.wire.serving():
            try:
                await maker.make(folder)
            finally:
                maker.gateway.kill()
        home = maker.gateway.home
        (home.own_folder / "control.sock").unlink(missing_ok=True)
        shutil.rmtree(home.logs)  # they name this machine
        maker.about["kinds"] = list_kinds(shutil.copytree(home.own_folder, folder / "copy") / "journal.db")
        (home.own_folder / "ABOUT.json").write_text(json.dumps(maker.about, indent=1))
        for path in (one for one in home.root.rglob("*") if one.is_file()):
            if folder.as_posix().encode() in path.read_bytes():
                sys.stderr.write(f"{path.relative_to(home.root)} names {folder}\n")
        with tarfile.open(target, "w:xz", preset=9) as archive:
            archive.add(home.root, "home", filter=_make_nameless)
    sys.stdout.write(json.dumps(maker.about, indent=1) + "\n")


def _make_nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).absolute()))
