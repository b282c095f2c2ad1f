"""Hooks that change while events flow: nothing is lost, nothing is seen twice, and all is live soon."""

import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.waits import Stopwatch

pytestmark = pytest.mark.process

SOON = 1.0  # seconds in which a change is to be live
AT_LAST = 60.0  # the same, while the machine has other things to do
SOURCE = """
import asyncio

running = []


async def handle(event_type, context):
    running.append(asyncio.create_task(flow(context.gateway)))


async def flow(gateway):
    number = 0
    while True:
        gateway.emit("tick:tock", number=number)
        number += 1
        await asyncio.sleep(0.005)
"""
WITNESS = """
import os

VERSION = {version}


def handle(event_type, context):
    with open(os.environ["HERMES_HOME"] + "/seen", "a") as seen:
        seen.write(f"{{VERSION}} {{context['number']}}\\n")
"""
MANIFEST = "events: [tick:tock]\noptions: {{edition: {version}}}\n"


class Flow:
    """A gateway in which events flow, and a hook that writes down which it saw, and by which version of itself."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        self.folder = gateway.home.hooks / "witness"
        self.seen_at = gateway.home.root / "seen"
        self.version = 0
        self.took: list[float] = []

    def files(self) -> dict[str, str]:
        self.version += 1
        return {
            "HOOK.yaml": MANIFEST.format(version=self.version),
            "handler.py": WITNESS.format(version=self.version),
        }

    def seen(self) -> list[tuple[int, int]]:
        lines = self.seen_at.read_text().split("\n")[:-1] if self.seen_at.exists() else []
        return [(int(version), int(number)) for version, number in map(str.split, lines)]

    def sees(self) -> None:
        """The version that was written last sees what happens."""
        with Stopwatch() as watch:
            self.gateway.until(lambda: self.seen()[-1:] != [] and self.seen()[-1][0] == self.version, AT_LAST)
        self.took.append(watch.seconds)

    def drop(self) -> None:
        self.gateway.add_hook(self.folder.name, self.files())
        self.sees()

    def change(self) -> None:
        for name, text in self.files().items():
            (self.folder / name).write_text(text)
        self.sees()

    def break_and_mend(self) -> None:
        with (self.folder / "handler.py").open("a") as file:
            file.write("def broken(:\n")
        self.gateway.until(lambda: any("handler.py:10:12: error" in found for found in self.findings()), AT_LAST)
        before = len(self.seen())
        self.gateway.until(lambda: len(self.seen()) > before, AT_LAST)
        assert self.seen()[-1][0] == self.version
        self.change()

    def rename(self) -> None:
        beside = self.folder.with_name("witness" if self.folder.name != "witness" else "onlooker")
        (self.folder / "handler.py").write_text(WITNESS.format(version=self.version + 1))
        self.folder = self.folder.rename(beside)
        self.version += 1
        self.sees()

    def remove(self) -> None:
        away = self.gateway.home.root / f"away-{self.version}"
        self.folder.rename(away)
        self.gateway.until(lambda: self.folder.name not in self.states(), AT_LAST)

    def states(self) -> dict[str, str]:
        return {hook["name"]: hook["state"] for hook in self.gateway.call("hooks.list")["hooks"]}

    def findings(self) -> list[str]:
        return list(self.gateway.call("hooks.info", {"name": self.folder.name})["findings"])


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[Flow]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("source", {"HOOK.yaml": "events: [tick:begin]\nuses: [emit]\n", "handler.py": SOURCE})
        gateway.start()
        flow = Flow(gateway)
        yield flow


def missing(numbers: list[int]) -> list[int]:
    return sorted(set(range(numbers[0], numbers[-1] + 1)) - set(numbers))


@pytest.mark.timeout(120)
def test_fifty_changes_while_events_flow(flow: Flow) -> None:
    gateway = flow.gateway
    gateway.add_hook("witness", flow.files())
    gateway.until(lambda: flow.states().get("witness") == "loaded")
    gateway.call("hooks.fire", {"name": "source", "event": "tick:begin"})
    flow.sees()
    flow.took.clear()
    absent: list[tuple[int, int]] = []

    def away(*steps: Any) -> None:
        """What happens while there is no such hook, nobody can see."""
        last = flow.seen()[-1][1]
        for step in steps:
            step()
        absent.append((last, next(number for version, number in flow.seen() if version == flow.version)))

    for round_ in range(10):
        flow.change()
        flow.break_and_mend()
        flow.change()
        away(flow.rename)
        if round_ % 2:
            away(flow.remove, flow.drop)
        else:
            flow.change()

    numbers = [number for _, number in flow.seen()]
    assert len(numbers) == len(set(numbers)), "some were seen twice"
    assert numbers == sorted(numbers), "the order was lost"
    lost = [number for number in missing(numbers) if not any(begin < number < end for begin, end in absent)]
    assert lost == []
    versions = [version for version, _ in flow.seen()]
    assert versions == sorted(versions), "an old version ran after a new one"
    assert len(flow.took) == 50
    assert statistics.quantiles(flow.took)[0] < SOON, "the machine may have other things to do, but not all the time"


def test_two_folders_of_one_label_both_run_with_a_warning(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        files = {
            "HOOK.yaml": "name: twin\nevents: [agent:end]\n",
            "handler.py": "def handle(e, c):\n    print('here')\n",
        }
        gateway.add_hook("one", files)
        gateway.add_hook("two", files)
        gateway.start()
        gateway.say("hello")
        logs = [gateway.home.hook_logs / f"{name}.log" for name in ("one", "two")]
        gateway.until(lambda: all(log.exists() and "here" in log.read_text() for log in logs))
        shown = gateway.cli("hooks", "list").stdout
        assert re.search(r"! .*warning: .*twin", shown), shown


NOISY = """
import logging
import sys

print("at import")


def handle(event_type, context):
    print("printed")
    sys.stderr.write("to stderr\\n")
    logging.getLogger("mine").warning("logged")
    raise RuntimeError("raised")
"""


def test_what_a_handler_prints_logs_and_raises_goes_to_its_own_log(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("noisy", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": NOISY})
        gateway.add_hook("quiet", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(e, c):\n    pass\n"})
        gateway.start()
        gateway.say("hello")
        log = gateway.home.hook_logs / "noisy.log"
        gateway.until(lambda: log.exists() and "RuntimeError: raised" in log.read_text())
        assert all(text in log.read_text() for text in ("at import", "printed", "to stderr", "logged", "in handle"))
        assert not (gateway.home.hook_logs / "quiet.log").exists()
        _, printed, logged = gateway.stop()
        assert "to stderr" not in printed + logged
        assert "noisy" in gateway.cli("logs", "--level", "warning").stdout
