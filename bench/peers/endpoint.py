"""An OpenAI-compatible endpoint on loopback that answers at once, as a process of its own. The standard library alone.

The model `text` says a sentence in three pieces, `long` says 200 pieces, `tool` first wants the tool `noop`, `shell` a
command of the shell. Prints its port, and serves until it is ended. GET /count: how many requests of each model there
were.
"""

import asyncio
import json
from collections import Counter
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
COUNT: Counter[str] = Counter()
ARGUMENTS = {"noop": "{}", "shell": '{"command": "printf out"}'}
TOOLS = {"tool": "noop", "shell": "shell"}  # by the model that wants them


def event(delta, finish=None, usage=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(data | ({"usage": usage} if usage else {})).encode() + b"\n\n"


def stream(*pieces, call=""):
    if call:
        function = {"name": call, "arguments": ARGUMENTS[call]}
        parts = [event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})]
    else:
        parts = [event({"role": "assistant", "content": piece}) for piece in pieces]
    body = b"".join([*parts, event({}, "tool_calls" if call else "stop", USAGE), b"data: [DONE]\n\n"])
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
    return head + body


def whole(request):
    message: dict[str, Any] = {"role": "assistant", "content": "Hello from the model."}
    if name := wanted_tool(request):
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": ARGUMENTS[name]}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    return plain(body)


def plain(body):
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(data) + data


TEXT = stream("Hello ", "from the ", "model.")
LONG = stream(*("word " for _ in range(200)))
CALLS = {name: stream(call=name) for name in ARGUMENTS}


def wanted_tool(request):
    return TOOLS.get(request["model"]) if request["messages"][-1]["role"] != "tool" else None


def answer(request):
    COUNT[request["model"]] += 1
    if not request.get("stream"):
        return whole(request)
    if name := wanted_tool(request):
        return CALLS[name]
    return LONG if request["model"] == "long" else TEXT


class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            if head.split(b" ")[1].endswith(b"/chat/completions"):
                self.transport.write(answer(json.loads(body)))
            else:
                self.transport.write(plain(COUNT if b"/count" in head.split(b" ")[1] else {"data": []}))


async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
