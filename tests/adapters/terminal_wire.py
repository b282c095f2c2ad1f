"""The terminal as a network: its one person sits behind the control socket and says things again when a line breaks."""

import itertools
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.config.home import Home
from gateway.testing.networks.wire import ANN, Shown

OWNER = "owner"
LONGEST = 1_000_000  # bytes of a line


@dataclass
class TerminalWire:
    """Fills `Wire` as far as a terminal can; the rest is listed in the suite, with the reason."""

    root: Path
    network: str = "terminal"
    settings: str = ""
    limit: int = LONGEST
    shown: list[Shown] = field(default_factory=list)
    _turns: dict[str, Shown] = field(default_factory=dict)
    _said: list[tuple[str, str]] = field(default_factory=list)
    _lines: set[anyio.abc.SocketStream] = field(default_factory=set)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def environ(self) -> dict[str, str]:
        return {}

    def known_as(self, _person: str) -> str:
        return OWNER

    def own(self, person: str) -> str:
        return f"access: {{owners: {{terminal: ['{self.known_as(person)}']}}}}\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def write(self, text: str, **_where: str) -> str:
        number = f"typed{next(self._numbers)}"
        self._said.append((number, text))
        self._tasks.start_soon(self._say, number, text)
        return number

    async def again(self) -> None:
        self._tasks.start_soon(self._say, *self._said[-1])

    def hang_up(self) -> None:
        for line in self._lines:
            line.extra(anyio.abc.SocketAttribute.raw_socket).shutdown(socket.SHUT_RDWR)

    async def _say(self, number: str, text: str) -> None:
        """Send a message under its one id, until it is answered; without a gateway, until one runs."""
        while True:
            with suppress(OSError, anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                async with await anyio.connect_unix(str(Home(self.root).socket)) as line:
                    self._lines.add(line)
                    try:
                        return await self._hear(line, {"text": text, "session": "main", "id": number})
                    finally:
                        self._lines.discard(line)
            await anyio.sleep(0.02)

    async def _hear(self, line: anyio.abc.SocketStream, params: dict[str, str]) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": "chat.say", "params": params}
        await line.send(json.dumps(request).encode() + b"\n")
        told = BufferedByteReceiveStream(line)
        while True:
            message = json.loads(await told.receive_until(b"\n", LONGEST))
            if "method" not in message:
                if "turn_id" in message.get("result", {}):
                    self._show(message["result"]["turn_id"] or params["id"], message["result"]["reply"])
                return
            about = message["params"]
            if message["method"] == "reply":
                self._show(about["turn_id"] or params["id"], about["text"])
            else:
                before = self._turns.get(about["turn_id"])
                self._show(about["turn_id"], f"{before.text if before else ''}{about['text']}")

    def _show(self, turn: str, text: str) -> None:
        """Show a turn's output in one place of the screen."""
        if turn not in self._turns:
            self._turns[turn] = Shown(f"{turn}:reply", ANN, "")
            self.shown.append(self._turns[turn])
        self._turns[turn].text = text
