"""A model on loopback for Claude Code, Codex and Gemini CLI: it calls the shell once, and repeats the result.

`python stub_model.py COMMAND -- PROGRAM...` serves it, runs the program with its address (`{model}` in a word), and
ends with it. So both can be in a network of their own, without any other host. On a screen, where a program waits for
the next prompt, it ends the program after the result.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONGEST = 2000  # characters of a result that are repeated
END_SECONDS = 3.0  # a program has for its last hooks

has_result = threading.Event()

ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "to make it"}  # for this, Codex asks


def answer_claude(body: dict[str, Any], command: str) -> Iterable[dict[str, Any]]:
    last = json.dumps(body["messages"][-1])
    is_over = "tool_result" in last
    if "Bash" in {tool.get("name") for tool in body.get("tools", ())} and not is_over:
        call = {"command": command, "description": "a test"}
        empty = {"type": "tool_use", "id": f"toolu_{os.urandom(10).hex()}", "name": "Bash", "input": {}}
        delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(call)}, "tool_use"
    else:
        empty = {"type": "text", "text": ""}
        delta, stop = {"type": "text_delta", "text": last[:LONGEST] if is_over else "ok"}, "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
    if is_over:
        has_result.set()


def answer_codex(body: dict[str, Any], command: str) -> Iterable[dict[str, Any]]:
    results = [one for one in body["input"] if one.get("type") == "function_call_output"]
    if results or not body.get("tools"):
        text = {"type": "output_text", "text": json.dumps(results)[-LONGEST:], "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    else:
        args = {"cmd": command} | (ESCALATED if sys.stdin.isatty() else {})
        call = {"name": "exec_command", "arguments": json.dumps(args), "status": "completed"}
        item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{os.urandom(6).hex()}", **call}
    usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage | {"total_tokens": 15}}}
    if results:
        has_result.set()


def answer_gemini(body: dict[str, Any], command: str) -> Iterable[dict[str, Any]]:
    last = json.dumps(body["contents"][-1])
    has_shell = "run_shell_command" in json.dumps(body.get("tools", ""))
    part: dict[str, Any] = {"text": last[:LONGEST] if has_shell else json.dumps({"next_speaker": "user"})}
    if has_shell and "functionResponse" not in last:
        call = {"command": command, "description": "a test"}
        part = {"functionCall": {"id": "1", "name": "run_shell_command", "args": call}}
    said = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    yield {"candidates": [said], "usageMetadata": usage, "modelVersion": "stub"}


ANSWERS = {
    "/v1/messages": answer_claude,
    "/v1/responses": answer_codex,
    ":streamGenerateContent": answer_gemini,
}


class Model(BaseHTTPRequestHandler):
    wanted = ""  # the command that it calls

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.answer(json.dumps({"data": [], "models": []}).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.split("?")[0]
        found = next((make for end, make in ANSWERS.items() if path.endswith(end)), None)
        if found is None:
            self.answer(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
            return
        events = [
            (f"event: {one['type']}\n" if "type" in one else "", json.dumps(one)) for one in found(body, self.wanted)
        ]
        self.answer("".join(f"{name}data: {data}\n\n" for name, data in events).encode(), "text/event-stream")

    def answer(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def end_after_result(program: "subprocess.Popen[bytes]") -> None:
    has_result.wait()
    try:
        program.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        program.terminate()


def main(command: str, program: list[str]) -> int:
    Model.wanted = command
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        environ = os.environ | {"ANTHROPIC_BASE_URL": address, "GOOGLE_GEMINI_BASE_URL": address}
        words = [word.replace("{model}", address) for word in program]
        with subprocess.Popen(words, env=environ) as started:
            if sys.stdin.isatty():
                threading.Thread(target=end_after_result, args=(started,), daemon=True).start()
            code = started.wait()
        server.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:]))
