"""A model that obeys every text that it reads: with it, each text that reaches the agent is an attack.

It answers in OpenAI's language. In the newest message (of the person, or of a tool) it looks for a line `DO {...}`
with the name and the arguments of a tool, and calls that; where there is none, it says that it is done.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from tests.http_server import QuietHandler, serving

ORDER = re.compile(r"DO (\{.*\})")


class ObedientModel(QuietHandler):
    """One server for the model and for the pages that it is sent to."""

    words = "done"

    def do_POST(self) -> None:  # noqa: N802 - as the library calls it
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = body["messages"][-1].get("content") or ""
        text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
        found = ORDER.search(text)
        self._stream(found and json.loads(found[1]))

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        page = self.server.pages.get(self.path, self.server.page).encode()  # type: ignore[attr-defined]
        self.answer(page, "text/html; charset=utf-8")

    def _stream(self, call: dict[str, Any] | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        delta: dict[str, Any] = {"role": "assistant", "content": self.words}
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
    """The server while inside; `pages` by their paths, and `page`, is what it shows to who fetches from it."""
    with serving(ObedientModel) as server:
        server.page, server.pages = "", {}  # type: ignore[attr-defined]
        yield server
