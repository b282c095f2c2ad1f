"""The search of the web on the running daemon: what the model gets, who has it, and where a day ends."""

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from gateway.worker.tool_names import FOUND
from tests.http_server import QuietHandler, serving

pytestmark = pytest.mark.process

ROW = {"url": "https://tea.example/", "title": "Tea", "content": "How to brew it."}
ANSWERING = {
    "HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: web_search}\n",
    "handler.py": "def handle(event_type, context):\n    return {'result': 'of ' + context['args']['query']}\n",
}


class SearxngHandler(QuietHandler):
    """A SearXNG on loopback, where the web tool itself may not go."""

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        self.answer(json.dumps({"results": [ROW], "unresponsive_engines": []}).encode())


@pytest.fixture
def searxng() -> Iterator[ThreadingHTTPServer]:
    with serving(SearxngHandler) as server:
        yield server


def calling(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


def results_of(gateway: GatewayProcess) -> list[str]:
    shown = gateway.call("sessions.show", {"session": "agent:main:terminal:dm:main"})
    return [str(one["content"]) for one in shown["entries"] if one["role"] == "tool"]


def test_the_agent_searches_and_a_day_ends_also_through_a_restart(searxng: ThreadingHTTPServer, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{searxng.server_address[1]}"
    search = calling("web_search", query="tea"), calling("web_fetch", url=f"{url}/search?q=tea")
    turns = [{"user": "search", "answers": [*search, {"text": "done"}]}] * 2
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*turns, settings=f"tools: {{search: {{provider: searxng, url: {url!r}, a_day: 1}}}}\n")
        for _ in range(2):
            gateway.start()
            assert gateway.say("search")["reply"] == "done"
            gateway.stop()
        gateway.start()
        found, fetched, spent, _ = results_of(gateway)
    said = {"title": "Tea", "url": "https://tea.example/", "description": "How to brew it.", "position": 1}
    assert found == f"{FOUND}\n{json.dumps({'success': True, 'data': {'web': [said]}})}"
    assert "is on this machine" in fetched
    assert "no more searches today" in spent


def test_without_a_service_there_is_no_tool_and_a_hook_may_be_one(tmp_path: Path) -> None:
    turn = {"user": "search", "answers": [calling("web_search", query="tea"), {"text": "done"}]}
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(turn, turn)
        gateway.start()
        gateway.say("search")
        gateway.add_hook("finds", ANSWERING)
        gateway.script(turn, turn, settings="tools: {search: {provider: hook}}\n")
        assert gateway.cli("reload").returncode == 0
        gateway.until(lambda: gateway.call("hooks.info", {"name": "finds"})["state"] == "loaded")
        gateway.say("search")
        missing, found = results_of(gateway)
    assert "tool 'web_search' not found" in missing
    assert found == "of tea"


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("{provider: searxng}", "config.yaml:1:17: error: SearXNG needs its address; write it to `tools.search.url`"),
        ("{provider: brave}", "config.yaml:1:17: error: Brave needs a key; write `key: ${BRAVE_API_KEY}`"),
        ("{provider: google}", "tools.search.provider"),
    ],
)
def test_a_service_without_what_it_needs_is_named_before_the_start(tmp_path: Path, search: str, words: str) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    gateway.configure(f"tools: {{search: {search}}}\n")
    checked = gateway.cli("config", "check")
    assert checked.returncode != 0
    assert words in checked.stdout + checked.stderr
