"""The page's chat as a network: its people are named by a proxy in front of the port; their browsers are played here.

A browser sends what was written until the gateway has it, and goes on with what is shown where its line broke.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio

from gateway.testing.networks.wire import ANN, BEN, Shown, media_type_of
from tests.http_server import find_free_ports

NAMES = {ANN: "ann", BEN: "ben"}
PEOPLE = {name: person for person, name in NAMES.items()}
PAUSE = 0.02


@dataclass
class PageWire:
    """Fills `Wire` as far as a page can; the rest is listed in the suite, with the reason."""

    root: Path
    network: str = "web"
    limit: int = 1_000_000
    shown: list[Shown] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=lambda: dict.fromkeys(PEOPLE, "user"))
    _port: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    _posts: list[tuple[str, str, bytes]] = field(default_factory=list)
    _lines: set[asyncio.StreamWriter] = field(default_factory=set)
    _working: dict[str, int] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def environ(self) -> Mapping[str, str]:
        return {"GATEWAY_WEB_LISTEN": f"127.0.0.1:{self._port}"}

    @property
    def settings(self) -> str:
        web = {"identity": "X-Person", "trusted_proxies": ["127.0.0.1"], "people": self.roles}
        return f"web: {json.dumps(web)}\n"

    def known_as(self, person: str) -> str:
        return NAMES.get(person, "stranger")

    def own(self, person: str) -> str:
        self.roles[self.known_as(person)] = "owner"
        return ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        (self._port,) = find_free_ports(1)
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def write(self, text: str, *, by: str = ANN, **_where: str) -> str:
        return self._say(by, text=text)

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None:
        self._say(by, text=text, edits=message)

    async def delete(self, message: str, *, by: str = ANN) -> None:
        raise AssertionError(f"nobody is told that {by} took {message} back")

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        kept = []
        for name, data in files:
            about = urlencode({"id": self._next("file"), "name": name, "type": media_type_of(name)})
            kept.append(json.loads(await self._send(by, f"/chat/file?{about}", data, "application/octet-stream")))
        return self._say(by, text=caption, files=kept)

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None:
        pressed = {"id": self._next("press"), "reply": message.id, "value": message.buttons[label]}
        self._post(by, "/chat/press", json.dumps(pressed).encode())

    async def again(self) -> None:
        self._post(*self._posts[-1])

    def hang_up(self) -> None:
        for line in list(self._lines):
            line.transport.abort()

    def signs(self, chat: str) -> int:
        return self._working.get(chat, 0)

    def _next(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers):06}"

    def _say(self, by: str, **said: Any) -> str:
        number = self._next("message")
        self._post(by, "/chat/say", json.dumps({"id": number, **said}).encode())
        return number

    def _post(self, by: str, path: str, body: bytes) -> None:
        self._posts.append((by, path, body))
        self._tasks.start_soon(self._send, by, path, body)
        if by not in self._seen:
            self._seen[by] = 0
            self._tasks.start_soon(self._watch, by)

    async def _send(self, by: str, path: str, body: bytes, kind: str = "application/json") -> bytes:
        """Until the gateway has it, or says that it will not."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                token = self.known_as(by)
                headers = {"Content-Type": kind, "Content-Length": str(len(body)), "X-Token": token}
                status, answer = await self._ask(by, "POST", path, headers, body)
                if status < 500:
                    return answer
            await anyio.sleep(PAUSE)

    async def _ask(self, by: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        reader, writer = await self._open(by, method, path, headers)
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return int(head.split()[1]), answer

    async def _open(
        self, by: str, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        named = {"Host": f"127.0.0.1:{self._port}", "X-Person": self.known_as(by), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        return reader, writer

    async def _watch(self, by: str) -> None:
        """As an EventSource does: a line that broke is opened again, behind what was seen."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await self._open(by, "GET", f"/chat/live?seen={self._seen[by]}", {})
                self._lines.add(writer)
                try:
                    await reader.readuntil(b"\r\n\r\n")
                    while True:
                        await self._hear(by, (await reader.readuntil(b"\n\n")).decode())
                finally:
                    self._lines.discard(writer)
                    writer.close()
            await anyio.sleep(PAUSE)

    async def _hear(self, by: str, event: str) -> None:
        fields = dict(row.split(": ", 1) for row in event.splitlines() if ": " in row)
        self._seen[by] = int(fields.get("id", self._seen[by]))
        data = json.loads(fields.get("data", "null"))
        match fields.get("event"):
            case "piece":
                shown = self._place(by, f"{data['turn']}:reply")
                shown.text = shown.text[: data["at"]] + data["text"]
            case "state" if data == "running":
                self._working[by] = self._working.get(by, 0) + 1
            case "shown" if data["by"] == "agent":
                shown = self._place(by, data["id"])
                literals = "\n".join(f"{one['words']}\n{one['text']}" for one in data["literals"])
                shown.text, shown.reply_to = literals or data["text"], data["reply_to"]
                shown.buttons = {one["label"]: one["value"] for one in data["buttons"]}
                found: list[tuple[str, bytes]] = []
                for number, file in enumerate(data["files"]):
                    query = urlencode({"message": data["id"], "number": number})
                    found.append((file["name"], (await self._ask(by, "GET", f"/chat/file?{query}", {}, b""))[1]))
                if found:
                    (shown.file_name, shown.file), *shown.more_files = found

    def _place(self, by: str, number: str) -> Shown:
        for one in self.shown:
            if (one.id, one.chat) == (number, by):
                return one
        self.shown.append(Shown(number, by, ""))
        return self.shown[-1]
