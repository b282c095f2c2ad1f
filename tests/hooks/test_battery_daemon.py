"""Nothing that a hook does disturbs the gateway: every misbehaviour in one home, all at once, and the chat goes on."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from gateway.worker.process_tree import find_descendants
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

PROMPT = 30.0  # seconds for an answer and for a healthy hook
STOP = 8  # seconds that the gateway has to stop
HEALTHY = """
import os
async def handle(event_type, context):
    with open(os.environ["HERMES_HOME"] + "/healthy", "a") as file:
        file.write(f"{context['text']}\\n")
"""
HANDLER = """
import os, signal, subprocess, time
me = os.getpid()
{kind} handle(event_type, context):
    if context["text"] == "now":
        {do}
"""
# What each hook does when it is told "now", and what is said of it afterwards.
CASES = {
    "sleeps": ("time.sleep(60)", "over its 0.5 s"),
    "sleeps-in-async": ("async time.sleep(60)", "over its 0.5 s"),
    "spins": ("while True: pass", "over its 0.5 s"),
    "hoards": ("bytearray(2 << 30)", "MemoryError"),
    "exits-hard": ("os._exit(1)", "exit code 1"),
    "exits": ("raise SystemExit(4)", "SystemExit: 4"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends-a-generator": ("async raise GeneratorExit", "GeneratorExit"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "forks": ("[os.fork() or time.sleep(60) for _ in range(100) if os.getpid() == me]; time.sleep(60)", "over its"),
    "prints-a-gigabyte": ("[os.write(1, b'x' * 65535 + b'\\n') for _ in range(16_384)]", "over its 0.5 s"),
    "closes-0-to-2": ("os.closerange(0, 3); print('x', flush=True)", "Bad file descriptor"),
    "ignores-signals": (
        "[signal.signal(n, 1) for n in range(1, 65) if n not in (9, 19, 32, 33)]; time.sleep(60)",
        "over",
    ),
    "leaves-daemons": (
        "subprocess.run('setsid setsid sleep 3600 &', shell=True); time.sleep(60)",
        "over its",
    ),
    "answers-100-mb": ("return {'text': 'x' * 100_000_000}", "95 MB are more"),
    "answers-no-json": ("return {'text': object()}", "not JSON"),
}
IMPORTS = {
    "exits-at-import": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "crashes-at-import": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "hangs-at-import": ("import time; time.sleep(3600)", ""),
}


class Home:
    """A gateway with hooks, and what can be seen of it from outside."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        assert gateway.process
        self.pid = gateway.process.pid

    def hooks(self) -> dict[str, Any]:
        listed = json.loads(self.gateway.cli("hooks", "list", "--json").stdout)["hooks"]
        return {hook["name"]: hook for hook in listed if hook["origin"] == "home"}

    def says(self, text: str) -> None:
        with Stopwatch() as watch:
            assert self.gateway.say(text)["reply"] == "well"
        assert watch.seconds < PROMPT

    def is_told(self, text: str) -> bool:
        """Return True if the healthy hook was notified."""
        noted = self.gateway.home.root / "healthy"
        return noted.exists() and text in noted.read_text().splitlines()

    def strays(self) -> set[int]:
        """Return the processes that belong neither to the fork server nor to a running hook."""
        own = {hook["pid"] for hook in self.hooks().values()}
        return {kin.pid for kin in find_descendants({self.pid}) if kin.parent != self.pid and kin.pid not in own}


def handler(do: str) -> str:
    is_async = do.startswith("async ")
    return HANDLER.format(kind="async def" if is_async else "def", do=do.removeprefix("async "))


@contextmanager
def serving(root: Path, names: Iterable[str]) -> Iterator[Home]:
    with GatewayProcess(root / "home") as gateway:
        turns = [{"user": text, "answers": [{"text": "well"}]} for text in ("now", "hello", "and now")]
        gateway.script(*turns, settings=f"gateway:\n  shutdown_timeout: {STOP}s\n")
        gateway.add_hook("healthy", {"HOOK.yaml": "events: [message:received]\n", "handler.py": HEALTHY})
        for name in names:
            if name in CASES:
                do, what = CASES[name]
                limit = "0.5s" if what.startswith("over") else "55s"
                manifest = f"{'intercepts' if 'return' in do else 'events'}: [message:received]\ntimeout: {limit}\n"
                gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler(do)})
            else:
                source = f"{IMPORTS[name][0]}\ndef handle(event_type, context): pass\n"
                gateway.add_hook(name, {"HOOK.yaml": "events: [message:received]\n", "handler.py": source})
        gateway.start()
        yield Home(gateway)


def until(home: Home, what: Callable[[], object]) -> None:
    home.gateway.until(lambda: bool(what()), 60)


def test_sixteen_that_misbehave_at_once_hurt_themselves_alone(tmp_path: Path) -> None:
    with serving(tmp_path, CASES) as home:
        home.says("hello")
        until(home, lambda: all(hook["calls"] for hook in home.hooks().values()))
        home.says("now")
        home.says("and now")
        home.gateway.until(lambda: home.is_told("and now"), PROMPT)
        until(home, lambda: all(home.hooks()[name]["last_error"] for name in CASES))
        hooks = home.hooks()
        for name, (_, what) in CASES.items():
            assert what in hooks[name]["last_error"]["message"], name
        until(home, lambda: not home.strays())
        until(home, lambda: all(hook["state"] == "loaded" for hook in home.hooks().values()))
        home.says("hello")
        healthy = home.hooks()["healthy"]
        assert (healthy["failures"], healthy["restarts"], healthy["dropped"]) == (0, 0, 0)


def test_while_hooks_fail_and_hang_at_their_import_the_chat_is_answered_and_others_are_told(tmp_path: Path) -> None:
    with serving(tmp_path, IMPORTS) as home:
        home.says("hello")
        home.gateway.until(lambda: home.is_told("hello"), PROMPT)
        states = {name: "broken" if what else "starting" for name, (_, what) in IMPORTS.items()}
        until(home, lambda: {name: home.hooks()[name]["state"] for name in IMPORTS} == states)
        hooks = home.hooks()
        for name, (_, what) in IMPORTS.items():
            assert what in hooks[name]["reason"], name
        assert home.strays()
        (home.gateway.home.hooks / "hangs-at-import").rename(tmp_path / "away")
        until(home, lambda: not home.strays())


def test_the_stop_keeps_within_its_limit_whatever_hooks_are_at(tmp_path: Path) -> None:
    at_it = ["sleeps", "spins", "ignores-signals", "forks", "leaves-daemons"]
    with serving(tmp_path, [*at_it, "hangs-at-import"]) as home:
        home.says("hello")
        until(home, lambda: all(home.hooks()[name]["calls"] for name in at_it))
        home.says("now")
        below = [kin.pid for kin in find_descendants({home.pid})]
        with Stopwatch() as watch:
            code, _, _ = home.gateway.stop()
        assert watch.seconds < STOP + 30, "what stopping may take, and then the end of processes"
        assert code == 0
        assert not [pid for pid in below if Path(f"/proc/{pid}/exe").exists()]
