"""The process of an idle hook ends, if nothing is lost by that, and comes back at its next event."""

from functools import partial
from typing import Any

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SETTINGS = "hooks:\n  idle: 0.3\n"
OBSERVES = "events: [agent:end]\nuses: [store]\n"
# Notes its process at each event, as a fact outside of its memory.
NOTE = """
import os, pathlib
SEEN = pathlib.Path(__file__).parent.parent.parent / ("seen-" + pathlib.Path(__file__).parent.name)
{before}
def handle(event_type, context):
    with SEEN.open("a") as file:
        file.write(event_type + " " + str(os.getpid()) + "\\n")
    {does}
"""
# What a call leaves behind, and what the log then says of the hook's process.
LEAVES: dict[str, tuple[str, str, str]] = {
    "counts": ("COUNT = [0]", "COUNT[0] += 1", "what its modules hold has changed"),
    "remembers": ("def count(kept={}): kept['n'] = 1", "count()", "what its modules hold has changed"),
    "caches": ("class Cache: known = {}", "Cache.known['n'] = 1", "what its modules hold has changed"),
    "imports": ("import sys; sys.path.insert(0, str(pathlib.Path(__file__).parent))", "import more", "has changed"),
    "locks": ("import threading; LOCK = threading.Lock()", "pass", "cannot be compared"),
    "ends": ("import atexit", "atexit.register(print)", "it has something to do at its end"),
    "waits": ("import asyncio", "asyncio.get_event_loop().create_task(asyncio.sleep(600))", "a task of it runs"),
    "rings": ("import asyncio", "asyncio.get_event_loop().call_later(600, print)", "a timer of it runs"),
    "threads": ("import threading", "threading.Timer(600, print).start()", "a thread of it runs"),
    "starts": ("import subprocess", "subprocess.Popen(['sleep', '600'])", "a process that it started runs"),
    "listens": ("import socket; KEPT = []", "os.dup(socket.create_server(('127.0.0.1', 0)).detach())", "a socket open"),
}  # fmt: skip


def add(gateway: GatewayProcess, name: str, manifest: str = OBSERVES, before: str = "", does: str = "pass") -> None:
    files = {"HOOK.yaml": manifest, "handler.py": NOTE.replace("{before}", before).replace("{does}", does)}
    gateway.add_hook(name, {**files, "more.py": "KEPT = 1\n"})


def seen(gateway: GatewayProcess, name: str) -> list[str]:
    try:
        return (gateway.home.root / f"seen-{name}").read_text().splitlines()
    except FileNotFoundError:
        return []


def has_seen(gateway: GatewayProcess, name: str, count: int) -> bool:
    return len(seen(gateway, name)) == count


def info(gateway: GatewayProcess, name: str) -> dict[str, Any]:
    return dict(gateway.call("hooks.info", {"name": name}))


def rests(gateway: GatewayProcess, name: str) -> bool:
    hook = info(gateway, name)
    return hook["state"] == "registered" and not hook["pid"] and "it was not called" in hook["reason"]


def says_of(gateway: GatewayProcess, name: str, why: str) -> bool:
    """Return True if the log gives this reason why the hook stays."""
    lines = (gateway.home.own_folder / "logs" / "gateway.log").read_text().splitlines()
    return any(f"{name} stays" in line and why in line for line in lines)


def test_a_hook_that_holds_nothing_ends_while_nobody_calls_it_and_comes_back(tmp_path):
    """`hook:loaded` is told once, an interceptor still decides, and an edit counts from the next event on."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*[{"answers": [{"text": "yes"}]}] * 5, settings=SETTINGS)
        add(gateway, "plain")
        add(gateway, "durable", "events: [agent:end]\ndelivery: durable\n")
        notes = "SEEN.with_name('loaded').open('a').write(context['hook'] + '\\n')"
        add(gateway, "loads", "events: [hook:loaded]\nkeep: true\n", does=notes)
        decides = "context['content'] = context['content'].upper()"
        add(gateway, "decides", "intercepts: [llm:after]\ntimeout: 5\n", does=decides)
        gateway.start()
        hooks = ("plain", "durable", "decides")
        for round_ in (1, 2, 3):
            assert gateway.say("hello")["reply"] == "YES"
            for name in hooks:
                gateway.until(partial(has_seen, gateway, name, round_))
                gateway.until(partial(rests, gateway, name))
        for name in hooks:
            assert len(set(seen(gateway, name))) == 3, "each event found a process of its own"
        told = (gateway.home.root / "loaded").read_text().splitlines()
        assert sorted(one for one in told if one in hooks) == sorted(hooks)
        handler = gateway.home.hooks / "decides" / "handler.py"
        handler.write_text(handler.read_text().replace("upper", "title"))
        gateway.until(lambda: info(gateway, "decides")["state"] == "loaded")
        assert gateway.say("hello")["reply"] == "Yes"


def test_a_hook_that_would_lose_something_stays(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(
            *[{"answers": [{"text": "yes"}]}] * 5,
            settings=f"{SETTINGS}  free: {{keep: false}}\n  settled: {{keep: true}}\n",
        )
        for name, (before, does, _) in LEAVES.items():
            add(gateway, name, before=before, does=does)
        add(gateway, "settled")
        add(gateway, "started", "events: [gateway:*, agent:end]\n")
        add(gateway, "hermes", "name: hermes\nevents: [agent:end]\n")
        add(gateway, "loses", f"{OBSERVES}keep: false\n", *LEAVES["counts"][:2])
        add(gateway, "free", "name: free\nevents: [agent:end]\n", *LEAVES["counts"][:2])
        gateway.start("--log-level", "debug")
        gateway.say("hello")
        for name in ("loses", "free"):
            gateway.until(partial(rests, gateway, name))
        for name, (_, _, why) in LEAVES.items():
            gateway.until(partial(says_of, gateway, name, why))
        gateway.say("again")
        for name in (*LEAVES, "settled", "started", "hermes"):
            gateway.until(partial(has_seen, gateway, name, 2 + (name == "started")))
            assert len({one.split()[1] for one in seen(gateway, name)}) == 1, name


def test_what_runs_stays_while_the_code_on_disk_is_another(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*[{"answers": [{"text": "yes"}]}] * 5, settings=SETTINGS)
        add(gateway, "edited", f"{OBSERVES}keep: true\n")
        add(gateway, "plain")
        gateway.start()
        gateway.until(lambda: info(gateway, "edited")["state"] == "loaded")
        (gateway.home.hooks / "edited" / "handler.py").write_text("this is not Python\n")
        (gateway.home.hooks / "edited" / "HOOK.yaml").write_text(OBSERVES)
        gateway.until(lambda: "the version before runs on" in info(gateway, "edited")["reason"])
        for count in (1, 2):
            gateway.say("hello")
            gateway.until(partial(has_seen, gateway, "edited", count))
            gateway.until(partial(has_seen, gateway, "plain", count))
            gateway.until(lambda: rests(gateway, "plain"))
        assert len(set(seen(gateway, "edited"))) == 1
