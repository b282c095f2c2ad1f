"""`hermes-gateway demo`: a tour that ends by itself, with a real gateway in a temporary home."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gateway.cli.output import apply_style, fold_for, print_text
from gateway.config.home import Home
from gateway.testing import GatewayProcess

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
    # The tour runs a separate process, as a service manager would. Its environment has no secrets: the tour uses no
    # chat network and no paid model.
    with tempfile.TemporaryDirectory(prefix="hermes-demo-") as folder, GatewayProcess(Path(folder)) as gateway:
        gateway.start()
        Tour(gateway).walk()
        print_heading("The gateway is stopped with SIGTERM")
        code, _, _ = gateway.stop()
    print_text(f"\nIt ended with exit code {code}. The tour took {time.monotonic() - begun:.1f} s.")
    print_text("Your own gateway: hermes-gateway run, then: hermes-gateway chat")
    return code


class Tour:
    """The scripted conversation of the tour."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway

    def walk(self) -> None:
        print_heading("A gateway runs, with the demo model: no key, no network")
        self._say("what time is it?")
        print_heading("A hook is a folder. One is dropped into hooks/ now, and is live at once")
        self._add_hook("tour-log", LOG_HOOK)
        self._say("what is 12 * (3 + 4)")
        self._show_log()
        print_heading("Another one, which intercepts: it refuses a tool")
        self._add_hook("tour-guard", GUARD_HOOK)
        self._say("what is 12 * (3 + 4)")
        print_heading("And one that never comes back. It runs in a process of its own, so the answer is not late")
        self._add_hook("tour-hanging", HANGING_HOOK)
        took = self._say("remember that my bicycle is green")
        print(f"  (answered in {took * 1000:.0f} ms)")
        self._say("what do you remember")
        print_heading("The state of the hooks, after the call that never came back was over its time")
        self._gateway.until(lambda: any(hook["failures"] for hook in self._hooks()))
        self._show_hooks()

    def _say(self, text: str) -> float:
        print(apply_style(f"  you    {text}", "bold"))
        begun = time.monotonic()
        for line in self._gateway.say(text, "tour")["reply"].splitlines():
            print(fold_for(sys.stdout, f"  agent  {line}", " " * 7))
        return time.monotonic() - begun

    def _add_hook(self, name: str, files: dict[str, str]) -> None:
        self._gateway.add_hook(name, files)
        begun = time.monotonic()
        self._gateway.until(lambda: (name, "loaded") in [(hook["name"], hook["state"]) for hook in self._hooks()])
        print(f"  (hooks/{name} is live after {(time.monotonic() - begun) * 1000:.0f} ms)")

    def _show_log(self) -> None:
        path = self._gateway.home.root / "tour.log"
        self._gateway.until(lambda: path.exists() and "tool:after" in path.read_text())
        for line in path.read_text().splitlines():
            print(f"  hook   {line}")

    def _show_hooks(self) -> None:
        for hook in self._hooks():
            print(f"  {hook['name']:14} {hook['state']:10} calls {hook['calls']:3}  failures {hook['failures']}")

    def _hooks(self) -> list[dict[str, Any]]:
        return [hook for hook in self._gateway.call("hooks.list")["hooks"] if hook["name"].startswith("tour-")]


def print_heading(text: str) -> None:
    print_text(f"\n{apply_style(text, 'cyan')}")
