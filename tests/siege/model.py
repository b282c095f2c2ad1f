"""A model on loopback that answers with the numbers that people said, and wants a tool for some of them.

People say `n000123`, and are told `heard n000123`. What has a 7 at its end is written down by the shell first; a guard
is to deny what ends with 77. The model notes what a tool gave it, so that it is known what must be told of that tool.
"""

import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from tests.siege.cut_calls import CutCalls

NUMBER = re.compile(r"\bn\d{6}\b")
NOTED = "noted"  # a folder beside the home of the gateway that ran the tool: what is in an agent's comes to all of them
WRITTEN = "written"
RUNNING = "running-"  # begins a file beside it, that is there while the tool runs
SLOWEST = 0.4
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def wants_tool(number: str) -> bool:
    return number.endswith("7")


def is_forbidden(number: str) -> bool:
    return number.endswith("77")


class Model:
    """Answers each request by its text; `tools` has the numbers whose tool gave a result.

    `cut`: requests whose gateway was gone before the answer. `tool_lasts`: the seconds that the tool takes.
    """

    def __init__(self, tool_lasts: float = 0.0) -> None:
        self._chance = random.Random(1)
        self._tool_lasts = tool_lasts
        self.tools: set[str] = set()
        self.cut = CutCalls()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        said, results = unanswered(messages)
        self.tools |= {number for number in said if number in results}
        asked = asked_for(messages)
        wanted = [number for number in said if wants_tool(number) and number not in asked]
        await self.cut.last(request, self._chance.uniform(0.02, SLOWEST))
        events = [self._call(wanted[0])] if wanted else [{"content": piece} for piece in pieces(said)]
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        with suppress(ConnectionError):  # who asked may be dead by now
            await answer.prepare(request)
            for event in events:
                await answer.write(chunk(event))
            await answer.write(chunk({}, "tool_calls" if wanted else "stop", USAGE) + b"data: [DONE]\n\n")
        return answer

    def _call(self, number: str) -> dict[str, Any]:
        function = {"name": "shell", "arguments": json.dumps({"command": write_down(number, self._tool_lasts)})}
        return {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}


def write_down(number: str, seconds: float) -> str:
    """The command that does it, and takes so long."""
    running = f"{RUNNING}{number}"
    run = f"touch {running}; echo {number} >> {WRITTEN}; sleep {seconds}; rm {running}"
    return f"cd ../../../{NOTED}; {run}; echo {number}"


def pieces(said: list[str]) -> list[str]:
    return ["heard", *(f" {number}" for number in said)] if said else ["heard nothing"]


def chunk(delta: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(data | ({"usage": usage} if usage else {})).encode() + b"\n\n"


def unanswered(messages: list[dict[str, Any]]) -> tuple[list[str], str]:
    """The numbers that people have said since the model last answered them, and what tools gave it since."""
    said, results = list[str](), ""
    for message in reversed(messages):
        if message["role"] == "assistant" and not message.get("tool_calls"):
            break
        if message["role"] == "user":
            said += reversed(NUMBER.findall(json.dumps(message["content"])))
        if message["role"] == "tool":
            results += json.dumps(message["content"])
    return list(dict.fromkeys(reversed(said))), results


def asked_for(messages: list[dict[str, Any]]) -> set[str]:
    """The numbers for which the tool was called already."""
    calls = [message["tool_calls"] for message in messages if message.get("tool_calls")]
    return set(NUMBER.findall(json.dumps(calls)))
