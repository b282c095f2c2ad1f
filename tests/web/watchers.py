"""Many pages at a time, as far as the gateway sees of them; a program of its own, so that what they cost is not its.

`python -m tests.web.watchers SOCKET PAGES SECONDS TALKERS`: each page hears all events, and asks for what the overview
shows two seconds after something has happened, as the page in a browser does. Beside, people talk. It says when all
pages are there, and in the end what became of it, as JSON.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from gateway.control.client import ControlClient
from tests.web.logged_in import read_login, redeem

PAUSE = 2.0  # between two looks of a page, as in main.js
TALK_PAUSE = 0.2  # between an answer and the next words
LAST = "it is over"
SHOWN = ("status", "hooks.list")
PATIENCE = 60.0


@dataclass
class Told:
    """What came of it: of how many events each page heard how many, and how long answers took."""

    events: int = 0
    missed: int = 0
    gaps: int = 0
    lines: int = 0  # that broke
    unfinished: int = 0  # pages that did not hear the last event
    refused: int = 0  # answers to a page that were none
    turns: int = 0
    looks: list[float] = field(default_factory=list)


class Watcher:
    """One page."""

    def __init__(self, url: str, token: str, told: Told) -> None:
        at = urlsplit(url)
        self._host, self._port, self._token, self._told = at.hostname, at.port, token, told
        self.is_watching = asyncio.Event()
        self._news = asyncio.Event()
        self._seen = 0

    async def watch(self) -> None:
        """Until the last event."""
        looking = asyncio.create_task(self._look_again())
        try:
            await self._hear()
        finally:
            looking.cancel()

    async def _hear(self) -> None:
        reader, writer = await self._ask("/live")
        try:
            async for line in reader:
                if line.startswith(b"id: "):
                    number = int(line.rpartition(b"-")[2])
                    self._told.missed += number - self._seen - 1 if self._seen else 0
                    self._seen = number
                    self._told.events += 1
                elif line.startswith(b"event: hello"):
                    self.is_watching.set()
                elif line.startswith(b"event: gap"):
                    self._told.gaps += 1
                elif line.startswith(b"data: "):
                    self._news.set()
                    if LAST.encode() in line:
                        return
            self._told.lines += 1
        finally:
            writer.close()

    async def _look_again(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(PAUSE * random.uniform(0.75, 1.25))
            self._news.clear()
            for verb in SHOWN:
                begun = time.monotonic()
                reader, writer = await self._ask(f"/api/{verb}")
                answer = await reader.read()
                self._told.refused += not answer.startswith(b"HTTP/1.1 200")
                self._told.looks.append(time.monotonic() - begun)
                writer.close()

    async def _ask(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        head = f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nX-Token: {self._token}\r\n\r\n"
        writer.write(head.encode())
        return reader, writer


def log_in(socket: Path) -> tuple[str, str]:
    """The page's address, and the login of somebody who was let in."""
    with ControlClient(socket) as client:
        link = client.call("web.open")["url"]
    return link.partition("/open")[0], read_login(redeem(link))


def talk(socket: Path, session: str, until: float, told: Told) -> None:
    with ControlClient(socket) as client:
        while time.monotonic() < until:
            client.call("chat.say", {"text": f"word {told.turns}", "session": session})
            told.turns += 1
            time.sleep(TALK_PAUSE)


async def watch_all(socket: Path, pages: int, seconds: float, talkers: int) -> Told:
    told = Told()
    url, token = log_in(socket)
    watchers = [Watcher(url, token, told) for _ in range(pages)]
    tasks = [asyncio.create_task(one.watch()) for one in watchers]
    for one in watchers:
        await one.is_watching.wait()
    sys.stdout.write("all watch\n")
    sys.stdout.flush()
    until = time.monotonic() + seconds
    await asyncio.gather(*(asyncio.to_thread(talk, socket, f"s{n}", until, told) for n in range(talkers)))
    with ControlClient(socket) as client:
        await asyncio.to_thread(partial(client.call, "chat.say", {"text": LAST, "session": "last"}))
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=PATIENCE)
        told.unfinished = len(late)
        for task in late:
            task.cancel()
    return told


if __name__ == "__main__":
    _, place, count, length, people = sys.argv
    found = asyncio.run(watch_all(Path(place), int(count), float(length), int(people)))
    sys.stdout.write(json.dumps(asdict(found)))
