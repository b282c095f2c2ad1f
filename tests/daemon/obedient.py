"""A model that does what it reads, wherever it reads it: with it, every text that reaches the agent is an attack.

It answers in OpenAI's language. In the newest message (of the person, or of a tool) it looks for a line `DO {...}`
with the name and the arguments of a tool, and calls that; where there is none, it says that it is done.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDER = re.compile(r"DO (\{.*\})")


class ObedientModel(BaseHTTPRequestHandler):
    """One server for the model and for the pages that it is sent to."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = body["messages"][-1].get("content") or ""
        text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
        found = ORDER.search(text)
        self._stream(found and json.loads(found[1]))

    def do_GET(self) -> None:
        page = self.server.page.encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None:
        """What is asked for is no news."""

    def _stream(self, call: dict[str, Any] | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        delta: dict[str, Any] = {"role": "assistant", "content": "done"}
        if call:
            function = {"name": call["name"], "arguments": json.dumps(call["args"])}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
            }
        for part, finish in ((delta, None), ({}, "tool_calls" if call else "stop")):
            choice = {"index": 0, "delta": part, "finish_reason": finish}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


@contextmanager
def serving_obedient_model() -> Iterator[ThreadingHTTPServer]:
    """The server while inside; `page` is what it shows to whoever fetches something from it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ObedientModel)
    server.page = ""  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
