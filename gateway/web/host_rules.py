"""The rules for hosts and origins: foreign host names and other sites' pages are refused before anything else.

A page elsewhere can send a browser to this port, also under a name of its own that leads here (DNS rebinding). So the
`Host` must be one of ours, and a page that names its origin must come from here. The whole host counts and not its
beginning: an address of this machine as a number, or `localhost` as a whole word.
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


ENTRANCE = "/enter/"  # followed by the bot that the person comes from


class HostRules(msgspec.Struct, frozen=True):
    """The rules. `is_open`: other machines can reach the port, so figures and reasons require a key.

    The port believes the headers of `proxies`.
    """

    names: frozenset[str]
    proxies: tuple[IPv4Network | IPv6Network, ...]
    is_open: bool
    wants_proxy: bool  # a direct request from another machine is not encrypted
    origin: str  # the page's own origin, if a proxy forwards another host name; "": the host of the request

    def check(self, headers: Mapping[str, str], peer: str, *, is_link: bool = False) -> None:
        """Check that a request is meant for us; a link may be followed from any site, which cannot read the answer.

        Raises:
            WebRefusal: the request is not meant for us.
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
        """Return the caller's address in one spelling; a header counts only if a listed proxy wrote the address."""
        said = [part.strip() for part in headers.get("x-forwarded-for", "").split(",") if part.strip()]
        while said and self.is_proxy(peer) and (before := find_address(said.pop())):
            peer = before
        return plain_address_of(peer)

    def is_proxy(self, peer: str) -> bool:
        """Return True for the address of a listed proxy. Loopback counts only if it is in the list."""
        address = parse_address(peer)
        return address is not None and any(address in network for network in self.proxies)

    def _is_ours(self, host: str) -> bool:
        name = cut_port(host).lower()
        return name in self.names or is_own_address(name.strip("[]"))


def build_host_rules(web: WebSettings) -> HostRules:
    """Build the rules. Our names are loopback, the address of `web.listen`, `web.url` and `web.hosts`."""
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
    """Return the origin as a browser writes it: without the default port; "" without an address."""
    usual = {"https": ":443", "http": ":80"}.get(url.scheme, "")
    place = url.netloc.rpartition("@")[2].removesuffix(usual)
    return f"{url.scheme}://{place}" if place else ""


def find_address(written: str) -> str:
    """Return the address in `1.2.3.4`, `1.2.3.4:5678`, `::1` or `[::1]:5678`; "" for anything else."""
    hosts = (written, cut_port(written).strip("[]"))
    return next((host for host in hosts if parse_address(host)), "")


def is_own_address(host: str) -> bool:
    """Return True for this machine itself, written as a number."""
    address = parse_address(host)
    return address is not None and address.is_loopback


def cut_port(host: str) -> str:
    """Return the host without its port:

    `[::1]:8730` -> `[::1]`. A host with a wrong port stays whole, and matches none.
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdecimal() and not host.endswith("]") else host


def is_link(path: str) -> bool:
    """Return True for the path of a link that people follow from another site."""
    return path == "/open" or path.startswith(ENTRANCE)
