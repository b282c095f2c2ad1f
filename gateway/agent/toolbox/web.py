"""Fetch a page of the public web, and nothing of this machine or its network.

The name is resolved once, each of its addresses is looked at, and the connection goes to exactly these: a name that
means something else a moment later leads nowhere new. Redirects are followed by hand, each judged like the first.
"""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeAlias

import anyio
import msgspec
from msgspec import Meta

from gateway.agent.libraries import load_library
from gateway.agent.tools import Tool, tool_from
from gateway.errors import AgentError
from gateway.threads import run_in_thread
from gateway.yaml_source.addresses import is_public

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_REDIRECTS = 5
REDIRECT_CODES = frozenset({301, 302, 303, 307, 308})
LONGEST_URL = 2000
TEXT_TYPES = (
    *("text/", "application/json", "application/xml"),
    *("application/xhtml", "application/rss", "application/atom"),
)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[4][0]) for address in found]


class PageParser(Protocol):
    """A parser that extracts a page's text in another process."""

    async def read_page(self, body: bytes, kind: str, charset: str, limit: int) -> str:
        """Return at most so many characters of the text. Raises AgentError if it cannot be read."""


class WebOptions(msgspec.Struct, frozen=True):
    """Settings of the web tool. `hosts` (`name` or `name:port`) may be reached although they are on this network."""

    hosts: frozenset[str]
    output_limit: int
    parser: PageParser
    timeout: float = 30.0
    largest: int = 2_000_000
    resolve: Resolve = resolve


def make_web_tool(web: WebOptions) -> Tool:
    """Make the tool `web_fetch`."""

    async def web_fetch(url: Annotated[str, Meta(max_length=LONGEST_URL)]) -> str:
        """Fetch a page of the web and get its text."""
        return await fetch_page(web, url)

    return replace(tool_from(web_fetch, repeatable=True), suspect=True, changes="nothing")


async def fetch_page(web: WebOptions, url: str) -> str:
    """Return the text of a page. Raises AgentError if it cannot be fetched."""
    aiohttp, yarl = await run_in_thread(load_library, "web")
    try:
        with anyio.fail_after(web.timeout):
            page = yarl.URL(url)
            for _ in range(MAX_REDIRECTS + 1):
                text, location = await _get(web, aiohttp, page, await resolve_allowed(web, page))
                if not location:
                    return text
                page = page.join(yarl.URL(location))
    except TimeoutError:
        raise AgentError(f"{_shorten_url(url)} took longer than {web.timeout:g} seconds") from None
    except ValueError as error:
        raise AgentError(f"{_shorten_url(url)} is not a URL: {error}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise AgentError(f"{_shorten_url(url)} could not be fetched: {error}") from None
    raise AgentError(f"{_shorten_url(url)} leads from page to page, more than {MAX_REDIRECTS} times")


async def resolve_allowed(web: WebOptions, url: Any) -> Sequence[str]:
    """Return the addresses of a parsed URL, all of which may be reached. Raises AgentError for any other.

    The same object goes to the client afterwards: two parsers could read two hosts in one text.
    """
    host, port = url.host or "", url.port
    if url.scheme not in ("http", "https") or not host or port is None:
        raise AgentError(f"{_shorten_url(url)}: only http:// and https:// pages can be fetched")
    if url.user is not None or url.password is not None:
        raise AgentError("a URL with a name or password in it is not fetched")
    try:
        addresses = await web.resolve(host, port)
    except (OSError, UnicodeError):
        raise AgentError(f"host {host} not found") from None
    if {host, f"{host}:{port}"} & web.hosts:
        return addresses
    if not addresses or not all(is_public(address) for address in addresses):
        raise AgentError(f"{host} is on this machine or its network, which the agent may not reach")
    return addresses


async def _get(web: WebOptions, aiohttp: Any, url: Any, addresses: Sequence[str]) -> tuple[str, str]:
    """Make one request, to these addresses and no other. Returns the text, or the address of a redirect."""
    connector = aiohttp.TCPConnector(resolver=_FixedResolver(addresses), use_dns_cache=False, limit=1)
    headers = {"User-Agent": "hermes-gateway", "Accept": "text/html, text/*, application/json;q=0.9, */*;q=0.1"}
    # trust_env stays off: a proxy from the environment would resolve the name again.
    async with (
        aiohttp.ClientSession(connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        if response.status in REDIRECT_CODES and (location := response.headers.get("location")):
            return "", location
        kind = response.content_type
        if not kind.startswith(TEXT_TYPES) and not kind.endswith(("+json", "+xml")):
            raise AgentError(f"{_shorten_url(url)} is {kind}, which is not text")
        body = await read_body(response, web.largest)
        text = await web.parser.read_page(body, kind, response.charset or "", web.output_limit + 1)
        if response.status >= 400:
            raise AgentError(f"{_shorten_url(url)} answered {response.status}: {text[:500]}")
        cut = f"\n[cut after {web.output_limit} characters]" if len(text) > web.output_limit else ""
        return text[: web.output_limit] + cut, ""


async def read_body(response: Any, largest: int) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_chunked(65_536):
        body += piece
        if len(body) > largest:
            break
    return bytes(body[:largest])


class _FixedResolver(msgspec.Struct, eq=False):
    """A resolver that always returns these addresses."""

    _addresses: Sequence[str]

    async def resolve(self, name: str, port: int = 0, family: int = socket.AF_INET) -> list[dict[str, Any]]:
        return [
            {"hostname": name, "host": one, "port": port, "family": _family(one), "proto": 0, "flags": 0}
            for one in self._addresses
            if family in (0, _family(one))
        ]

    async def close(self) -> None: ...


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _shorten_url(address: Any) -> str:
    url = str(address)
    return url if len(url) <= 200 else f"{url[:200]}..."
