"""Programs call the agent and try again, while the gateway is killed over and over: each call is one turn."""

import itertools
import json
import socket
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest

from gateway.engine.sqlite.engine import open_sqlite
from gateway.records import records
from gateway.testing import GatewayProcess
from gateway.testing.patience import Patience
from tests.audit import audit, everything
from tests.http_server import QuietHandler, serving

pytestmark = pytest.mark.process

CALLS, KILLS = 120, 5
PATIENCE = 120.0
LIVES = 0.6  # seconds of a process that is ready, at least


class Model(QuietHandler):
    """Never says the same thing twice, so that an answer tells which turn it is of."""

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.2)
        chunk = {"choices": [{"index": 0, "delta": {"content": uuid.uuid4().hex}, "finish_reason": "stop"}]}
        with suppress(ConnectionError):  # who asked was killed
            self.answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")


class Program:
    """Calls until it is answered. Every third one has a session, every second one streams."""

    def __init__(self, url: str, key: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60)
        self.tries = 0

    def call(self, number: int) -> str:
        user = {"user": f"u{number % 4}"} if number % 3 == 0 else {}
        patience = Patience(PATIENCE)
        while True:
            self.tries += 1
            try:
                return self._ask(number, is_stream=number % 2 == 0, **user)
            except openai.APIError:
                assert not patience.is_over(), number
                time.sleep(0.1)

    def _ask(self, number: int, *, is_stream: bool, **more: Any) -> str:
        more |= {"stream": True} if is_stream else {}
        answer = self._client.chat.completions.create(
            model="main",
            messages=[{"role": "user", "content": f"number {number}"}],
            extra_headers={"Idempotency-Key": f"call-{number}"},
            **more,
        )
        if not is_stream:
            return str(answer.choices[0].message.content)
        chunks = list(answer)
        if not any(one.choices and one.choices[0].finish_reason for one in chunks):
            raise openai.APIConnectionError(request=answer.response.request)  # it broke off
        return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


@pytest.mark.timeout(400)
async def test_each_call_is_one_turn_however_often_the_gateway_dies(tmp_path: Path) -> None:
    with serving(Model) as model, GatewayProcess(tmp_path / "home", forks=False) as gateway, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        gateway.environ |= {"GATEWAY_WEB_LISTEN": address, "OPENAI_API_KEY": "x"}
        url = f"http://127.0.0.1:{model.server_port}/v1"
        provider = f"model: {{provider: openai, name: m, base_url: '{url}'}}\n"
        gateway.configure(f"{provider}access: {{rate: 10000}}\nsessions: {{turns_per_person: 16}}\n")
        gateway.start()
        key = json.loads(gateway.cli("keys", "new", "app", "--as", "user", "--agent", "main", "--json").stdout)["key"]
        program = Program(f"http://{address}", key)
        done = threading.Event()
        with ThreadPoolExecutor(9) as pool:
            killing = pool.submit(kill, gateway, done)
            first = list(pool.map(program.call, range(CALLS)))
            done.set()
            kills = killing.result()
        again = [program.call(number) for number in range(CALLS)]
        gateway.stop()
        assert again == first
        assert len(set(first)) == CALLS
        async with await open_sqlite(gateway.home.journal) as engine:
            found = await everything(engine)
            assert (await audit(engine, is_sent=True)).faults == []
        kept = Counter(type(one) for one in itertools.chain(*found.values()) for one in one[1:])
        assert (kept[records.InboundMessage], kept[records.ProgramCall]) == (CALLS, CALLS)
        assert kept[records.TurnEnded] == CALLS
        assert program.tries > 2 * CALLS, "some were answered by another process than the one that they asked"
        assert kills >= KILLS


def kill(gateway: GatewayProcess, done: threading.Event) -> int:
    """Over and over; it is started again at once."""
    kills = 0
    while not done.wait(LIVES) and kills < KILLS:
        gateway.kill()
        gateway.start()
        kills += 1
    return kills
