"""One turn of hermes-agent in its own environment, with its home's plugins and a model of ours.

Its argument is the calls that the model makes, as JSON; by default it wants the tool `moon`. Where a message says CALLS
itself, as the task of a sub-agent may, it wants those. A second argument says how often the model must have been asked
before this ends: a sub-agent works on beside the turn.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hermes_cli.plugins import discover_plugins  # type: ignore[import-not-found]  # of the other environment
from run_agent import AIAgent  # type: ignore[import-not-found]  # likewise

CALLS = json.loads(sys.argv[1]) if sys.argv[1:] else [["moon", {}]]
LEAST_ASKED = int(sys.argv[2]) if sys.argv[2:] else 0


class Model(BaseHTTPRequestHandler):
    """Wants the tools once, all together, then says `grey`."""

    asked = 0

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._say("application/json", b'{"object": "list", "data": [{"id": "script", "object": "model"}]}')

    def do_POST(self) -> None:
        asked = {"messages": [], **json.loads(self.rfile.read(int(self.headers["Content-Length"])))}
        is_done = not asked.get("tools") or any(one["role"] == "tool" for one in asked["messages"])
        Model.asked += bool(asked["messages"])
        users = [str(one["content"]) for one in asked["messages"] if one["role"] == "user"]
        _, _, named = (users or [""])[-1].partition("CALLS ")
        calls = [
            {
                "index": number,
                "id": f"call_{number + 1}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for number, (name, args) in enumerate(json.JSONDecoder().raw_decode(named)[0] if named else CALLS)
        ]
        said = {"content": "grey"} if is_done else {"content": None, "tool_calls": calls}
        pieces = [({"role": "assistant", **said}, None), ({}, "stop" if is_done else "tool_calls")]
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "script"}
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in pieces]
        events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self._say("text/event-stream", "".join([*events, "data: [DONE]\n\n"]).encode())

    def _say(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    discover_plugins()
    agent = AIAgent(
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
        api_key="none",
        model="script",
        platform="terminal",
        session_id="one",
        quiet_mode=True,
        skip_context_files=True,
        skip_memory="WITH_MEMORY" not in os.environ,
        max_iterations=4,
    )
    reply = agent.run_conversation("moon")["final_response"]
    while Model.asked < LEAST_ASKED:
        time.sleep(0.01)
    sys.stdout.write(f"{reply}\n")
    sys.stdout.flush()
    os._exit(0)  # what it has started in the background does not matter here


main()
