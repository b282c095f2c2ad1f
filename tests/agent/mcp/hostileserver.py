"""A server of tools that writes its lines itself, and wrong: python hostileserver.py HOW."""

import json
import sys

HOW = sys.argv[1]
TEXT = b'"content":[{"type":"text","text":"ok"}]'
ANSWERS = {
    "deep": b"{%b,%b}" % (TEXT, b'"structuredContent":' + b'{"a":' * 500 + b"1" + b"}" * 500),
    "digits": b'{%b,"structuredContent":{"a":%b}}' % (TEXT, b"1" * 200_000),
    "half a character": rb'{"content":[{"type":"text","text":"a\ud800b"}]}',
}
TOOL = {"name": "act", "description": "Act.", "inputSchema": {"type": "object"}}


def say(number: int, result: bytes, kind: bytes = b"result") -> None:
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,"%b":%b}\n' % (number, kind, result))
    sys.stdout.buffer.flush()


def list_tools() -> bytes:
    match HOW:
        case "pages":
            return json.dumps({"tools": [TOOL], "nextCursor": "on"}).encode()
        case "deep list":
            return b'{"tools":%b}' % (b"[" * 500 + b"]" * 500)
        case _:
            return json.dumps({"tools": [TOOL]}).encode()


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            capable = {"protocolVersion": version, "capabilities": {"tools": {}}}
            say(message["id"], json.dumps(capable | {"serverInfo": {"name": "shop", "version": "1"}}).encode())
        case "tools/list":
            say(message["id"], list_tools())
        case "tools/call":
            if HOW == "noise":
                sys.stdout.buffer.write(b"{noise\n" * 1000)
            say(message["id"], ANSWERS.get(HOW, b"{%b}" % TEXT))
        case "server/discover":
            say(message["id"], b'{"code":-32601,"message":"no"}', b"error")
