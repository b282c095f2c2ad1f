"""Count the tokens of the first request of a conversation: a greeting, the instructions and all tools.

`.venv/bin/python -m bench.first_request`. A gateway with default settings sends it to a model on loopback, for the
owner, who has all tools. Four characters of the request count as a token, as they are on average with English and JSON;
the tokenizer of a model may count a fifth more or less.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.options import parse_options
from gateway.testing import GatewayProcess
from tests.http_server import QuietHandler, serving

CHARACTERS = 4  # a token
ANSWER = {"index": 0, "delta": {"role": "assistant", "content": "Good day."}, "finish_reason": "stop"}
STREAM = f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'choices': [ANSWER]})}\n\ndata: [DONE]\n\n"


def fetch_first_request() -> dict[str, Any]:
    """Return the body of the request that the gateway sends for the first message of its owner."""
    received: list[dict[str, Any]] = []

    class Model(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer(STREAM.encode(), "text/event-stream")

    with (
        tempfile.TemporaryDirectory(prefix="first-request-") as place,
        serving(Model) as server,
        GatewayProcess(Path(place)) as gateway,
    ):
        model = {"provider": "openai", "name": "any", "base_url": f"http://127.0.0.1:{server.server_port}/v1"}
        gateway.environ["GATEWAY_MODEL_API_KEY"] = "none"
        gateway.home.config.parent.mkdir(parents=True, exist_ok=True)
        gateway.home.config.write_text(json.dumps({"model": model, "web": {"listen": "127.0.0.1:0"}}))
        gateway.start()
        gateway.say("Hello")
    return received[0]


def count_tokens(part: object) -> int:
    return len(json.dumps(part, ensure_ascii=False, separators=(",", ":"))) // CHARACTERS


def main() -> None:
    parse_options(argparse.ArgumentParser(prog="bench.first_request"))
    request = fetch_first_request()
    tools = request["tools"]
    print(f"{len(tools)} tools        {count_tokens(tools):6,} tokens")
    print(f"whole request   {count_tokens(request):6,} tokens")


if __name__ == "__main__":
    main()
