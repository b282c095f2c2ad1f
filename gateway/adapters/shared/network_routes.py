"""The way in for networks that call us, instead of being called: one route each, open while its adapter is at work.

The port knows no network. It reads what was sent within its own bounds, and asks the route whom it believes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol, TypeAlias

import msgspec

from gateway.config.settings import WebSettings

PATH = "/networks/"

Headers: TypeAlias = Mapping[str, str]
"""By their names in small letters."""


class RouteAnswer(msgspec.Struct, frozen=True):
    """What the network is told."""

    status: HTTPStatus = HTTPStatus.OK
    body: str = ""
    content_type: str = "text/plain; charset=utf-8"


class NetworkRoute(Protocol):
    """Filled by an adapter. `content_types` is what its network sends, `largest` how many bytes of it."""

    content_types: tuple[str, ...]
    largest: int

    def why_not_heard(self, headers: Headers) -> str:
        """Why the body need not be read, by the headers alone; empty: it must be."""

    def why_not_believed(self, headers: Headers, body: bytes) -> str:
        """Why this is not the network's; empty: it is."""

    async def take(self, headers: Headers, body: bytes) -> RouteAnswer:
        """What was believed. A status of success says that it is in the journal, or settled."""


def route_of(served_as: str) -> str:
    """Where on the port a network calls this bot: `/networks/telegram`, or `/networks/telegram/work`."""
    return f"{PATH}{served_as.replace(':', '/')}"


def network_url_of(public_url: str, served_as: str) -> str:
    """Where a network calls a port that is reached at this address."""
    return f"{public_url.rstrip('/')}{route_of(served_as)}"


class NetworkRoutes:
    """Those that are open, by the paths of their bots. `public_url` leads to the port, which shows `certificate`."""

    def __init__(self, web: WebSettings) -> None:
        self.public_url = web.url
        self.certificate = web.tls.cert
        self._open: dict[str, NetworkRoute] = {}

    def find(self, path: str) -> NetworkRoute | None:
        return self._open.get(path)

    @contextmanager
    def serving(self, served_as: str, route: NetworkRoute) -> Iterator[None]:
        """Open while inside."""
        path = route_of(served_as)
        self._open[path] = route
        try:
            yield
        finally:
            del self._open[path]
