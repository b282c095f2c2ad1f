"""Whatever hooks, people, models and networks call themselves and say, no command lets it act on the terminal.

A home in which all of it is as bad as it gets, and a terminal of 80 columns for every command that prints.
"""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group, to_thread

from gateway.cli.program import COMMANDS
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks.durable.dead_letters import dead_letter_subject_of
from gateway.records import records
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from tests.adapters.telegram_wire import Refused, TelegramWire
from tests.spine import until
from tests.waits import wait_readable

pytestmark = [pytest.mark.thorough, pytest.mark.process, pytest.mark.row("T29")]

BAD = "\x1b[45m\x1b]0;title\x07\x9b2J\r\x08\x7f\u202eback\u2066\u200bno\u00adroom\u2028line\nforged\x1b[2K"
# Colours, and the bar of progress.
OURS = re.compile(r"\x1b\[(?:0|1|2|3[1-6]|9[0-7])(?:;[0-9]+)?m|\x1b\[\?25[lh]|\r(?:\x1b\[1A)?\x1b\[2K|\r\n")
ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
MANIFEST = "events: [agent:end, gateway:shutdown]\ndelivery: durable\n"
HANDLER = f"""
BAD = {BAD!a}


def handle(event_type, context):
    print(BAD)
    raise RuntimeError(BAD)
"""
CALL = {"tool_calls": [{"name": "shell", "args": {"command": f"echo {BAD}"}}]}
TURNS = ({"user": "run", "answers": [CALL, {"text": BAD}]}, *({"user": "", "text": BAD},) * 9)
PEOPLE = f"owners: {{telegram: ['{ANN}']}}, users: {{telegram: ['{BEN}']}}"
SETTINGS = f"  name: {json.dumps(BAD)}\naccess: {{{PEOPLE}, tools: {{user: [shell]}}}}\n"
COMMAND_LINES = """
status | status --json | doctor | doctor --json | doctor --hermes | doctor --hermes --json
doctor --desk | doctor --desk --json
security audit | security audit --json
hooks list | hooks list --all | hooks list --json | hooks info bad | hooks info bad --json | hooks stats
hooks stats --json | hooks check | hooks check --json | hooks check bad | hooks logs bad | hooks logs bad --json
hooks test bad | hooks test bad --json | hooks fire bad agent:end | hooks reload bad | hooks reload | hooks deps bad
hooks dead-letters list | hooks dead-letters list --json | hooks dead-letters show bad {letter}
hooks disable bad | hooks enable bad | hooks reset bad
events list | events replay bad | events replay bad --json
connect claude --yes | connect claude --yes | disconnect claude --yes
platform list | platform list --json | platform probe telegram | platform pause telegram | platform resume telegram
approvals list | approvals list --json | approvals no {approval} | approvals no {approval}
pairing list | pairing list --json | pairing approve {code} | pairing revoke telegram {stranger} --json
sessions list | sessions list --json | sessions show {session} | sessions show {session} --json
sessions search back | sessions search back --json | sessions export {session}
sessions export {session} --format json | sessions rebuild | sessions list -n 1 | sessions search back -n 1
sessions stop {session} | sessions stop {session} --json | sessions delete {session} --yes
open | open --end --json
keys new program --as user | keys list | keys revoke {bad} | logs -n 500 | logs -n 500 --json | logs --level error
config check | config check --json | config show | config show --json | config show --origin | config show model.name
config path | config schema | hooks schema
send --to {bad} hello | backup create | backup create --json | backup verify | chat -m hello | chat -m hello --json
activity list | activity list --json | activity export | reload | reload --json
usage | usage --by session | usage --json | people list | people list --json | people show telegram:{stranger}
people show {bad} | people forget telegram:{stranger} --yes
service status | service status --json | migrate --to nats | skills list | skills list --json | completions bash
status --parts | jobs add song --when 2h --text {bad} | jobs list | jobs list --json | jobs show song | jobs show {bad}
jobs history song | cron list | jobs remove song | jobs add tune --when 2h --command {bad} | jobs show tune
jobs import
chat -m hello -s {bad} | sessions show {bad} | hooks info {bad} | logs --hook {bad} | {bad} | config show {bad}
stop
"""
IN_LINES = ("status", "doctor", "hooks list", "hooks stats", "hooks check", "platform", "pairing", "sessions list")
SILENT = ("logs --hook {bad}", "stop")
UNWALKED = {"run", "restart", "setup", "demo", "upgrade", "uninstall"}  # they ask, or hear nobody


class BadWire(TelegramWire):
    """Its people are called what they like, and what it complains of is what it likes."""

    def told(self, message: dict[str, Any]) -> str:
        message["from"] |= {"first_name": BAD, "username": BAD}
        return super().told(message)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    wire = BadWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*TURNS, settings=SETTINGS)
            gateway.environ |= wire.environ
            gateway.add_hook("bad", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
            gateway.add_hook("worse", {"HOOK.yaml": f"events: [{json.dumps(BAD)}]\n{json.dumps(BAD)}: 1\n"})
            jobs = gateway.home.hermes_jobs
            jobs.parent.mkdir()
            jobs.write_text(json.dumps([{"prompt": BAD, "deliver": BAD, "schedule": {"kind": "cron", "expr": BAD}}]))
            await bury_letter(gateway)
            await to_thread.run_sync(gateway.start)
            await wire.write(f"/title {BAD}")
            await wire.write(BAD)
            await wire.write(BAD, by=STRANGER)
            await wire.write("run", by=BEN)
            await until(partial(stands, gateway, "approvals", "approvals", "list"), "the question")
            await until(partial(stands, gateway, "asking", "pairing", "list"), "the code")
            await to_thread.run_sync(gateway.cli, "hooks", "fire", "bad", "agent:end")
            wire.ills["getMe"] = [Refused(500, BAD)] * 100
            wire.ills["sendMessage"] = [Refused(400, BAD)] * 100
            with gateway.home.log.open("a") as log:
                log.write(f"{BAD}\n{json.dumps({'level': 'error', 'message': BAD}, ensure_ascii=False)}\n")
            yield gateway


async def bury_letter(gateway: GatewayProcess) -> None:
    """Leave an event that the hook could not receive, in a gateway that ran before."""
    async with await open_sqlite(gateway.home.journal) as engine:
        emitted = records.encode(records.EmittedEvent(name="agent:end", fields={"id": "e1", "reply": BAD}))
        dead = records.DeadLetterRecord(what="hook:bad", reason=BAD, attempts=5, subject="x", seq=1, data=emitted)
        await engine.append(NewRecord(dead_letter_subject_of("bad", 1), records.encode(dead)))


async def stands(gateway: GatewayProcess, key: str, *args: str) -> bool:
    return bool((await to_thread.run_sync(listed, gateway, *args))[key])


def listed(gateway: GatewayProcess, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gateway.cli(*args, "--json").stdout)
    return found


def show_on_terminal(gateway: GatewayProcess, *args: str, width: int = 80) -> str:
    """All that a command shows on a terminal that is so wide."""
    keeper, end = pty.openpty()
    subprocess.run(["stty", "columns", str(width), "-echo"], stdin=end, check=True)
    environ = {**gateway.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "gateway.cli", *args]
    shown = b""
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environ) as program:
        os.close(end)
        while True:
            wait_readable(keeper, f"the end of {args}")
            try:
                part = os.read(keeper, 65536)
            except OSError:  # the program has closed it
                break
            shown += part
        program.kill()
    os.close(keeper)
    return shown.decode()


def find_acting(shown: str) -> list[str]:
    """Find each sign that acts and is not ours, with its surroundings."""
    theirs = OURS.sub("  ", shown)
    return [theirs[max(one.start() - 60, 0) : one.end() + 20] for one in ACTS.finditer(theirs)]


def walk(gateway: GatewayProcess) -> dict[str, str]:
    """Return the foreign text that each command shows."""
    words = {
        "bad": BAD,
        "stranger": STRANGER,
        "session": listed(gateway, "sessions", "list")["sessions"][0]["session_id"],
        "approval": listed(gateway, "approvals", "list")["approvals"][0]["id"],
        "code": "AAAA-AAAA",
        "letter": str(listed(gateway, "hooks", "dead-letters", "list")["letters"][0]["number"]),
    }
    found = {}
    for line in re.split(r" \| |\n", COMMAND_LINES.strip()):
        shown = show_on_terminal(gateway, *(word.format(**words) for word in line.split(" ")))
        assert shown or line in SILENT, line
        acting = find_acting(shown)
        acting += re.findall(r"\\x1b\[3[1-46]m", shown)  # ours, taken for theirs
        acting += [one for one in shown.splitlines() if line.startswith(IN_LINES) and one.startswith("forged")]
        if acting:
            found[line] = repr(acting[0])
        found |= {line: "Traceback"} if 'File "/' in shown and "gateway/cli" in shown else {}
    return found


@pytest.mark.timeout(120)  # each command is a process of its own, and there are more of them with time
async def test_no_command_lets_others_act_on_the_terminal(gateway: GatewayProcess) -> None:
    walked = {re.split(r"[ |]", line.strip())[0] for line in re.split(r"[|\n]", COMMAND_LINES) if line.strip()}
    assert set(COMMANDS) - walked == UNWALKED
    assert await to_thread.run_sync(walk, gateway) == {}


@pytest.mark.parametrize("how", [(), ("--json",)])
async def test_what_happens_now_is_shown_in_signs_that_do_nothing(
    gateway: GatewayProcess, how: tuple[str, ...]
) -> None:
    shown: list[str] = []

    async def look() -> None:
        shown.append(await to_thread.run_sync(show_on_terminal, gateway, "events", "tail", "-n", "4", *how))

    async with create_task_group() as tasks:
        tasks.start_soon(look)
        while not shown:
            await to_thread.run_sync(gateway.say, BAD)
    assert "forged" in shown[0]
    assert not find_acting(shown[0])
