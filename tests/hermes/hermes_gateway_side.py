"""Run in the environment of hermes-agent: its gateway, with the hooks of its home, one network and a model of ours."""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gateway.platforms.base import BasePlatformAdapter, MessageEvent, SendResult
from gateway.run import GatewayRunner
from gateway.session import SessionSource
from hermes_cli.plugins import discover_plugins

from gateway.config import GatewayConfig, Platform, PlatformConfig

HOME = Path(os.environ["HERMES_HOME"])


class Model(BaseHTTPRequestHandler):
    """Wants a tool when it is told so; else it gives a long answer."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._say(200, "application/json", b'{"object": "list", "data": [{"id": "script", "object": "model"}]}')

    def do_POST(self) -> None:
        asked = {"messages": [], **json.loads(self.rfile.read(int(self.headers["Content-Length"])))}
        users = [one for one in asked["messages"] if one["role"] == "user"]
        text = json.dumps(users[-1]["content"]) if users else ""
        is_done = not asked.get("tools") or any(one["role"] == "tool" for one in asked["messages"][-2:])
        wanted = read_calls() or [
            ("terminal", {"command": "printf out"}),
            ("read_file", {"path": "a.txt", "offset": 1, "limit": 5}),
        ]
        calls = [
            {
                "index": number,
                "id": f"call_{number + 1}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for number, (name, args) in enumerate(wanted)
        ]
        wants = "use a tool" in text and not is_done
        said = {"content": None, "tool_calls": calls} if wants else {"content": find_answer(users) or "y" * 1200}
        pieces = [({"role": "assistant", **said}, None), ({}, "tool_calls" if wants else "stop")]
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "script"}
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in pieces]
        events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self._say(200, "text/event-stream", "".join([*events, "data: [DONE]\n\n"]).encode())

    def _say(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def read_calls() -> list[list[Any]]:
    """The calls that the model makes when it is told to use a tool, where the home has a list."""
    path = HOME / "calls.json"
    return json.loads(path.read_text()) if path.exists() else []


def find_answer(users: list[dict[str, Any]]) -> str:
    """The words that the person wants to hear: what stands behind `say: `."""
    said = str(users[-1]["content"]) if users else ""
    return said.partition("say: ")[2].partition("\n")[0]


class Net(BasePlatformAdapter):
    async def connect(self, *, is_reconnect: bool = False) -> bool:
        return True

    async def disconnect(self) -> None:
        pass

    async def send(self, chat_id: str, content: str, reply_to: Any = None, metadata: Any = None) -> SendResult:
        return SendResult(success=True, message_id="1")

    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        return {"name": chat_id, "type": "dm"}


def configure() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    model = {"default": "script", "provider": "custom", "base_url": url, "api_key": "none"}
    plugins = [path.name for path in (HOME / "plugins").glob("*")]
    (HOME / "config.yaml").write_text(
        json.dumps({"model": model, "mine": {"volume": 11}, "plugins": {"enabled": plugins}})
    )
    discover_plugins()


async def main() -> None:
    config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(enabled=True, token="1:x")})
    runner = GatewayRunner(config)
    runner.adapters[Platform.TELEGRAM] = Net(config.platforms[Platform.TELEGRAM], Platform.TELEGRAM)
    runner.hooks.discover_and_load()
    await runner.hooks.emit("gateway:startup", {"platforms": ["telegram"]})
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="main", chat_type="dm", user_id="owner", user_name="Ann")
    answers = []
    for number, text in enumerate(sys.argv[1:]):
        event = MessageEvent(text=text, source=source, message_id=str(number))
        answers.append(str(await runner._handle_message(event)))
    await asyncio.sleep(0.5)
    sys.stdout.write(f"\nanswers {json.dumps(answers)}\n")
    sys.stdout.flush()
    os._exit(0)


configure()
asyncio.run(main())
