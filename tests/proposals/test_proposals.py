"""Changes of the house from the page: an owner elsewhere decides, and nobody and nothing else does."""

import json
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.cli.test_index import Publisher
from tests.installer.archives import HANDLER, MANIFEST
from tests.spine import until
from tests.web.chats import ChatVisitor
from tests.web.logged_in import Browser, log_in
from tests.web.visits import Visit, send

pytestmark = pytest.mark.process

SECRET = "sk-canary-7719-0123456789-wxyz"
RUN = {"user": "run it", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "ls"}}]}, {"text": "Ran."}]}
OTHER = "def handle(event_type, context):\n    print(event_type)\n"
SHOWN = "another one there now than what was shown"
WATCHES = """
import json, os
def handle(event_type, context):
    if context["tool"] != "change_gateway":
        return
    folder = os.path.dirname(__file__)
    with open(os.path.join(folder, "seen.jsonl"), "a") as file:
        file.write(json.dumps(context["args"]) + "\\n")
    if os.path.exists(os.path.join(folder, "deny")):
        return {"decision": "deny", "reason": "not on a Monday"}
    if os.path.exists(os.path.join(folder, "change")):
        context["args"] = context["args"] | {"name": "another"}
"""


class House:
    """A gateway with an owner and an admin on a network, and somebody on its page."""

    def __init__(self, gateway: GatewayProcess, wire: TelegramWire, hook: Path) -> None:
        self.gateway, self.wire, self.hook = gateway, wire, hook
        self.browser: Browser

    async def start(self) -> None:
        await to_thread.run_sync(self.gateway.start)
        await to_thread.run_sync(
            self.gateway.until, lambda: self.gateway.call("hooks.info", {"name": "watches"})["state"] == "loaded"
        )
        self.browser = await to_thread.run_sync(log_in, self.gateway)

    async def do(self, verb: str, /, **params: Any) -> Visit:
        return await to_thread.run_sync(partial(self.browser.do, verb, **params))

    async def make(self, kind: str, name: str = "", /, **values: str | None) -> Visit:
        return await self.do("proposals.make", kind=kind, name=name, values=values)

    async def propose(self, kind: str, name: str = "", /, **values: str | None) -> dict[str, Any]:
        made = await self.make(kind, name, **values)
        assert made.status == 200, made
        return dict(json.loads(made.body))

    async def listed(self) -> dict[str, Any]:
        found = await to_thread.run_sync(self.browser.ask, "proposals.list")
        return dict(found["proposals"][0])

    async def ended(self, state: str) -> dict[str, Any]:
        for _ in range(3):
            await self.wait(
                lambda: self.gateway.call("proposals.list")["proposals"][0]["state"] not in ("open", "allowed")
            )
        found = await self.listed()
        assert found["state"] == state, found
        return found

    async def wait(self, condition: Any) -> None:
        await to_thread.run_sync(self.gateway.until, condition)

    async def question(self) -> Any:
        """What the owner's chat shows of the open one."""
        return await until(lambda: next(iter(self.list_questions()), None), "the question", 20)

    def list_questions(self) -> list[Any]:
        return [one for one in self.wire.shown if "proposes on the page" in one.text and one.buttons]

    @property
    def mark(self) -> str:
        (found,) = self.gateway.call("approvals.list")["approvals"]
        return str(found["id"])

    @property
    def config(self) -> str:
        return self.gateway.home.config.read_text()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= {name: value for name, value in wire.environ.items() if "TOKEN" not in name}
            access = f"access: {{owners: {{telegram: ['{ANN}']}}, admins: {{telegram: ['{BEN}']}}}}\n"
            gateway.script(RUN, {"user": "", "text": "Hello."}, settings=access)
            gateway.home.env.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
            gateway.home.env.chmod(0o600)
            hook = gateway.add_hook("watches", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": WATCHES})
            house = House(gateway, wire, hook)
            await house.start()
            yield house
            await to_thread.run_sync(gateway.kill)  # while the network still sees its connections end


async def test_an_owner_allows_a_setting_in_their_own_chat(house: House) -> None:
    before = house.config
    made = await house.propose("settings", **{"tools.unattended": "3h"})
    assert (made["state"], made["places"], house.config) == ("open", ["telegram"], before)
    shown = await house.question()
    for words in ("tools:\n  unattended: 3h", "As it is now", "owner, from page 127.0.0.1"):
        assert words in shown.text
    assert set(shown.buttons) == {"Yes", "No"}
    await house.wire.press(shown, "Yes", by=ANN)
    ended = await house.ended("done")
    assert (ended["answered_by"], house.config) == (f"telegram:{ANN}", f"{before}tools:\n  unattended: 3h\n")
    assert "in force now" in ended["result"]
    (running,) = [one for one in house.gateway.call("config.show")["settings"] if one["name"] == "tools.unattended"]
    assert running["value"] == "3h"
    await until(lambda: not shown.buttons and f"telegram:{ANN}" in shown.text, "the end in the chat")
    done = [(one["who"], one["on"]) for one in house.gateway.call("activity.list")["activity"]]
    assert (f"telegram:{ANN}", f"allow {made['id']}") in done
    assert any(on.startswith(f"{made['id']} settings tools.unattended: done") for _, on in done)


async def test_the_terminal_answers_and_a_no_changes_nothing(house: House) -> None:
    before = house.config
    for answer, state in (("no", "refused"), ("yes", "done")):
        await house.propose("settings", **{"sessions.idle": "3h"})
        listed = await to_thread.run_sync(house.gateway.cli, "approvals")
        assert "sessions:" in listed.stdout
        lasting = await to_thread.run_sync(
            partial(house.gateway.cli, "approvals", "yes", house.mark, "--for", "always")
        )
        assert "this once only" in lasting.stderr
        await to_thread.run_sync(house.gateway.cli, "approvals", answer, house.mark)
        await house.ended(state)
        assert (house.config == before) == (answer == "no")


@pytest.mark.row("T11")
async def test_whoever_stole_a_login_allows_nothing(house: House) -> None:
    """An owner's login, which even knows the mark of the question: every way in that is not an owner's own chat."""
    before = house.config
    made = await house.propose("settings", **{"tools.shell": "allow"})
    mark, shown = await to_thread.run_sync(lambda: house.mark), await house.question()
    assert mark not in json.dumps(await house.listed())
    assert not any((await to_thread.run_sync(house.browser.ask, "approvals.list")).values())
    for verb, more in (("approvals.answer", {"allowed": True}), ("questions.answer", {"text": "yes"})):
        for number in (mark, made["id"]):
            assert (await house.do(verb, id=number, **more)).status in (403, 409)
    chat = ChatVisitor(house.browser.url, house.browser.token)
    for text in (f"/approve #{mark}", f"/approve always #{mark}", "yes", "/approve"):
        await to_thread.run_sync(chat.write, text)
        await to_thread.run_sync(house.gateway.say, text)
        await house.wire.write(text, by=BEN)
        await house.wire.write(text, by=ANN, chat=GROUP)
    for text in ("/approve", "yes", f"/approve session #{mark}", "/approve #000000000000"):
        await house.wire.write(text, by=ANN)
    await until(lambda: "this once only" in str([one.text for one in house.wire.shown]), "the last of them")
    await house.wire.press(shown, "Yes", by=BEN)
    assert (await house.listed())["state"] == "open"
    assert house.config == before
    await house.wire.write(f"/deny #{mark}", by=ANN)
    assert (await house.ended("refused"))["answered_by"] == f"telegram:{ANN}"
    assert house.config == before


@pytest.mark.row("T11")
async def test_the_button_of_one_that_was_withdrawn_answers_no_later_one(house: House) -> None:
    """A stolen login shows the owner something harmless, and puts another change in its place."""
    made = await house.propose("settings", **{"sessions.idle": "3h"})
    shown = await house.question()
    bait = replace(shown, buttons=dict(shown.buttons))
    await house.do("proposals.withdraw", id=made["id"])
    made = await house.propose("settings", **{"tools.shell": "allow"})
    await house.wire.press(bait, "Yes", by=ANN)
    await house.wire.write("hello", by=ANN)  # what is answered after the button was pressed
    await until(lambda: any(one.text.startswith("Hello") for one in house.wire.shown), "the answer", 20)
    now = await house.listed()
    assert ((now["id"], now["state"]), "shell: allow" in house.config) == ((made["id"], "open"), False)


@pytest.mark.row("T11")
async def test_the_bot_s_own_words_answer_nothing_wherever_a_login_has_it_write_them(house: House) -> None:
    """`chat.send` has the bot write a text, also one that would be an answer if a person had written it."""
    chat, before = ChatVisitor(house.browser.url, house.browser.token), house.config
    await to_thread.run_sync(chat.write, "run it")
    await to_thread.run_sync(chat.see, "May I run shell?")
    await house.propose("settings", **{"tools.shell": "allow"})
    await house.question()
    marks = [one["id"] for one in house.gateway.call("approvals.list")["approvals"]]
    assert len(marks) == 2
    for to in ("web:owner", "terminal:main", "internal:main", f"telegram:{ANN}", f"telegram:{BEN}"):
        for text in ("yes", "/approve", "/approve always", *(f"/approve #{mark}" for mark in marks)):
            sent = await house.do("chat.send", to=to, text=text)
            assert sent.status in (200, 409), sent
    await house.wire.write("hello", by=ANN)
    await until(lambda: any(one.text.startswith("Hello") for one in house.wire.shown), "the answer", 20)
    assert [one["id"] for one in house.gateway.call("approvals.list")["approvals"]] == marks
    assert ((await house.listed())["state"], house.config) == ("open", before)


@pytest.mark.row("T11")
async def test_no_program_of_a_hook_and_no_key_answers(house: House) -> None:
    made = await house.propose("settings", **{"tools.shell": "allow"})
    mark, before = await to_thread.run_sync(lambda: house.mark), house.config
    runs = f"import subprocess\nWORDS = {[sys.executable, '-P', '-m', 'gateway.cli', 'approvals', 'yes', mark]}\n"
    handler = (
        f"{runs}def handle(a, b):\n    for before in ([], ['setsid']):\n        subprocess.run([*before, *WORDS])\n"
    )
    house.gateway.add_hook("tries", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": handler})
    await house.wait(lambda: house.gateway.call("hooks.info", {"name": "tries"})["state"] == "loaded")
    new = await to_thread.run_sync(
        partial(house.gateway.cli, "keys", "new", "k", "--as", "operator", "--agent", "main", "--json")
    )
    key = {"Authorization": f"Bearer {json.loads(new.stdout)['key']}", "Content_Type": "application/json"}
    for text in (f"/approve #{mark}", "yes", f"/approve always #{mark}"):
        body = json.dumps({"model": "main", "messages": [{"role": "user", "content": text}]}).encode()
        said = await to_thread.run_sync(partial(send, house.browser.url, "/v1/chat/completions", "POST", body, **key))
        assert said.status == 200, said
    log = partial(house.gateway.call, "hooks.logs", {"name": "tries"})
    await house.wait(lambda: json.dumps(log()).count("may not ask for `approvals.answer`") >= 2)
    assert ((await house.listed())["state"], house.config) == ("open", before)
    assert (await house.listed())["id"] == made["id"]


async def test_a_person_has_one_open_and_six_an_hour(house: House) -> None:
    for _ in range(6):
        made = await house.propose("settings", **{"sessions.idle": "3h"})
        house.browser = await to_thread.run_sync(log_in, house.gateway)  # another login of the same person
        again = await house.make("settings", **{"sessions.idle": "4h"})
        assert (again.status, b"open already" in again.body) == (409, True)
        assert (await house.do("proposals.withdraw", id=made["id"])).status == 200
        assert (await house.do("proposals.withdraw", id=made["id"])).status == 409
    seventh = await house.make("settings", **{"sessions.idle": "3h"})
    assert (seventh.status, b"6 proposals in an hour" in seventh.body) == (409, True)


async def test_a_hook_at_the_call_refuses_it_and_changes_nothing_of_it(house: House) -> None:
    before = house.config
    (house.hook / "deny").touch()
    denied = await house.make("settings", **{"sessions.idle": "3h"})
    assert (denied.status, b"not on a Monday" in denied.body) == (409, True)
    (house.hook / "deny").unlink()
    (house.hook / "change").touch()
    changed = await house.make("settings", **{"sessions.idle": "3h"})
    assert (changed.status, b"a hook changed the call" in changed.body) == (409, True)
    (house.hook / "change").unlink()
    await house.propose("settings", **{"sessions.idle": "3h"})
    (house.hook / "change").touch()
    await to_thread.run_sync(house.gateway.cli, "approvals", "yes", await to_thread.run_sync(lambda: house.mark))
    assert "a hook changed the call" in (await house.ended("failed"))["result"]
    assert house.config == before


async def test_a_secret_is_shown_by_its_end_and_by_what_it_opens_and_is_kept_nowhere(house: House) -> None:
    where = {"provider": "openai", "name": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": SECRET}
    made = await house.propose("model", "fast", **where)
    shown = {one["words"]: one["text"] for one in made["shown"]}
    assert (shown["It ends with:"], shown["It goes to:"]) == ("…wxyz", "http://127.0.0.1:9/v1")
    assert SECRET not in str(await house.question())
    assert SECRET not in (house.hook / "seen.jsonl").read_text()
    for file in house.gateway.home.root.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    await house.wire.write("hello", by=ANN)  # what follows the question there was sent after it
    await until(lambda: any(one.text.startswith("Hello") for one in house.wire.shown), "the answer", 20)
    await to_thread.run_sync(house.gateway.kill)
    await house.start()
    assert "restarted" in (await house.ended("failed"))["result"]
    await until(lambda: not house.list_questions(), "its buttons go", 10)
    await house.propose("model", "fast", **where)
    await house.wire.press(await house.question(), "Yes", by=ANN)
    await house.ended("done")
    assert f"MODEL_FAST_API_KEY={SECRET}" in house.gateway.home.env.read_text()
    assert SECRET not in house.config


async def test_a_token_is_named_by_its_bot_and_a_wrong_one_is_refused(house: House) -> None:
    wrong = await house.make("network", "telegram", token="1:nobody-knows-this-token-at-all")
    assert (wrong.status, b"does not know the bot's token" in wrong.body) == (409, True)
    made = await house.propose("network", "telegram", token=TOKEN)
    assert "@gate_bot (Gate, id 4242)" in str(made["shown"])
    assert TOKEN not in str(made)
    await house.do("proposals.withdraw", id=made["id"])
    through = await house.propose("network", "telegram", proxy="http://ann:pw-canary@127.0.0.1:9")  # nobody is called
    assert "pw-canary" not in str(through)
    assert {"words": "It goes through:", "text": "127.0.0.1:9"} in [
        {name: one[name] for name in ("words", "text")} for one in through["shown"]
    ]
    await house.do("proposals.withdraw", id=through["id"])
    elsewhere = await house.make("network", "telegram", token=TOKEN, base_url="http://127.0.0.1:9")
    assert elsewhere.status == 409  # the environment names the address
    assert b"TELEGRAM_BASE_URL" in elsewhere.body


async def test_a_secret_that_would_be_shown_whole_is_refused(house: House) -> None:
    for key, value in (
        ("mcp_servers.wiki", f"{{command: wiki, env: {{TOKEN: {SECRET}}}}}"),
        ("mcp_servers.wiki", f'{{"url": "http://127.0.0.1:9", "headers": {{"Authorization": "Bearer {SECRET}"}}}}'),
        ("tools.search", f"{{provider: brave, key: {SECRET}}}"),
    ):
        refused = await house.make("settings", **{key: value})
        assert (refused.status, SECRET in refused.body.decode()) == (409, False), refused
    assert SECRET not in str(await to_thread.run_sync(house.browser.ask, "proposals.list"))
    assert not (house.hook / "seen.jsonl").exists()


async def test_what_no_file_can_set_or_cannot_be_written_is_refused_before_anybody_is_asked(house: House) -> None:
    link = house.gateway.home.config
    for values, words in (
        ({"sessions.idel": "3h"}, "did you mean"),
        ({"sessions.idle": "soon"}, "a duration"),
        ({"model.script": None, "nobody": "x"}, "not known"),
        ({}, "nothing is named"),
    ):
        refused = await house.make("settings", **values)
        assert (refused.status, words in refused.body.decode()) == (409, True), refused
    link.rename(link.with_suffix(".real"))
    link.symlink_to(link.with_suffix(".real"))
    refused = await house.make("settings", **{"sessions.idle": "3h"})
    assert (refused.status, b"is a link" in refused.body) == (409, True)
    assert b"idle: 3h" in refused.body
    link.unlink()
    link.with_suffix(".real").rename(link)
    await house.propose("settings", **{"sessions.idle": "3h"})
    link.write_text(house.config + "# edited\n")
    await to_thread.run_sync(house.gateway.cli, "approvals", "yes", await to_thread.run_sync(lambda: house.mark))
    assert "has changed meanwhile" in (await house.ended("failed"))["result"]
    assert house.config.endswith("# edited\n")
    await house.propose("settings", **{"sessions.idle": "3h"})
    house.gateway.home.env.write_text(house.gateway.home.env.read_text() + "OPENAI_BASE_URL=http://127.0.0.1:9\n")
    await to_thread.run_sync(house.gateway.cli, "approvals", "yes", await to_thread.run_sync(lambda: house.mark))
    assert ".env has changed meanwhile" in (await house.ended("failed"))["result"]
    assert "idle" not in house.config


@pytest.mark.row("T23")
async def test_a_hook_of_an_index_is_installed_with_the_rights_that_were_shown(house: House) -> None:
    nobody = await house.make("hook", "no-such-hook")
    assert (nobody.status, b"no index has such a hook" in nobody.body) == (409, True)
    for place in ("./sample", "../x", "git+https://127.0.0.1/x", "/etc"):
        assert (await house.make("hook", place)).status == 409
    made = await house.propose("hook", "activity-log")
    assert "It may:" in str(made["shown"])
    assert not house.gateway.home.hooks_lock.exists()
    await house.wire.press(await house.question(), "Yes", by=ANN)
    await house.ended("done")
    await house.wait(lambda: house.gateway.call("hooks.info", {"name": "activity-log"})["origin"] == "installed")


@pytest.mark.row("T23")
async def test_an_index_that_changes_under_a_proposal_installs_nothing(house: House, tmp_path: Path) -> None:
    """Another version, other files under the listed digest, or another version installed meanwhile."""
    publisher, cli = Publisher(tmp_path / "offered", house.gateway), house.gateway.cli
    publisher.publish()
    cli("hooks", "index", "add", str(publisher.file), "--key", publisher.signer.line)

    def publish_next() -> None:
        publisher.publish(more={"HOOK.yaml": MANIFEST.replace("1.0.0", "1.0.1"), "handler.py": OTHER})

    def change_files() -> None:
        (publisher.folder / "greet" / "handler.py").write_text(HANDLER)

    def install_it() -> None:
        publish_next()
        assert cli("hooks", "install", "greet", "--yes").returncode == 0

    for change, why in ((publish_next, SHOWN), (change_files, "is not the one that"), (install_it, SHOWN)):
        made = await house.propose("hook", "greet")
        await to_thread.run_sync(change)
        lock = house.gateway.home.hooks_lock
        before = lock.exists() and lock.read_bytes()
        await to_thread.run_sync(cli, "approvals", "yes", await to_thread.run_sync(lambda: house.mark))
        assert why in (await house.ended("failed"))["result"], made
        assert (lock.exists() and lock.read_bytes()) == before
        await to_thread.run_sync(publish_next)


async def test_a_person_is_forgotten_after_an_owner_s_yes(house: House) -> None:
    await house.wire.write("hello", by=BEN)
    await until(lambda: any("Hello" in one.text for one in house.wire.shown), "the answer")
    made = await house.propose("person", f"telegram:{BEN}")
    assert f" (telegram:{BEN})" in made["shown"][1]["text"]  # by the name that the network says, too
    listed = await to_thread.run_sync(house.browser.ask, "proposals.list")
    assert listed["names"][f"telegram:{BEN}"]["name"] == made["shown"][1]["text"].partition(" (")[0]
    assert any(one["person"] == f"telegram:{BEN}" and one["sessions"] for one in people(house))
    await house.wire.press(await house.question(), "Yes", by=ANN)
    await house.ended("done")
    assert not any(one["person"] == f"telegram:{BEN}" and one["sessions"] for one in people(house))


ODD: tuple[Any, ...] = (
    *("", "x", "../../etc/passwd", "\0", "a\nb", "${HOME}", "{a: [1", "&a [*a, *a]", "!!python/object:os.system x"),
    *("é" * 150, "\u202e", "platforms.telegram.token", "access.owners.telegram", "hooks.dirs", "tools.shell_allow"),
    *("model.api_key", '"a"."b"', "web.listen", "mcp_servers.x.command", "telegram:1001", "slack", "telegram"),
    *("activity-log", "true", "1e999", "~", "/bin/sh", "http://169.254.169.254/", "- a", "TELEGRAM_BOT_TOKEN"),
)


@pytest.mark.thorough
@pytest.mark.row("T11")
async def test_a_flood_of_proposals_by_a_stolen_login_changes_nothing(house: House) -> None:
    before, env, dice = house.config, house.gateway.home.env.read_bytes(), random.Random(7)
    for _ in range(400):
        kind = dice.choice(("settings", "model", "network", "hook", "person", "odd", None))
        values = {dice.choice(ODD): dice.choice((*ODD, None, 5, ["x"])) for _ in range(dice.randint(0, 3))}
        made = await house.do("proposals.make", kind=kind, name=dice.choice(ODD), values=values)
        assert made.status in (200, 400, 409), (kind, values, made)
        if made.status == 200:
            number = json.loads(made.body)["id"]
            assert (await house.do("approvals.answer", id=number, allowed=True)).status == 409
            await house.do("proposals.withdraw", id=number)
    assert (house.config, house.gateway.home.env.read_bytes()) == (before, env)
    assert "Traceback" not in house.gateway.home.log.read_text()


def people(house: House) -> list[dict[str, Any]]:
    return list(house.gateway.call("people.list")["people"])
