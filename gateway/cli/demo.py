"""`hermes-gateway demo`: a tour that ends by itself, of a real gateway in a temporary home."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.cli.output import apply_style, print_note
from gateway.config.home import Home, get_process_environment
from gateway.control.client import ControlClient
from gateway.errors import GatewayError, NotRunning

READY_LIMIT = 20.0
HOOK_LIMIT = 5.0

LOG_HOOK = {
    "HOOK.yaml": "name: tour-log\ndescription: Writes down what it sees\nevents: [agent:start, tool:after]\n",
    "handler.py": (
        "import os\nfrom pathlib import Path\n\n\n"
        "def handle(event_type, context):\n"
        '    what = context.get("tool") or context.get("message", "")\n'
        '    with (Path(os.environ["HERMES_HOME"]) / "tour.log").open("a") as log:\n'
        '        log.write(f"{event_type}: {what}\\n")\n'
    ),
}
GUARD_HOOK = {
    "HOOK.yaml": "name: tour-guard\ndescription: Refuses sums\nintercepts: [tool:before]\nwhen: {tool: calculate}\n",
    "handler.py": (
        "from gateway.hooks import Deny\n\n\n"
        "def handle(event_type, context):\n"
        '    raise Deny("no sums today, says the hook tour-guard")\n'
    ),
}
HANGING_HOOK = {
    "HOOK.yaml": "name: tour-hanging\ndescription: Never comes back\nevents: [agent:start]\ntimeout: 1s\n",
    "handler.py": "def handle(event_type, context):\n    while True:\n        pass\n",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Start a gateway in a temporary home, talk to it, drop hooks into it, and stop it."


def run(_args: argparse.Namespace, _home: Home) -> int:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hermes-demo-") as folder:
        home = Home(Path(folder))
        with run_gateway(home) as process:
            Tour(home).walk()
            print_heading("The gateway is stopped with SIGTERM")
            process.send_signal(signal.SIGTERM)
            code = process.wait(READY_LIMIT)
    print(f"\nIt ended with exit code {code}. The tour took {time.monotonic() - begun:.1f} s.")
    print("Your own gateway: ./x run (or hermes-gateway run), then: hermes-gateway chat")
    return code


@contextmanager
def run_gateway(home: Home) -> "Iterator[subprocess.Popen[bytes]]":
    """A gateway as a process of its own, as a service manager would run it; what it logs is shown if it fails."""
    kept = {name: value for name, value in get_process_environment().items() if not is_token(name)}
    environ = kept | {"HERMES_HOME": str(home.root)}
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "gateway.cli", "run"]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=log)
        try:
            wait_until_ready(home, process)
            yield process
        except (GatewayError, subprocess.TimeoutExpired):
            log.seek(0)
            print_note(log.read().decode(errors="replace"))
            raise
        finally:
            process.kill()
            process.wait()


def is_token(name: str) -> bool:
    """The tour talks to no chat network and to no paid model, whatever the environment offers."""
    return name.endswith(("_TOKEN", "_API_KEY"))


def wait_until_ready(home: Home, process: "subprocess.Popen[bytes]") -> None:
    limit = time.monotonic() + READY_LIMIT
    while process.poll() is None and time.monotonic() < limit:
        try:
            with ControlClient(home.socket) as client:
                if client.call("status")["state"] == "ready":
                    return
        except NotRunning:
            time.sleep(0.05)
    raise NotRunning(f"the tour's gateway did not come up within {READY_LIMIT:.0f} s; its log follows")


class Tour:
    """The scripted conversation."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def walk(self) -> None:
        print_heading("A gateway runs, with the demo model: no key, no network")
        self._say("what time is it?")
        print_heading("A hook is a folder. One is dropped into hooks/ now, and is live at once")
        self._drop("tour-log", LOG_HOOK)
        self._say("what is 12 * (3 + 4)")
        self._show_log()
        print_heading("Another one, which intercepts: it refuses a tool")
        self._drop("tour-guard", GUARD_HOOK)
        self._say("what is 12 * (3 + 4)")
        print_heading("And one that never comes back. It runs in a process of its own, so nobody notices")
        self._drop("tour-hanging", HANGING_HOOK)
        took = self._say("remember that my bicycle is green")
        print(f"  (answered in {took * 1000:.0f} ms)")
        self._say("what do you remember")
        print_heading("What the gateway says of its hooks")
        self._show_hooks()

    def _say(self, text: str) -> float:
        print(apply_style(f"  you    {text}", "bold"))
        begun = time.monotonic()
        said = self._call("chat.say", {"text": text, "session": "tour"})
        for line in said["reply"].splitlines():
            print(f"  agent  {line}")
        return time.monotonic() - begun

    def _drop(self, name: str, files: dict[str, str]) -> None:
        """Written beside and moved, so that it appears whole; then wait until the gateway has it."""
        beside, folder = self._home.own_folder / name, self._home.hooks / name
        beside.mkdir()
        for file, text in files.items():
            (beside / file).write_text(text)
        folder.parent.mkdir(exist_ok=True)
        begun = time.monotonic()
        os.rename(beside, folder)  # noqa: PTH104 - the call that is atomic, by its own name
        while time.monotonic() - begun < HOOK_LIMIT:
            if any(hook["name"] == name and hook["state"] == "loaded" for hook in self._hooks()):
                print(f"  (hooks/{name} is live after {(time.monotonic() - begun) * 1000:.0f} ms)")
                return
            time.sleep(0.01)
        raise GatewayError(f"the hook {name} was not loaded within {HOOK_LIMIT:.0f} s: {self._hooks()}")

    def _show_log(self) -> None:
        limit, path = time.monotonic() + HOOK_LIMIT, self._home.root / "tour.log"
        while time.monotonic() < limit and not (path.exists() and "tool:after" in path.read_text()):
            time.sleep(0.01)
        for line in path.read_text().splitlines():
            print(f"  hook   {line}")

    def _show_hooks(self) -> None:
        for hook in self._hooks():
            print(f"  {hook['name']:14} {hook['state']:10} calls {hook['calls']:3}  failures {hook['failures']}")

    def _hooks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("hooks.list", {})["hooks"]
        return [hook for hook in found if hook["name"].startswith("tour-")]

    def _call(self, method: str, params: dict[str, Any]) -> Any:
        with ControlClient(self._home.socket, timeout=READY_LIMIT) as client:
            return client.call(method, params)


def print_heading(text: str) -> None:
    print(f"\n{apply_style(text, 'cyan')}")
