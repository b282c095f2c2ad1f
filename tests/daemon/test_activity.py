"""The record of activity: each action of an operator is in it once, with author, place and object."""

import json
import os
import pwd
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from anyio import to_thread

from gateway.records.activity import QUIET_SECONDS, Activity
from gateway.records.records import ActivityRecord
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.dispatcher.room import chat
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until
from tests.web.logged_in import read_login, redeem
from tests.web.visits import Visit, visit

SETTINGS = f"access: {{owners: {{telegram: ['{ANN}']}}, users: {{telegram: ['{BEN}']}}, tools: {{user: [shell]}}}}\n"
RUN = {"user": "run", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "id -u"}}]}, {"text": "Did."}]}
SECRET_WORD = "marmalade"
# Asks the control socket, as a program of a hook would, for what it may and what it may not.
ASKER = """
import json, os, socket

def handle(event_type, context):
    for verb, params in (("hooks.reset", {"name": "other"}), ("keys.revoke", {"name": "x"})):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(SOCKET)
            one.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": verb, "params": params}).encode() + b"\\n")
            one.makefile().readline()
"""
MANIFEST = "events: [command:status]\n"


class Walk:
    """A running gateway with a chat network, and what is in its record."""

    def __init__(self, gateway: GatewayProcess, wire: TelegramWire) -> None:
        self.gateway, self.wire = gateway, wire

    async def call(self, verb: str, /, **params: Any) -> Any:
        return await to_thread.run_sync(self.gateway.call, verb, params)

    async def visit(self, url: str, method: str = "GET", **headers: str) -> Visit:
        at = urlsplit(url)
        path = f"{at.path}?{at.query}"
        return await to_thread.run_sync(partial(visit, f"{at.scheme}://{at.netloc}", path, method, **headers))

    async def answer(self, text: str, by: str) -> str:
        before = len(self.wire.shown)
        await self.wire.write(text, by=by)
        await until(lambda: len(self.wire.shown) > before, f"the answer to {text}")
        return self.wire.shown[-1].text

    async def recorded(self) -> list[tuple[str, str, str, str, str]]:
        found = (await self.call("activity.list"))["activity"]
        return [(one["who"], one["place"], one["what"], one["on"], one["outcome"]) for one in found]

    async def has_new(self, *wanted: tuple[str, str, str, str, str]) -> None:
        """These are there, each once."""
        there = await self.recorded()
        assert [there.count(one) for one in wanted] == [1] * len(wanted), there


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= wire.environ
            gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
            gateway.script(RUN, {"user": "", "text": "Hello."}, settings=SETTINGS)
            asker = ASKER.replace("SOCKET", repr(str(gateway.home.socket)))
            gateway.add_hook("asker", {"HOOK.yaml": MANIFEST, "handler.py": asker})
            gateway.add_hook("other", {"HOOK.yaml": MANIFEST, "handler.py": "def handle(*_): pass\n"})
            await to_thread.run_sync(gateway.start)
            yield Walk(gateway, wire)


def done(what: str, on: str = "") -> tuple[str, str, str, str, str]:
    """As the person at the terminal did it."""
    return (pwd.getpwuid(os.geteuid()).pw_name, "terminal", what, on, "done")


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_each_deed_is_found_once(walk: Walk) -> None:
    secrets = [SECRET_WORD, *await switch(walk), *await let_in(walk)]
    await allow(walk)
    session = await look_into(walk)
    await look_by_page(walk, session)
    await walk.call("sessions.delete", session=session)
    await walk.has_new(done("sessions.delete", session))

    await walk.call("hooks.fire", name="asker", event="command:status")
    hook, place = "the hook asker", "control socket"
    await walk.has_new((hook, place, "hooks.reset", "other", "done"), (hook, place, "keys.revoke", "", "refused"))

    exported = await to_thread.run_sync(walk.gateway.cli, "activity", "export")
    said = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [(one["who"], one["place"], one["what"], one["on"], one["outcome"]) for one in said] == await walk.recorded()
    assert [secret for secret in secrets if secret in exported.stdout] == []
    shown = await to_thread.run_sync(walk.gateway.cli, "activity", "list", "--since", "1h")
    assert "the hook asker" in shown.stdout
    later = await to_thread.run_sync(walk.gateway.cli, "activity", "list", "--since", "2999-01-01", "--json")
    assert json.loads(later.stdout)["activity"] == []


async def switch(walk: Walk) -> list[str]:
    """Hooks, networks and keys; returns what must be in no record."""
    for verb in ("hooks.disable", "hooks.enable", "hooks.reload"):
        await walk.call(verb, name="other")
    await walk.call("platform.steer", verb="pause", name="telegram")
    await walk.call("platform.steer", verb="resume", name="telegram")
    key = (await walk.call("keys.create", name="figures", role="operator"))["key"]
    await walk.call("keys.revoke", name="figures")
    await walk.call("hooks.dead_prune", name="other")
    await walk.has_new(
        *(done(verb, "other") for verb in ("hooks.disable", "hooks.enable", "hooks.reload", "hooks.dead_prune")),
        *(done("platform.steer", f"{verb} telegram") for verb in ("pause", "resume")),
        done("keys.create", "figures as operator"),
        done("keys.revoke", "figures"),
    )
    return [key]


async def let_in(walk: Walk) -> list[str]:
    """People, from the terminal and in a chat; returns their codes."""
    code = (await walk.answer("hello", by=STRANGER)).split("code is ")[1][:8]
    await walk.call("pairing.approve", code=code)
    await walk.call("pairing.revoke", platform="telegram", user_id=STRANGER)
    other = (await walk.answer("hello", by="7007")).split("code is ")[1][:8]
    ann, dm = f"telegram:{ANN}", f"telegram:{ANN}"
    await walk.answer(f"/pairing approve {other}", by=ANN)
    await until(
        lambda: any("may write to the bot now" in one.text for one in walk.wire.shown), "the answer to the admin"
    )
    await walk.answer("/pairing revoke 7008", by=ANN)
    await walk.answer("/platform pause telegram", by=BEN)
    await walk.has_new(
        done("pairing.approve", f"telegram:{STRANGER} user"),
        done("pairing.revoke", f"telegram:{STRANGER} user"),
        (ann, dm, "pairing.approve", "telegram:7007 user", "done"),
        (ann, dm, "pairing.revoke", "", "refused"),
        (f"telegram:{BEN}", f"telegram:{BEN}", "/platform", "", "refused"),
    )
    return [code, other]


async def allow(walk: Walk) -> None:
    await walk.wire.write("run", by=BEN)
    await until(lambda: any(one.buttons for one in walk.wire.shown), "the question")
    (waiting,) = (await walk.call("approvals.list"))["approvals"]
    await walk.call("approvals.answer", id=waiting["id"], allowed=True)
    await walk.has_new(done("approvals.answer", f"allow {waiting['id']}"))


async def look_into(walk: Walk) -> str:
    """A conversation, whose id is returned."""
    await to_thread.run_sync(walk.gateway.say, SECRET_WORD)
    await until_listed(walk)
    session = (await walk.call("sessions.list", platform="terminal"))["sessions"][0]["session_id"]
    for _ in range(2):  # who looks again at once is not recorded again
        await walk.call("sessions.show", session=session)
        await walk.call("sessions.search", query=SECRET_WORD)
        await walk.call("sessions.export", session=session)
    await walk.has_new(*(done(f"sessions.{verb}", session) for verb in ("show", "export")), done("sessions.search"))
    return str(session)


async def look_by_page(walk: Walk, session: str) -> None:
    link = (await walk.call("web.open"))["url"]
    token = read_login(await to_thread.run_sync(redeem, link))
    base = link.partition("/open")[0]
    await walk.visit(f"{base}/api/sessions.show?session={session}", X_Token=token)
    await walk.visit(f"{base}/end", "POST", X_Token=token)
    by_page = [(place, what, on) for who, place, what, on, _ in await walk.recorded() if who.startswith("login ")]
    wanted = [("page.login", ""), ("sessions.show", session), ("page.logout", "")]
    assert by_page == [("page 127.0.0.1", *one) for one in wanted]


async def until_listed(walk: Walk) -> None:
    """The search has seen what was said on the terminal."""
    for _ in range(200):
        if (await walk.call("sessions.list", platform="terminal"))["sessions"]:
            return
    raise AssertionError("the session is not listed")


@pytest.mark.process
def test_a_reload_says_what_has_changed_and_stands_in_the_record(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        assert "nothing has changed" in gateway.cli("reload").stdout
        gateway.configure("access: {rate: 3}\nlogs: {keep: 1}\n")
        done = gateway.cli("reload")
        assert (done.returncode, done.stdout) == (0, "changed: access.rate, logs.keep\n")
        assert "only after hermes-gateway restart: logs.keep" in done.stderr
        gateway.configure("access: {rate: many}\n")
        refused = gateway.cli("reload")
        assert (refused.returncode, "access.rate" in refused.stderr) == (78, True)
        gateway.configure("access: {rate: 4}\n")
        assert gateway.process
        gateway.process.send_signal(signal.SIGHUP)
        gateway.until(lambda: len(reloads(gateway)) == 2)
        assert reloads(gateway) == [("terminal", "access.rate, logs.keep"), ("SIGHUP", "access.rate, logs.keep")]
        assert gateway.cli("stop").returncode == 0
        gateway.stop()
        gateway.start()
        assert [one["what"] for one in gateway.call("activity.list")["activity"]] == ["reload", "reload", "stop"]


@pytest.mark.process
def test_a_reload_names_the_variables_that_have_changed_and_people_of_the_page_count_at_once(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        page = "web: {{identity: X-Person, trusted_proxies: [127.0.0.1], people: {{{}}}}}\n"
        hook = "webhooks: {builds: {secret_env: BUILDS, verify: github}}\n"
        gateway.configure(page.format("ann: admin") + hook)
        gateway.start()
        gateway.home.env.write_text("BUILDS=a secret that nobody guesses\n")
        gateway.home.env.chmod(0o600)
        done = gateway.cli("reload")
        assert (done.stdout, done.stderr) == ("changed: BUILDS\n", "")
        gateway.configure(page.format("ann: admin, ben: user") + hook)
        done = gateway.cli("reload")
        assert (done.stdout, done.stderr) == ("changed: web.people\n", "")
        url = str(gateway.call("status")["web"]["url"])
        assert visit(url, "/api/me", X_Person="ben").status == 200
        assert visit(url, "/api/me", X_Person="eve").status == 403


def reloads(gateway: GatewayProcess) -> list[tuple[str, str]]:
    found = gateway.call("activity.list")["activity"]
    return [(one["place"], one["on"]) for one in found if one["what"] == "reload"]


async def test_who_is_refused_again_and_again_is_recorded_once_a_minute() -> None:
    now = 0.0
    activity = Activity(MemoryEngine(), lambda: now)
    refused = ActivityRecord(what="keys.revoke", outcome="refused")
    for _ in range(50):
        await activity.write(refused)
        await activity.write(ActivityRecord(what="hooks.disable", on="h"))
    entries, upto = await activity.read(0, 0.0)
    assert [one["what"] for one in entries].count("keys.revoke") == 1
    assert [one["what"] for one in entries].count("hooks.disable") == 50
    now = QUIET_SECONDS
    await activity.write(refused)
    again, _ = await activity.read(upto, 0.0)
    assert [one["outcome"] for one in again] == ["refused"]


async def test_an_admin_who_restarts_is_recorded_and_a_user_who_would_is_refused() -> None:
    async with chat() as room:
        await room.write("/restart", user="1")
        await room.write("/restart", user="7")
        await room.hear(2)
        found, _ = await room.house.activity.read(0, 0.0)
        said = [(one["who"], one["what"], one["outcome"]) for one in found]
        assert said == [("net:1", "restart", "done"), ("net:7", "/restart", "refused")]
