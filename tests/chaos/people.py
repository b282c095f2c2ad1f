"""The people of besieged gateways: those on the terminal say a thing again until it is answered, by the same id."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

GLANCE = 0.05
PATIENCE = 30.0  # with one that takes the message and says nothing


@dataclass
class Typist:
    """Somebody at the control socket, in a session of their own: one thing after the other.

    Where there are `others`, it is said to the next one when the first does not answer.
    """

    number: int
    socket: Path
    others: tuple[Path, ...] = ()
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)

    @property
    def session(self) -> str:
        return f"typist{self.number}"

    async def talk(self, texts: list[str], pause: float) -> None:
        for at, text in enumerate(texts):
            await self.say(f"{self.session}-{at}", text)
            await anyio.sleep(pause)

    async def say(self, name: str, text: str) -> None:
        while name not in self.answers:
            with anyio.move_on_after(PATIENCE):
                await self._try(name, text)

    async def _try(self, name: str, text: str) -> None:
        sockets = (self.socket, *self.others)
        socket = sockets[(self.number + self.tries[name]) % len(sockets)]
        self.tries[name] += 1
        try:
            async with await anyio.connect_unix(str(socket)) as line:
                said = {"id": 1, "method": "chat.say", "params": {"text": text, "session": self.session, "id": name}}
                await line.send(json.dumps(said).encode() + b"\n")
                await self._hear(name, await _answer(line))
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            await anyio.sleep(GLANCE)

    async def _hear(self, name: str, answer: dict[str, Any]) -> None:
        if "result" in answer:
            self.answers[name] = answer["result"]
            return
        await anyio.sleep(GLANCE)


async def _answer(line: anyio.abc.SocketStream) -> dict[str, Any]:
    """Return the answer among other notifications."""
    data = b""
    while True:
        data += await line.receive()
        *lines, data = data.split(b"\n")
        for one in lines:
            message: dict[str, Any] = json.loads(one)
            if message.get("id") == 1:
                return message
