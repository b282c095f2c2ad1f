"""A person at the page's chat, as a browser without a screen: POSTs for their actions, the stream for their view."""

import itertools
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.web.visits import Visit, connect, read_answer, say

NUMBERS = itertools.count(1)


class Heard(NamedTuple):
    """An event of a stream."""

    number: int
    kind: str
    data: Any


class ChatVisitor:
    """`token` is that of a login, or the name that a proxy says of them in `headers`."""

    def __init__(self, url: str, token: str, **headers: str) -> None:
        self.url = url
        self.token = token
        self.headers = headers

    def post(self, path: str, body: bytes, kind: str = "application/json", **headers: str) -> Visit:
        return read_answer(say(self.url, self.make_post(path, len(body), kind, **headers) + body))

    def make_post(self, path: str, length: int, kind: str = "application/octet-stream", **headers: str) -> bytes:
        """All that stands before the body."""
        named = {
            "Host": urlsplit(self.url).netloc,
            "Content-Length": str(length),
            "Content-Type": kind,
            "X-Token": self.token,
            **self.headers,
            **headers,
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def write(self, text: str, **about: Any) -> str:
        """The id of the message, once it is taken."""
        said = {"id": f"message-{next(NUMBERS):06}", "text": text, **about}
        answer = self.post("/chat/say", json.dumps(said, ensure_ascii=False).encode())
        assert answer.status == 200, answer
        return str(said["id"])

    def get(self, path: str, **headers: str) -> Visit:
        return read_answer(say(self.url, self._make_get(path, headers)))

    def ask(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    @contextmanager
    def watching(self, seen: int = 0, thread: str = "") -> Iterator[Iterator[Heard]]:
        """What the stream tells, as long as one is inside."""
        with connect(self.url) as line:
            line.sendall(self._make_get(f"/chat/live?{urlencode({'seen': seen, 'thread': thread})}", {}))
            yield read_events(line)

    def hear(self, wanted: Callable[[Heard], bool], seen: int = 0, thread: str = "") -> list[Heard]:
        """All up to and with what is wanted."""
        found = []
        with self.watching(seen, thread) as events:
            for one in events:
                found.append(one)
                if wanted(one):
                    return found
        raise AssertionError(found)

    def see(self, text: str, thread: str = "") -> list[Heard]:
        """What is said, until an answer has this text in it."""
        heard = self.hear(lambda one: is_answer(one) and text in one.data["text"], thread=thread)
        return [one for one in heard if one.kind == "shown"]

    def _make_get(self, path: str, headers: Mapping[str, str]) -> bytes:
        named = {"Host": urlsplit(self.url).netloc, "X-Token": self.token, **self.headers, **headers}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"


def is_answer(one: Heard) -> bool:
    return one.kind == "shown" and one.data["by"] == "agent"


def read_events(line: socket.socket) -> Iterator[Heard]:
    """Until the other end closes."""
    buffer = b""
    with suppress(ConnectionError):
        while part := line.recv(65536):
            buffer += part
            *whole, buffer = buffer.split(b"\n\n")
            for block in whole:
                fields = dict(row.split(": ", 1) for row in block.decode().splitlines() if ": " in row)
                if "event" in fields:
                    yield Heard(int(fields.get("id", "0")), fields["event"], json.loads(fields["data"]))
