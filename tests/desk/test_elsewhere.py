"""A program on another machine asks by a key: it may ask, and nothing else."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from anyio import to_thread

from gateway.desk.ask import PAUSE, TRIES_AGAIN
from gateway.testing.gateway_process import FREE_PORT
from gateway.testing.networks.wire import ANN
from gateway.web.key_check import MOST_WRONG
from tests.desk.desk_program import CALL, GUARD, Desk, add_hook, make_call, make_event
from tests.spine import until
from tests.web.visits import Visit, send, visit

pytestmark = pytest.mark.process

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LONGEST_TRIES = TRIES_AGAIN * PAUSE  # seconds in which a command tries again


async def make_key(desk: Desk, name: str, role: str = "desk") -> str:
    made = await to_thread.run_sync(desk.gateway.cli, "keys", "new", name, "--as", role)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def url_of(desk: Desk) -> str:
    return str(desk.gateway.call("status")["web"]["url"])


def post(desk: Desk, key: str, text: str = CALL, path: str = "/desk/claude") -> "asyncio.Task[Visit]":
    """Post an event as Claude Code does."""
    headers = {"authorization": f"Bearer {key}", "content_type": "application/json"}
    return asyncio.create_task(to_thread.run_sync(lambda: send(url_of(desk), path, "POST", text.encode(), **headers)))


async def test_a_key_of_a_desk_asks_and_nothing_else(desk: Desk) -> None:
    key, user = await make_key(desk, "laptop"), await make_key(desk, "user", "user")
    await add_hook(desk, "guard", "intercepts: [tool:before]\n", GUARD)
    assert (await post(desk, key, make_call(command="ls"))).body == b"{}"
    denied = json.loads((await post(desk, key, make_call(command="rm -r x"))).body)["hookSpecificOutput"]
    assert (denied["permissionDecision"], denied["permissionDecisionReason"]) == (
        "deny",
        "hermes-gateway: nothing is removed here",
    )
    for text, path in (("{", "/desk/claude"), (CALL, "/desk"), (CALL, "/desk/codex")):
        assert (await post(desk, key, text, path)).status in (400, 404)
    assert [(await post(desk, one)).status for one in (user, "hgw_wrong")] == [403, 401]
    as_key = {"authorization": f"Bearer {key}"}
    url, ways = url_of(desk), ("/ready", "/metrics", "/v1/models", "/v1/responses/x", "/desk/claude", "/api/me")
    found = await to_thread.run_sync(lambda: {way: visit(url, way, **as_key).status for way in ways})
    assert found == dict.fromkeys(ways, 403) | {"/desk/claude": 405}
    more = ("/v1/chat/completions", "/v1/responses", "/webhooks/issues", "/networks/telegram", "/api/hooks.list")
    posted = await to_thread.run_sync(
        lambda: {way: send(url, way, "POST", b"{}", content_type="application/json", **as_key).status for way in more}
    )
    assert all(status in (401, 403, 404) for status in posted.values()), posted
    again = await to_thread.run_sync(desk.gateway.cli, "keys", "new", "x", "--as", "desk", "--agent", "main")
    assert "a desk's key speaks to no agent" in again.stderr


async def test_a_question_by_a_key_is_answered_in_a_chat_and_ends_with_the_key(desk: Desk) -> None:
    key = await make_key(desk, "laptop")
    asked = post(desk, key)
    await desk.wire.press(await desk.question(), "Yes", by=ANN)
    assert json.loads((await asked).body)["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    await until(lambda: "desk:laptop" in str(desk.gateway.call("people.list")), "the key's owner")
    gone = await to_thread.run_sync(desk.gateway.cli, "people", "forget", "desk:laptop", "--yes")
    assert ("1 x conversation" in gone.stdout, "keys revoke laptop" in gone.stderr) == (True, True), gone.stderr
    asked = post(desk, key)
    shown = await desk.question()
    await to_thread.run_sync(desk.gateway.cli, "keys", "revoke", "laptop")
    assert (await asked).status == 401
    await desk.closed(shown, "does not ask any more")


async def open_request(desk: Desk, path: str, *headers: str, body: bytes) -> Connection:
    """Send a request on a connection of its own."""
    host, _, port = url_of(desk).removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = "\r\n".join((f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers))
    writer.write(f"{head}\r\n\r\n".encode() + body)
    return reader, writer


async def test_a_caller_that_hangs_up_at_the_port_withdraws_its_question(desk: Desk) -> None:
    key = await make_key(desk, "laptop")
    _, writer = await open_request(desk, "/desk/claude", f"Authorization: Bearer {key}", body=CALL.encode())
    shown = await desk.question()
    writer.close()
    await desk.closed(shown, "does not ask any more")


async def test_a_caller_whose_connection_a_proxy_ends_finds_its_question(desk: Desk) -> None:
    headers = (f"Authorization: Bearer {await make_key(desk, 'laptop')}", "X-Desk-Token: one")
    body = f"claude PermissionRequest 1 {len(CALL)}\n{CALL}".encode()
    _, first = await open_request(desk, "/desk", *headers, body=body)
    shown = await desk.question()
    first.close()
    reader, second = await open_request(desk, "/desk", *headers, "Connection: close", body=body)
    await desk.wire.press(shown, "Yes", by=ANN)
    assert b'"allow"' in await reader.read()
    second.close()
    assert len([one for one in desk.wire.shown if "touch made" in one.text]) == 1


async def test_a_late_event_of_another_host_withdraws_no_newer_question(desk: Desk) -> None:
    key, url = await make_key(desk, "laptop"), url_of(desk)

    def tell(event: str, text: str, began: str) -> "asyncio.Task[Visit]":
        body = f"claude {event} 1 {len(text)}\n{text}".encode()
        headers = {"authorization": f"Bearer {key}", "x_desk_began": began}
        return asyncio.create_task(to_thread.run_sync(lambda: send(url, "/desk", "POST", body, **headers)))

    asked = tell("PermissionRequest", CALL, "2")
    shown = await desk.question()
    assert (await tell("UserPromptSubmit", make_event("UserPromptSubmit", prompt_id="another"), "1")).status == 200
    await desk.wire.press(shown, "Yes", by=ANN)
    assert b'"allow"' in (await asked).body


async def test_claude_itself_can_ask_a_gateway_elsewhere(desk: Desk) -> None:
    (desk.home / "key").write_text(await make_key(desk, "laptop"))
    words = ("connect", "claude", "--yes", "--key-file", str(desk.home / "key"), "--url")
    done = await to_thread.run_sync(desk.gateway.cli, *words, url_of(desk))
    assert (done.returncode, "another gateway is connected there" in done.stderr) == (0, True), done.stderr
    hooks = json.loads(desk.file.read_text())["hooks"]
    entry = hooks["PreToolUse"][0]["hooks"][0]
    assert (entry["url"], entry["onFailure"]) == (f"{url_of(desk)}/desk/claude", "block")
    assert {len(groups) for groups in hooks.values()} == {1}
    refused = await to_thread.run_sync(desk.gateway.cli, *words, "http://gate.example.org")
    assert "is not an address for a key" in refused.stderr
    await to_thread.run_sync(desk.gateway.cli, "disconnect", "claude", "--yes")
    assert json.loads(desk.file.read_text()) == {}


class Laptop:
    """A machine without our program: the file of `connect --script`, and a Python."""

    def __init__(self, home: Path) -> None:
        self.home, self.settings = home, home / ".claude" / "settings.json"
        home.mkdir()

    def run(self, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        environ = {"HOME": str(self.home), "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        return subprocess.run(words, input=text, capture_output=True, text=True, env=environ)

    def ask(self, text: str) -> "asyncio.Task[subprocess.CompletedProcess[str]]":
        [group] = json.loads(self.settings.read_text())["hooks"][json.loads(text)["hook_event_name"]]
        command = group["hooks"][0]["command"]
        return asyncio.create_task(to_thread.run_sync(lambda: self.run("sh", "-c", command, text=text)))


async def make_script(desk: Desk, program: str, folder: Path) -> Path:
    """Make the file that connects this program, with the key in the home of the desk."""
    words = ("connect", program, "--script", "--url", url_of(desk), "--key-file", str(desk.home / "key"))
    made = await to_thread.run_sync(desk.gateway.cli, *words)
    file = folder / f"connect-{program}.py"
    file.write_text(made.stdout)
    return file


async def test_one_file_connects_a_machine_without_our_program(desk: Desk, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "laptop")
    (desk.home / "key").write_text(await make_key(desk, "laptop"))
    file, other = [await make_script(desk, program, tmp_path) for program in ("claude", "codex")]
    theirs: dict[str, Any] = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    laptop.settings.parent.mkdir()
    laptop.settings.write_text(json.dumps(theirs))
    for _ in range(2):
        assert "has the lines" in laptop.run(sys.executable, str(file), "connect").stdout
    assert json.loads(laptop.settings.read_text())["hooks"]["Stop"][0] == theirs["hooks"]["Stop"][0]
    kept = laptop.home / ".local" / "share" / "hermes-gateway" / "claude" / "desk" / "ask.py"
    assert [one.stat().st_mode & 0o777 for one in (kept, laptop.settings)] == [0o600, 0o600]

    for word in ("connect", "disconnect"):  # another program there, with a copy of its own
        assert laptop.run(sys.executable, str(other), word).returncode == 0
    assert json.loads((laptop.home / ".codex" / "hooks.json").read_text()) == {}

    asked = laptop.ask(CALL)
    shown = await desk.question()
    assert "touch made" in shown.text
    desk.gateway.environ |= dict.fromkeys(FREE_PORT, url_of(desk).removeprefix("http://"))
    await to_thread.run_sync(desk.gateway.kill)
    await to_thread.run_sync(desk.gateway.start)
    await desk.wire.press(shown, "Yes", by=ANN)
    assert '"allow"' in (await asked).stdout

    change = make_event("ConfigChange", source="user_settings", file_path=str(laptop.settings))
    assert (await laptop.ask(change)).stdout == ""
    whole = laptop.settings.read_text()
    laptop.settings.write_text(whole.replace('"onFailure": "block"', '"onFailure": "allow"'))
    assert '"block"' in (await laptop.ask(change)).stdout
    laptop.settings.write_text(whole)
    await to_thread.run_sync(desk.gateway.cli, "keys", "revoke", "laptop")
    async with asyncio.timeout(LONGEST_TRIES):  # also when the gateway counts too many wrong keys
        answers = await asyncio.gather(*(laptop.ask(make_call(command="ls")) for _ in range(MOST_WRONG + 2)))
    decisions = {json.loads(one.stdout)["hookSpecificOutput"]["permissionDecision"] for one in answers}
    assert decisions == {"ask"}
    laptop.run(sys.executable, str(file), "disconnect")
    assert (json.loads(laptop.settings.read_text()), kept.exists()) == (theirs, False)
