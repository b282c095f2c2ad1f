"""A model for Claude Code on loopback: it calls Bash with one command, and repeats the result.

`python stub_model.py COMMAND -- PROGRAM...` serves it, runs the program with its address, and ends with it.
So both can be in a network of their own, without any other host.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def say(body: dict[str, Any], command: str) -> dict[str, Any]:
    """The model's next words: a call, or the text that ends the turn."""
    names = {tool.get("name") for tool in body.get("tools", ())}
    has_result = "tool_result" in json.dumps(body["messages"][-1])
    if "Bash" in names and not has_result:
        call = {"command": command, "description": "a test"}
        return {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": call}
    return {"type": "text", "text": json.dumps(body["messages"][-1])[:2000] if has_result else "ok"}


def stream(message: dict[str, Any], block: dict[str, Any], stop: str) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    wanted = ""  # the command that it calls

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.answer(json.dumps({"data": []}).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not self.path.split("?")[0].endswith("/messages"):
            self.answer(b'{"input_tokens": 10}', "application/json")
            return
        block = say(body, self.wanted)
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
        message |= {"usage": {"input_tokens": 10, "output_tokens": 5}}
        if body.get("stream"):
            events = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in stream(message, block, stop))
            self.answer("".join(events).encode(), "text/event-stream")
        else:
            self.answer(json.dumps(message | {"content": [block], "stop_reason": stop}).encode(), "application/json")

    def answer(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(command: str, program: list[str]) -> int:
    Model.wanted = command
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environ = os.environ | {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        code = subprocess.run(program, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
        server.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:]))
