"""Who is spoken to here, and from where: foreign host names and other sites' pages are refused before anything else.

A page elsewhere can send a browser to this port, also under a name of its own that leads here (DNS rebinding). So the
`Host` must be one of ours, and a page that says where it comes from must come from here. A host is judged by what it
is and not by how it begins: an address of this machine itself as a number, `localhost` as a whole word.
"""

from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import SplitResult, urlsplit

import msgspec

from gateway.config.settings import WebSettings
from gateway.web.request_body import WebRefusal
from gateway.yaml_source.addresses import parse_address, plain_address_of, split_address

OWN_SITES = ("same-origin", "none")
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - it is what such a host is called, nothing is bound to it


ENTRANCE = "/enter/"  # behind it the bot by which somebody comes


class HostRules(msgspec.Struct, frozen=True):
    """`is_open`: it may be reached from elsewhere, so figures and reasons want a key. `proxies` are believed."""

    names: frozenset[str]
    proxies: tuple[IPv4Network | IPv6Network, ...]
    is_open: bool
    wants_proxy: bool  # what comes straight from elsewhere is not encrypted
    origin: str  # what our own page calls itself, by whatever name a proxy then asks for it; "": as it is asked for

    def check(self, headers: Mapping[str, str], peer: str, *, is_link: bool = False) -> None:
        """Let go on what is meant for us; a link may be followed from anywhere, and shows its answer to nobody else.

        Raises:
            WebRefusal: it is not.
        """
        if self.wants_proxy and not (is_own_address(peer) or self.is_proxy(peer)):
            raise WebRefusal(HTTPStatus.FORBIDDEN, "only what comes through the proxy is answered here")
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise WebRefusal(
                HTTPStatus.MISDIRECTED_REQUEST, "this gateway does not serve this host name: web.hosts has its names"
            )
        origin = headers.get("origin")
        ours = {f"http://{host.lower()}", f"https://{host.lower()}", *filter(None, [self.origin])}
        if origin is not None and origin.lower() not in ours:
            raise WebRefusal(HTTPStatus.FORBIDDEN, "a page from elsewhere is not answered")
        is_followed = is_link and headers.get("sec-fetch-mode") == "navigate" and "origin" not in headers
        if headers.get("sec-fetch-site", "none") not in OWN_SITES and not is_followed:
            raise WebRefusal(HTTPStatus.FORBIDDEN, "a page from elsewhere is not answered")

    def find_peer(self, headers: Mapping[str, str], peer: str) -> str:
        """Who asks, by one spelling; what a header says of it counts only where a listed proxy wrote an address."""
        said = [part.strip() for part in headers.get("x-forwarded-for", "").split(",") if part.strip()]
        while said and self.is_proxy(peer) and (before := find_address(said.pop())):
            peer = before
        return plain_address_of(peer)

    def is_proxy(self, peer: str) -> bool:
        """Is this the address of a proxy that is listed? Loopback is none unless it is in the list."""
        address = parse_address(peer)
        return address is not None and any(address in network for network in self.proxies)

    def _is_ours(self, host: str) -> bool:
        name = cut_port(host).lower()
        return name in self.names or is_own_address(name.strip("[]"))


def build_host_rules(web: WebSettings) -> HostRules:
    """Loopback is always ours; an address that is listened on, `web.url` and `web.hosts` are too."""
    address, _ = split_address(web.listen)
    url = urlsplit(web.url.lower())
    url_host = url.hostname or ""
    listened = str(address) if address.version == 4 else f"[{address}]"
    named = {"localhost", url_host, *web.hosts, *(() if str(address) in ANY_ADDRESS else (listened,))}
    is_elsewhere = not address.is_loopback
    names = frozenset(name.lower() for name in named if name)
    return HostRules(
        names,
        tuple(map(ip_network, web.trusted_proxies)),
        is_open=bool(is_elsewhere or web.url or web.hosts or web.trusted_proxies),
        wants_proxy=is_elsewhere and not web.tls.cert,
        origin=find_origin(url),
    )


def find_origin(url: SplitResult) -> str:
    """As a browser writes it: without the port that goes without saying; "" for no address."""
    usual = {"https": ":443", "http": ":80"}.get(url.scheme, "")
    place = url.netloc.rpartition("@")[2].removesuffix(usual)
    return f"{url.scheme}://{place}" if place else ""


def find_address(written: str) -> str:
    """The address in `1.2.3.4`, `1.2.3.4:5678`, `::1` or `[::1]:5678`; "" where there is none."""
    hosts = (written, cut_port(written).strip("[]"))
    return next((host for host in hosts if parse_address(host)), "")


def is_own_address(host: str) -> bool:
    """This machine itself, written as a number."""
    address = parse_address(host)
    return address is not None and address.is_loopback


def cut_port(host: str) -> str:
    """`[::1]:8730` -> `[::1]`; what has something else than a number behind its colon stays whole, and is nobody."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdecimal() and not host.endswith("]") else host


def is_link(path: str) -> bool:
    """Whether people follow it from elsewhere."""
    return path == "/open" or path.startswith(ENTRANCE)
