"""`sessions/sessions.json` is kept for hooks that read it, and never where it is Hermes's."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

KEY = "agent:main:terminal:dm:main"


def entries(gateway: GatewayProcess) -> dict[str, Any]:
    try:
        kept = json.loads(gateway.home.hermes_sessions.read_text())
    except FileNotFoundError:
        return {}
    return {key: value for key, value in kept.items() if not key.startswith("_")}


def test_each_conversation_has_an_entry_in_hermess_shape_that_follows_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi", "usage": {"input_tokens": 3, "output_tokens": 1}}]})
        gateway.start()
        gateway.say("hello")
        gateway.until(lambda: KEY in entries(gateway))
        first = entries(gateway)[KEY]
        assert (first["session_key"], first["platform"], first["chat_type"]) == (KEY, "terminal", "dm")
        assert (first["origin"]["chat_id"], first["origin"]["user_id"]) == ("main", "owner")
        gateway.say("/new")
        gateway.say("hello")
        gateway.until(lambda: entries(gateway)[KEY]["session_id"] != first["session_id"])
        gateway.stop()
        gateway.start()
        gateway.say("hello", session="other")
        gateway.until(lambda: len(entries(gateway)) == 2)


READER = """
import json, os, pathlib
from datetime import datetime

HOME = pathlib.Path(os.environ["HERMES_HOME"])

def handle(event_type, context):
    try:
        kept = json.loads((HOME / "sessions" / "sessions.json").read_text())
    except FileNotFoundError:
        kept = {}
    found = [one for one in kept.values() if isinstance(one, dict) and one["session_id"] == context.get("session_id")]
    with (HOME / "seen.jsonl").open("a") as file:
        file.write(json.dumps([event_type, [one["origin"]["chat_id"] for one in found]]) + "\\n")
    for one in found:
        datetime.now() - datetime.fromisoformat(one["created_at"])  # local times, as Hermes writes them
"""


def test_who_reads_it_finds_the_first_conversation_at_its_first_event(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi"}]})
        manifest = "events: ['session:start', 'agent:*']\n"
        gateway.add_hook("reads", {"HOOK.yaml": manifest, "handler.py": READER})
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "reads"})["state"] == "loaded")
        assert gateway.call("hooks.info", {"name": "reads"})["files"] == [
            "sessions.json: written for it, from the journal"
        ]
        seen = gateway.home.root / "seen.jsonl"
        for count, session in ((3, "main"), (6, "other")):
            gateway.say("hello", session=session)
            gateway.until(lambda count=count: seen.exists() and len(seen.read_text().splitlines()) == count)  # type: ignore[misc]
        assert gateway.call("hooks.list")["failures"] == 0
        told = [json.loads(line) for line in seen.read_text().splitlines()]
        assert [chats for _, chats in told] == [["main"]] * 3 + [["other"]] * 3


@pytest.mark.parametrize("theirs", ["state.db", "sessions/sessions.json"])
def test_a_file_of_hermes_is_never_written(tmp_path: Path, theirs: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi"}]})
        (gateway.home.root / "sessions").mkdir()
        (gateway.home.root / theirs).write_text('{"agent:main:x": {"session_id": "theirs"}}')
        gateway.start()
        gateway.say("hello")
        assert "session list" not in {part["name"] for part in gateway.call("status")["parts"]}
        assert (gateway.home.root / theirs).read_text() == '{"agent:main:x": {"session_id": "theirs"}}'
        assert [path.name for path in (gateway.home.root / "sessions").iterdir()] in ([], ["sessions.json"])
