"""The hooks of a besieged gateway, which record their events; these records are read here."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.testing import GatewayProcess
from tests.siege.model import NOTED, NUMBER, RUNNING, WRITTEN

LATELY = 5.0  # a tool that began before that was not cut off now, but when the gateway stood still
FIELDS = {"agent:end": "message_full", "message:received": "text", "message:sent": "text", "tool:after": "args"}

NOTE = """
import json, os, re

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
FIELDS = {fields!r}

def handle(name, context):
    if name in FIELDS:
        numbers = re.findall(r"\\bn\\d{{6}}\\b", json.dumps(context[FIELDS[name]]))
        os.write(FILE, (" ".join([name, *numbers]) + "\\n").encode())
"""
GUARD = """
import os, re

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def handle(name, context):
    number = re.search(r"\\bn\\d{{6}}\\b", context["args"]["command"])[0]
    os.write(FILE, f"{{number}}\\n".encode())
    if number.endswith("77"):
        return {{"decision": "deny", "message": "that is not written down"}}
"""
SPAWNER = """
import subprocess

calls = 0

def handle(name, context):
    global calls
    calls += 1
    if calls % 10 == 1:
        sleeps = ["setsid", "sleep", {sleeps!r}]
        if calls % 20 == 1:
            subprocess.Popen(sleeps, env={{"PATH": "/usr/bin:/bin"}})
        else:
            subprocess.run(["sh", "-c", "setsid sleep " + {sleeps!r} + " >/dev/null 2>&1 &"])
"""


class Notes:
    """The files beside the homes into which hooks and the shell write; `sleeps` is the word of what they detach."""

    def __init__(self, gateways: Sequence[GatewayProcess], folder: Path, sleeps: str) -> None:
        self.folder = folder
        self._noted = [find_noted(gateway) for gateway in gateways]
        self.sleeps = sleeps
        for one in (folder, *self._noted):
            one.mkdir(exist_ok=True)
        for gateway in gateways:
            self._add_all(gateway)

    def _add_all(self, gateway: GatewayProcess) -> None:
        for name, events in (("ends", "agent:end"), ("everything", "*")):
            manifest = f"events: {json.dumps([events])}\ndelivery: durable\n"
            self._add(gateway, name, manifest, NOTE)
        self._add(gateway, "guard", "intercepts: [tool:before]\non_error: deny\n", GUARD)
        self._add(gateway, "spawner", "events: [agent:end]\n", SPAWNER)

    def _add(self, gateway: GatewayProcess, name: str, manifest: str, handler: str) -> None:
        source = handler.format(file=str(self.folder / name), fields=FIELDS, sleeps=self.sleeps)
        gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": source})

    def told(self, hook: str) -> dict[str, set[str]]:
        """Return the numbers that a hook received, by event."""
        found = defaultdict[str, set[str]](set)
        for line in self._lines(hook):
            name, *numbers = line.split()
            found[name] |= set(numbers)
        return found

    def guarded(self) -> set[str]:
        return set(self._lines("guard"))

    def tool_runs(self) -> list[str]:
        """Return the shell's records, which the model wanted."""
        files = [folder / WRITTEN for folder in self._noted]
        lines = [line for path in files if path.exists() for line in path.read_text().splitlines()]
        return [line for line in lines if NUMBER.fullmatch(line)]

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def _lines(self, name: str) -> Iterator[str]:
        path = self.folder / name
        return iter(path.read_text().splitlines() if path.exists() else [])


def find_noted(gateway: GatewayProcess) -> Path:
    """Return the file in which this gateway's tool writes."""
    return gateway.home.root.parent / NOTED


def take_running(gateway: GatewayProcess) -> int:
    """How many runs of the tool have begun lately and not ended. Each is counted once."""
    count = 0
    for path in find_noted(gateway).glob(f"{RUNNING}*"):
        with suppress(FileNotFoundError):  # it ends just now
            count += time.time() - path.stat().st_mtime < LATELY
            path.unlink()
    return count
