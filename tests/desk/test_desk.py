"""An agent on the desk asks, an owner answers in a chat: a real gateway, and a process that plays the agent's call."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, Shown
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.spine import until

pytestmark = pytest.mark.process

# As Claude Code 2.1.332 sent it, but for the folders.
CALL = (
    '{"session_id":"3c9aca7e-bbd9-43c2-8926-e265719de917","transcript_path":"/home/ann/.claude/projects/-home-ann-proj/'
    '3c9aca7e-bbd9-43c2-8926-e265719de917.jsonl","cwd":"/home/ann/proj","prompt_id":"b75f94c3-1a4f-4f5e-8b5e-'
    '93d9b4042044","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"PermissionRequest",'
    '"tool_name":"Bash","tool_input":{"command":"touch made","description":"say hello"},"permission_suggestions":'
    '[{"type":"addDirectories","directories":["/home/ann/proj"],"destination":"session"},{"type":"setMode",'
    '"mode":"acceptEdits","destination":"session"}]}\n'
)
ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def make_event(name: str, **fields: Any) -> str:
    return json.dumps(json.loads(CALL) | {"hook_event_name": name} | fields)


class Desk:
    """A gateway with an owner on a network, and the settings of Claude Code in a home of its own."""

    def __init__(self, gateway: GatewayProcess, wire: TelegramWire, home: Path) -> None:
        self.gateway, self.wire, self.home = gateway, wire, home
        gateway.environ["HOME"] = str(home)
        self.file = home / ".claude" / "settings.json"

    async def connect(self) -> None:
        done = await to_thread.run_sync(self.gateway.cli, "connect", "claude", "--yes")
        assert done.returncode == 0, done.stderr

    def ask(self, text: str = CALL, **environ: str) -> "asyncio.Task[tuple[int, str, str]]":
        """Run the command that stands in the settings for this event, as Claude Code does."""
        return asyncio.create_task(to_thread.run_sync(self._ask, text, environ))

    def start(self, text: str, environ: dict[str, str]) -> "subprocess.Popen[str]":
        [group] = json.loads(self.file.read_text())["hooks"][json.loads(text)["hook_event_name"]]
        [entry] = group["hooks"]
        environ = {"HOME": str(self.home), "PATH": os.defpath, "CLAUDE_CODE_SESSION_ATTENDED": "1"} | environ
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        asker = subprocess.Popen(["sh", "-c", f"exec {entry['command']}"], text=True, env=environ, **pipes)
        assert asker.stdin
        asker.stdin.write(text)
        asker.stdin.close()
        asker.stdin = None
        return asker

    def _ask(self, text: str, environ: dict[str, str]) -> tuple[int, str, str]:
        asker = self.start(text, environ)
        out, err = asker.communicate()
        return asker.returncode, out, err

    async def question(self) -> Shown:
        found: Shown = await until(lambda: next(iter(self.list_open()), None), "the question", 20)
        return found

    def list_open(self) -> list[Shown]:
        return [one for one in self.wire.shown if "Claude Code asks" in one.text and one.buttons]

    async def closed(self, shown: Shown, words: str) -> None:
        await until(lambda: words in shown.text and not shown.buttons, words, 20)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= {name: value for name, value in wire.environ.items() if "TOKEN" not in name}
            access = f"access: {{owners: {{telegram: ['{ANN}']}}, admins: {{telegram: ['{BEN}']}}}}\n"
            gateway.script({"user": "", "text": "Hello."}, settings=access)
            gateway.home.env.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
            gateway.home.env.chmod(0o600)
            (tmp_path / "desk").mkdir()
            desk = Desk(gateway, wire, tmp_path / "desk")
            await desk.connect()
            await to_thread.run_sync(gateway.start)
            yield desk
            await to_thread.run_sync(gateway.kill)  # while the network still sees its connections end


async def test_an_owner_allows_in_their_chat_what_claude_asks(desk: Desk) -> None:
    asked = desk.ask()
    shown = await desk.question()
    for words in ("Bash", "touch made", "say hello", "/home/ann/proj"):
        assert words in shown.text
    await desk.wire.press(shown, "Yes", by=BEN)  # an admin is no owner
    await desk.wire.press(shown, "Yes", by=ANN)
    code, out, err = await asked
    assert (code, json.loads(out), err) == (0, ALLOWED, "")
    await desk.closed(shown, "Allowed by")
    done = [(one["who"], one["on"]) for one in desk.gateway.call("activity.list")["activity"]]
    assert any(who == f"telegram:{ANN}" and on.endswith("Bash in /home/ann/proj: done") for who, on in done)


async def test_a_no_is_a_denial_with_a_reason(desk: Desk) -> None:
    asked = desk.ask()
    await desk.wire.press(await desk.question(), "No", by=ANN)
    code, out, _ = await asked
    decision = json.loads(out)["hookSpecificOutput"]["decision"]
    assert (code, decision["behavior"], "refused" in decision["message"]) == (0, "deny", True)


async def test_a_yes_is_for_one_call_alone(desk: Desk) -> None:
    """The same call of the same session is another question, also while the first one is open."""
    first, second = desk.ask(), desk.ask()
    await until(lambda: len(desk.list_open()) == 2, "two questions", 20)
    one, other = desk.list_open()
    await desk.wire.press(one, "Yes", by=ANN)
    await desk.closed(one, "Allowed")
    assert [first.done(), second.done()].count(True) <= 1
    await desk.wire.press(other, "No", by=ANN)
    answers = [json.loads((await asked)[1])["hookSpecificOutput"]["decision"]["behavior"] for asked in (first, second)]
    assert sorted(answers) == ["allow", "deny"]


async def test_a_caller_that_hangs_up_withdraws_its_question(desk: Desk) -> None:
    asker = desk.start(CALL, {})
    shown = await desk.question()
    asker.send_signal(signal.SIGTERM)
    await to_thread.run_sync(asker.communicate)
    await desk.closed(shown, "does not ask any more")


@pytest.mark.parametrize("event", ["PostToolUse", "Stop"])
async def test_what_the_desk_answered_is_withdrawn_in_the_chat(desk: Desk, event: str) -> None:
    asked = desk.ask()
    shown = await desk.question()
    other = {"tool_input": {"command": "ls"}}
    assert await desk.ask(make_event("PostToolUse", **other)) == (0, "", "")  # of another call
    assert await desk.ask(make_event("Stop", session_id="another", tool_name="")) == (0, "", "")
    assert desk.list_open()
    told = make_event(event) if event == "PostToolUse" else make_event(event, tool_name="", tool_input={})
    assert await desk.ask(told) == (0, "", "")
    assert await asked == (0, "", "")
    await desk.closed(shown, "answered at the desk")


async def test_a_question_outlives_the_gateway(desk: Desk) -> None:
    asked = desk.ask()
    shown = await desk.question()
    await to_thread.run_sync(desk.gateway.kill)
    await to_thread.run_sync(desk.gateway.start)
    await desk.wire.press(shown, "Yes", by=ANN)
    assert json.loads((await asked)[1]) == ALLOWED
    ends = [one for one in desk.gateway.call("activity.list")["activity"] if one["what"] == "desk.end"]
    assert len(ends) == 1


async def test_nothing_is_said_for_a_person_who_says_nothing(desk: Desk) -> None:
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {wait: 1s}\n")
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert await desk.ask() == (0, "", "")
    desk.gateway.configure(desk.gateway.home.config.read_text().replace("wait: 1s", "wait: 1s, unanswered: deny"))
    await to_thread.run_sync(desk.gateway.cli, "reload")
    assert '"deny"' in (await desk.ask())[1]


async def test_without_a_gateway_the_program_asks_for_itself(desk: Desk) -> None:
    await to_thread.run_sync(desk.gateway.kill)
    assert await desk.ask() == (0, "", "")
    desk.gateway.configure(desk.gateway.home.config.read_text() + "desk: {down: deny}\n")
    await desk.connect()
    assert '"deny"' in (await desk.ask())[1]


async def test_connect_leaves_what_is_there_as_it_is(desk: Desk) -> None:
    theirs = {
        "model": "opus",
        "hooks": {
            "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
            "PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "say hello"}]}],
        },
    }
    desk.file.write_text(json.dumps(theirs))
    await desk.connect()
    kept = json.loads(desk.file.read_text())
    assert desk.file.stat().st_mode & 0o777 == 0o600
    assert list(kept) == ["model", "hooks"]
    for event, groups in theirs["hooks"].items():  # type: ignore[attr-defined]
        assert kept["hooks"][event][:-1] == groups
    assert "already" in (await to_thread.run_sync(desk.gateway.cli, "connect", "claude", "--yes")).stdout
    gone = await to_thread.run_sync(desk.gateway.cli, "disconnect", "claude", "--yes")
    assert (gone.returncode, json.loads(desk.file.read_text())) == (0, theirs)


def test_the_command_imports_next_to_nothing(tmp_path: Path) -> None:
    """Each tool of the program waits for its start."""
    words = "import sys; before = {*sys.modules}\n"
    file = Path(__file__).parents[2] / "gateway" / "desk" / "ask.py"
    program = f"{words}exec(compile(open({str(file)!r}).read(), 'ask', 'exec'), {{'__name__': 'ask'}})\n"
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-E", "-c", f"{program}print({{*sys.modules}} - before)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "{'_socket'}"
