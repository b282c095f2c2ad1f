"""The connections to the endpoint of a model, by httpcore, and the decisions that this library leaves to its users.

- The proxy is the one that the environment names.
- The client trusts the certificates of this machine; SSL_CERT_FILE and SSL_CERT_DIR replace them.
- The client follows a redirect on the same host alone, and only if it keeps the request: the key goes along.
- The client asks for answers without compression, and refuses the others.
- The client replaces a connection that the server has closed before it sends anything. It sends nothing twice:
  `gateway.agent.models.fallback` decides that.
"""

import os
import re
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

import anyio
import certifi
import httpcore
import msgspec

from gateway import __version__
from gateway.agent.libraries import describe_install, is_installed
from gateway.agent.models.refusal import LONGEST_REASON, RefusedRequest
from gateway.config.environment import find_proxy
from gateway.errors import ConfigError, ModelError, describe_cause

MOST_CONNECTIONS, MOST_RESTING = 1000, 100
LONGEST_REST = 50.0  # seconds; many servers and balancers close what rests for a minute
REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEEPS_REQUEST = frozenset({307, 308})
MOST_REDIRECTS = 5
LONGEST_REFUSAL = 64_000  # bytes
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
CERTIFICATE_NAME = re.compile(r"[0-9a-f]{8}\.\d+")  # as OpenSSL looks for them in a folder


class EndpointResponse(msgspec.Struct, frozen=True):
    """An answer that has begun; the names of its headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: httpcore.Response

    @property
    def encoding(self) -> str:
        found = self.headers.get("content-encoding", "").lower()
        return "" if found == "identity" else found

    async def read_pieces(self) -> AsyncIterator[bytes]:
        with as_model_errors():
            async for piece in self.body.aiter_stream():
                yield piece

    async def aclose(self) -> None:
        await self.body.aclose()


class EndpointClient:
    """The connections to one endpoint. `stall`: how long nothing may come; `connect`: how long connecting may take."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], stall: float, connect: float, environ: Mapping[str, str]
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._environ = environ
        self._timeout = {"connect": connect, "read": stall, "write": stall, "pool": stall}
        own = {"user-agent": f"hermes-gateway/{__version__}", "accept-encoding": "identity"}
        self._headers = own | {name.lower(): value for name, value in headers.items()} | read_login(urlsplit(base_url))
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}
        self._find_pool(urlsplit(base_url))

    async def post(self, path: str, body: bytes) -> EndpointResponse:
        """Send a POST request. Raises ModelError, or RefusedRequest."""
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        return await self._follow("POST", f"{self._base_url}{path}", headers, body)

    async def get(self, url: str) -> EndpointResponse:
        """Send a GET request. Raises ModelError, or RefusedRequest."""
        return await self._follow("GET", url, {}, b"")

    async def resolve(self) -> None:
        """Have the system look up the next machine on the way, so that it knows the address. Raises OSError."""
        url = urlsplit(self._base_url)
        next_one = urlsplit(find_proxy(url, self._environ) or self._base_url)
        await anyio.getaddrinfo(next_one.hostname or "", next_one.port or next_one.scheme)

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def _follow(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> EndpointResponse:
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._send(method, urlsplit(url), {**self._headers, **headers}, body)
            if response.status < 300 and not response.encoding:
                return response
            text = await read_refusal(response)
            if response.status < 300:
                raise ModelError(f"the model's endpoint answers in {response.encoding}, unasked", kind="response")
            target = urljoin(url, response.headers.get("location", "")) if response.status in REDIRECTS else ""
            if response.status not in KEEPS_REQUEST or not is_same_host(urlsplit(url), urlsplit(target)):
                raise RefusedRequest(response.status, response.headers, text, target)
            url = target
        raise ModelError(f"the model's endpoint redirects without end, last to {url}"[:LONGEST_REASON], kind="missing")

    async def _send(self, method: str, url: SplitResult, headers: Mapping[str, str], body: bytes) -> EndpointResponse:
        place = encode_host(url.netloc.rpartition("@")[2])
        length = {"content-length": str(len(body))} if body else {}
        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=url.scheme,
                host=encode_host(url.hostname or ""),
                port=url.port,
                target=quote(f"{url.path or '/'}{f'?{url.query}' if url.query else ''}", safe="/?%:@!$&'()*+,;=~"),
            ),
            headers=[(b"host", place), *((n.encode(), v.encode()) for n, v in {**headers, **length}.items())],
            content=body,
            extensions={"timeout": self._timeout},
        )
        with as_model_errors():
            made = await self._find_pool(url).handle_async_request(request)
        found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in made.headers}
        return EndpointResponse(made.status, found, made)

    def _find_pool(self, url: SplitResult) -> httpcore.AsyncConnectionPool:
        """Return the pool for a URL. Raises ConfigError if the environment's certificates or proxy cannot be used."""
        if url.scheme not in self._pools:
            self._pools[url.scheme] = httpcore.AsyncConnectionPool(
                ssl_context=self._make_context() if url.scheme == "https" else None,
                proxy=self._make_proxy(find_proxy(url, self._environ)),
                max_connections=MOST_CONNECTIONS,
                max_keepalive_connections=MOST_RESTING,
                keepalive_expiry=LONGEST_REST,
                network_backend=httpcore.AnyIOBackend(),
            )
        return self._pools[url.scheme]

    def _make_proxy(self, address: str) -> httpcore.Proxy | None:
        if not address:
            return None
        url = urlsplit(address)
        named = f"the proxy in the environment is {url.scheme}://..."
        if url.scheme not in PROXY_SCHEMES:
            raise ConfigError(f"{named}; name one of http, https or socks5")
        if url.scheme.startswith("socks") and not is_installed("socks"):
            raise ConfigError(f"{named}: {describe_install('socks')}")
        login = (unquote(url.username).encode(), unquote(url.password or "").encode()) if url.username else None
        context = self._make_context() if url.scheme == "https" else None
        return httpcore.Proxy(f"{url.scheme}://{url.netloc.rpartition('@')[2]}", login, ssl_context=context)

    def _make_context(self) -> ssl.SSLContext:
        return make_tls_context(self._environ.get("SSL_CERT_FILE", ""), self._environ.get("SSL_CERT_DIR", ""))


@lru_cache(4)
def make_tls_context(file: str, folder: str) -> ssl.SSLContext:
    """Make a context that trusts these certificates, else those of this machine, else certifi's list."""
    try:
        context = ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:
        named = f"SSL_CERT_FILE={file}" if file else f"SSL_CERT_DIR={folder}"
        raise ConfigError(f"{named} in the environment: {error.strerror}; correct the path") from None
    if not (file or folder or has_certificates(ssl.get_default_verify_paths())):
        context.load_verify_locations(certifi.where())
    return context


def has_certificates(paths: ssl.DefaultVerifyPaths) -> bool:
    """Return True if this build of Python finds certificates at its default places; some builds use other ones."""
    return bool(paths.cafile or (paths.capath and any(map(CERTIFICATE_NAME.fullmatch, os.listdir(paths.capath)))))  # noqa: PTH208 - names alone


def read_login(url: SplitResult) -> dict[str, str]:
    """Read `name:password@` from the address: it takes the place of the key."""
    if url.username is None:
        return {}
    login = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {"authorization": f"Basic {b64encode(login.encode()).decode()}"}


def encode_host(host: str) -> bytes:
    """Encode it as the domain name system has it; the codec for other signs is large."""
    return host.encode() if host.isascii() else host.encode("idna")


def is_same_host(url: SplitResult, target: SplitResult) -> bool:
    """Return True if a key for the first may go to the second: never to another host, and never out of TLS."""
    place, other = ((one.scheme, one.port or one.scheme) for one in (url, target))
    return url.hostname == target.hostname and (target.scheme == "https" or place == other)


async def read_refusal(response: EndpointResponse) -> str:
    """Read the beginning of its text, which is empty if it is encoded; and close the response."""
    body = b""
    try:
        async for piece in response.read_pieces():
            body += piece
            if len(body) > LONGEST_REFUSAL:
                break
    except ModelError:
        pass  # the status is known, and counts
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()
    return "" if response.encoding else body[:LONGEST_REFUSAL].decode("utf-8", "replace").strip()


@contextmanager
def as_model_errors() -> Generator[None]:
    """Turn errors of the connection into a ModelError."""
    try:
        yield
    except httpcore.LocalProtocolError:  # it has the header in it, and so perhaps the key
        raise ModelError("the request cannot be sent: see the key and the address", kind="request") from None
    except httpcore.TimeoutException as error:
        raise ModelError("the model's endpoint took too long to answer", kind="timeout") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        why = f"the model's endpoint could not be reached: {describe_cause(error)}"
        raise ModelError(why[:LONGEST_REASON], kind="network") from error
