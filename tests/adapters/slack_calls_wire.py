"""Slack on loopback as it is to an app that it calls: by HTTP, signed, and again until it is answered with 200."""

import asyncio
import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.adapters.slack_wire import SlackWire
from tests.http_server import find_free_ports

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
KINDS = {"events_api": "application/json"}
FORM = "application/x-www-form-urlencoded"
AGAIN = 0.2  # seconds; the real one waits for longer


@dataclass
class SlackCallsWire(SlackWire):
    """Fills `Wire`. `statuses` has what the calls were answered with."""

    statuses: list[int] = field(default_factory=list)
    secret: str = SECRET
    path: str = "/networks/slack"
    _port: int = 0
    _calling: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.given_tokens[0],
            "SLACK_SIGNING_SECRET": self.secret,
            "SLACK_API_URL": f"{self.url}/api",
            "GATEWAY_PLATFORMS_SLACK_MODE": "http",
            "GATEWAY_WEB_LISTEN": f"127.0.0.1:{self._port}",
            "GATEWAY_WEB_URL": self.called,
        }

    @property
    def called(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        (self._port,) = find_free_ports(1)
        async with super().serving():
            try:
                yield
            finally:
                for task in self._calling:
                    task.cancel()
                await asyncio.gather(*self._calling, return_exceptions=True)

    async def noise(self) -> None:
        await super().noise()
        self.envelope("quantum", {"type": "quantum"})

    def envelope(self, kind: str, payload: dict[str, Any]) -> None:
        number = f"e{next(self._numbers)}"
        self.pending[number] = {"type": kind, "payload": payload}
        task = asyncio.get_running_loop().create_task(self._call(number, kind, payload))
        self._calling.add(task)
        task.add_done_callback(self._calling.discard)

    async def _call(self, number: str, kind: str, payload: dict[str, Any]) -> None:
        """Until it is taken, or is not wanted any more."""
        async with aiohttp.ClientSession() as http:
            while number in self.pending:
                with suppress(aiohttp.ClientError, TimeoutError):
                    status, said = await self.post(http, *body_of(kind, payload))
                    if status == 200:
                        self.pending.pop(number, None)
                        self.answers.append({"payload": said})
                        self.whispers += [said["text"]] if said.get("text") else []
                        return
                await asyncio.sleep(AGAIN)

    async def post(
        self, http: aiohttp.ClientSession, kind: str, body: bytes, *, stamp: int | None = None, secret: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """One call, signed as Slack signs; the answer's status, and what was said to the caller."""
        signed = sign(body, str(int(time.time()) if stamp is None else stamp), secret or self.secret)
        to = f"{self.called}{self.path}"
        async with http.post(to, data=io.BytesIO(body), headers={"Content-Type": kind, **signed}) as answer:
            said = await answer.read()
            self.statuses.append(answer.status)
        with suppress(ValueError):
            found = json.loads(said)
            return answer.status, found if isinstance(found, dict) else {}
        return answer.status, {"text": said.decode()} if said and answer.status == 200 else {}


def sign(body: bytes, stamp: str, secret: str) -> Mapping[str, str]:
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def body_of(kind: str, payload: Mapping[str, Any]) -> tuple[str, bytes]:
    """Events are JSON, commands a form, and what is pressed is JSON in a form."""
    if kind == "slash_commands":
        return FORM, urlencode(payload).encode()
    if kind == "interactive":
        return FORM, urlencode({"payload": json.dumps(payload)}).encode()
    return KINDS.get(kind, "application/json"), json.dumps(payload).encode()
