"""A program on the desk, played: it runs the commands that `connect` wrote into its settings, and reads the answers."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread

from gateway.desk.programs import PROGRAMS
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, Shown
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.spine import until

# What each program sent, at a version, for one command of its shell, and what it did with each answer.
RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "programs.json").read_text())
CALL = json.dumps(RECORDED["claude"]["sent"]["PermissionRequest"])
ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def make_event(event: str, program: str = "claude", **fields: Any) -> str:
    """Make an event of a program: as it was recorded, or as the question was, but for these fields."""
    sent = RECORDED[program]["sent"]
    return json.dumps((sent.get(event) or sent["PermissionRequest"]) | {"hook_event_name": event} | fields)


# Runs the command as a program does; SIGTERM to this one ends the command.
PROGRAM = """
import signal, subprocess, sys
command = subprocess.Popen(["sh", "-c", "exec " + sys.argv[1]])
signal.signal(signal.SIGTERM, lambda *_: command.kill())
sys.exit(command.wait())
"""


class Desk:
    """A gateway with an owner on a network, and the settings of a program in a home of its own."""

    def __init__(self, gateway: GatewayProcess, wire: TelegramWire, home: Path) -> None:
        self.gateway, self.wire, self.home = gateway, wire, home
        gateway.environ["HOME"] = str(home)
        self.program = PROGRAMS["claude"]
        self.seen: set[str] = set()

    @property
    def file(self) -> Path:
        return self.home / self.program.settings.folder / self.program.settings.file

    async def connect(self, program: str = "claude") -> None:
        self.program = PROGRAMS[program]
        done = await to_thread.run_sync(self.gateway.cli, "connect", program, "--yes")
        assert done.returncode == 0, done.stderr

    def ask(self, text: str = CALL, **environ: str) -> "asyncio.Task[tuple[int, str, str]]":
        """Run the command that stands in the settings for this event, as the program does."""
        return asyncio.create_task(to_thread.run_sync(self._ask, text, environ))

    def start(self, text: str, environ: dict[str, str]) -> "subprocess.Popen[str]":
        asker = self.begin(json.loads(text)["hook_event_name"], environ)
        assert asker.stdin
        asker.stdin.write(text)
        asker.stdin.close()
        asker.stdin = None
        return asker

    def begin(self, event: str, environ: dict[str, str]) -> "subprocess.Popen[str]":
        """Start the command, which waits for its event."""
        [group] = json.loads(self.file.read_text())["hooks"][event]
        [entry] = group["hooks"]
        environ = {"HOME": str(self.home), "PATH": os.defpath, "CLAUDE_CODE_SESSION_ATTENDED": "1"} | environ
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([sys.executable, "-c", PROGRAM, entry["command"]], text=True, env=environ, **pipes)

    def _ask(self, text: str, environ: dict[str, str]) -> tuple[int, str, str]:
        asker = self.start(text, environ)
        out, err = asker.communicate()
        return asker.returncode, out, err

    async def question(self) -> Shown:
        """The next one: an earlier one may still have its buttons for a moment."""
        is_new = lambda: next((one for one in self.list_open() if one.id not in self.seen), None)  # noqa: E731
        found: Shown = await until(is_new, "the question", 20)
        self.seen.add(found.id)
        return found

    def list_open(self) -> list[Shown]:
        return [one for one in self.wire.shown if f"{self.program.title} asks" in one.text and one.buttons]

    async def closed(self, shown: Shown, words: str) -> None:
        await until(lambda: words in shown.text and not shown.buttons, words, 20)


@asynccontextmanager
async def open_desk(folder: Path, settings: str = "") -> AsyncIterator[Desk]:
    """Run a gateway with an owner on Telegram, to which Claude Code is connected. `settings` is YAML."""
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(folder / "home") as gateway:
            gateway.environ |= {name: value for name, value in wire.environ.items() if "TOKEN" not in name}
            access = f"access: {{owners: {{telegram: ['{ANN}']}}, admins: {{telegram: ['{BEN}']}}}}\n"
            gateway.script({"user": "", "text": "Hello."}, settings=access + settings)
            gateway.home.env.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
            gateway.home.env.chmod(0o600)
            (folder / "desk").mkdir()
            desk = Desk(gateway, wire, folder / "desk")
            await desk.connect()
            await to_thread.run_sync(gateway.start)
            yield desk
            await to_thread.run_sync(gateway.kill)  # while the network still sees its connections end


def make_call(tool: str = "Bash", event: str = "PreToolUse", **args: str) -> str:
    return make_event(event, tool_name=tool, tool_input=args, tool_use_id="toolu_1")


GUARD = """
def handle(event_type, context):
    tool, args = context["tool"], context["args"]
    if context["desk"]["program"] != "claude" or context["platform"] != "desk":
        return {"decision": "deny", "reason": "not of a desk"}
    if tool == "shell" and "rm" in args["command"]:
        return {"decision": "deny", "reason": "nothing is removed here"}
    if tool == "shell" and "push" in args["command"] and not context.ask("May it push?"):
        return {"decision": "deny", "reason": "no push"}
    if tool == "write_file":
        context["args"] = args | {"content": "changed"}
"""


async def add_hook(desk: Desk, name: str, manifest: str, handler: str) -> None:
    desk.gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler})
    is_loaded = lambda: desk.gateway.call("hooks.info", {"name": name})["state"] == "loaded"  # noqa: E731
    await to_thread.run_sync(desk.gateway.until, lambda: name in str(desk.gateway.call("hooks.list")) and is_loaded())
