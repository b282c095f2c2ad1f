"""The HTTP connection to a remote hook: one POST a call, over kept connections.

A URL in a manifest of this host, by the operator, may lead anywhere. Any other URL may lead to public addresses only:
its host name is resolved once, and the connection goes to that very address. Redirects are never followed.
"""

import functools
import socket
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.errors import HookError
from gateway.hooks.wires.wire import MAX_ANSWER_BYTES, HookFailed
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread
from gateway.yaml_source.addresses import is_public
from gateway.yaml_source.tree import to_printable

# Imported at the first use: the import costs about 100 ms and 12 MB, which most homes never need.
HTTP_LIBRARY = "aiohttp"
MAX_CONNECTIONS = 32


@functools.cache
def _load_aiohttp() -> ModuleType:
    return load_modules(HTTP_LIBRARY)[0]


class PublicResolver(msgspec.Struct, eq=False):
    """A resolver that returns public addresses only.

    The connection goes to these addresses, so no second look-up can change them.
    """

    _resolve: Callable[..., Any]

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[dict[str, Any]]:
        """Resolve a name; raises OSError if no address may be used."""
        infos = await self._resolve(host, port, family=family, type=socket.SOCK_STREAM)
        found = [(kind, address) for kind, _, _, _, address in infos if is_public(str(address[0]))]
        if not found:
            raise OSError(None, f"{host} is not on the public internet")
        flags = socket.AI_NUMERICHOST
        return [
            {"hostname": host, "host": address[0], "port": port, "family": kind, "proto": 0, "flags": flags}
            for kind, address in found
        ]

    async def close(self) -> None:
        """Do nothing: no resource is open."""


class HttpTransport(msgspec.Struct, eq=False):
    """A transport that posts to one URL. `who` starts the text of each failure."""

    _who: str
    _url: str
    _session: Any

    @classmethod
    async def open(cls, name: str, url: str, resolve: Callable[..., Any] | None) -> "HttpTransport":
        """Prepare the transport; no request is sent yet. Without `resolve` the URL may lead anywhere.

        Raises:
            HookError: the URL leads to a forbidden address.
        """
        host = urlsplit(url).hostname or ""
        is_ip_address = ":" in host or host.replace(".", "").isdigit()
        if resolve and is_ip_address and not is_public(host):
            raise HookError(f"{name}: the url leads to {host}, which is not on the public internet")
        http = await run_in_thread(_load_aiohttp)
        resolver = PublicResolver(resolve) if resolve else None
        session = http.ClientSession(
            connector=http.TCPConnector(limit=MAX_CONNECTIONS, resolver=resolver, use_dns_cache=resolve is None),
            cookie_jar=http.DummyCookieJar(),
            auto_decompress=False,
            timeout=http.ClientTimeout(total=None, sock_connect=10),
            headers={"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"},
        )
        return cls(f"{name} at {url}", url, session)

    async def exchange(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Send a request and return the body of a good answer.

        Raises:
            HookFailed: the answer is not good, or missing.
            TimeoutError: connecting took too long.
        """
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                return await self._body(response)
        except TimeoutError:
            raise
        except (OSError, _load_aiohttp().ClientError) as error:
            raise self._failed(f"{type(error).__name__}: {str(error)[:300]}", "died") from None

    async def close(self) -> None:
        await self._session.close()

    async def _body(self, response: Any) -> bytes:
        if 300 <= response.status < 400:
            to = to_printable(str(response.headers.get("Location", "another place")), 300)
            raise self._failed(f"HTTP {response.status}: it sends us on to {to}; write that as the url", "died")
        if response.status >= 400:
            raise self._failed(f"HTTP {response.status} {(response.reason or '')[:100]}".rstrip(), "died")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise self._failed("a compressed answer, which was not asked for", "garbled")
        data = bytearray()
        async for part in response.content.iter_any():
            data += part
            if len(data) > MAX_ANSWER_BYTES:
                raise self._failed(f"an answer of more than {MAX_ANSWER_BYTES >> 20} MB", "garbled")
        return bytes(data)

    def _failed(self, what: str, kind: Any) -> HookFailed:
        return HookFailed(f"{self._who}: {what}", kind=kind)
