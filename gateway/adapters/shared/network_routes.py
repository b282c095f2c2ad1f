"""The routes for networks that call us: one for each bot, open while its adapter is at work.

The port knows no network. It reads the request within its own limits, and the route authenticates the sender.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol, TypeAlias

import msgspec

from gateway.config.settings import WebSettings

PATH = "/networks/"

Headers: TypeAlias = Mapping[str, str]
"""by lower-case names"""


class RouteAnswer(msgspec.Struct, frozen=True):
    """The answer to the network."""

    status: HTTPStatus = HTTPStatus.OK
    body: str = ""
    content_type: str = "text/plain; charset=utf-8"


class NetworkRoute(Protocol):
    """The interface of a route, which an adapter fills.

    `content_types` are the accepted types, `largest` the limit in bytes.
    """

    content_types: tuple[str, ...]
    largest: int

    def why_not_heard(self, headers: Headers) -> str:
        """Return why the headers alone refuse a call; "": the body must be read."""

    def why_not_believed(self, headers: Headers, body: bytes) -> str:
        """Return why a call is not the network's; "": it is."""

    async def take(self, headers: Headers, body: bytes) -> RouteAnswer:
        """Take an authenticated call. A status of success says that it is in the journal, or settled."""


def route_of(served_as: str) -> str:
    """Return the path at which a network calls this bot: `/networks/telegram`, or `/networks/telegram/work`."""
    return f"{PATH}{served_as.replace(':', '/')}"


def network_url_of(public_url: str, served_as: str) -> str:
    """Return the URL at which a network calls the port with this public URL."""
    return f"{public_url.rstrip('/')}{route_of(served_as)}"


class NetworkRoutes:
    """The open routes, by the paths of their bots. `public_url` leads to the port, which shows `certificate`."""

    def __init__(self, web: WebSettings) -> None:
        self.public_url = web.url
        self.certificate = web.tls.cert
        self._open: dict[str, NetworkRoute] = {}

    def find(self, path: str) -> NetworkRoute | None:
        return self._open.get(path)

    @contextmanager
    def serving(self, served_as: str, route: NetworkRoute) -> Iterator[None]:
        """Open a route inside the block."""
        path = route_of(served_as)
        self._open[path] = route
        try:
            yield
        finally:
            del self._open[path]
