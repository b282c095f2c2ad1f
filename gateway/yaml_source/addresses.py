"""The judgement of network addresses: only public ones are open to strangers' URLs and to an agent's fetches.

It also recognizes this machine's own addresses, and reads and writes an address with its port, and a URL.

The number is judged, never the spelling. An IPv6 address can carry IPv4 addresses (mapped, translated, tunnelled): it
is public if each of these is, and the outer one too.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_WITHOUT_SCHEME = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:/[\w.~%/:+-]*)?", re.ASCII)
_NEAR_ENDINGS = ("localhost", "local", "lan", "internal")

_TRANSLATED = ip_network("64:ff9b::/96")
# Not every version of Python knows these for what they are.
_CLOSED_NETWORKS = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
        "64:ff9b:1::/48", "100::/64", "2001::/23", "3fff::/20", "fec0::/10",
    )
)  # fmt: skip


def is_public(address: str) -> bool:
    """Return True for an address of the open internet; any other text gives False."""
    if (outer := _parse(address)) is None:
        return False
    inner = _find_embedded(outer) if isinstance(outer, IPv6Address) else []
    # These two forms are nothing but spellings of the address inside; Python takes them for reserved.
    is_spelling = isinstance(outer, IPv6Address) and (outer.ipv4_mapped is not None or outer in _TRANSLATED)
    return all(_is_open(one) for one in (inner if is_spelling else [outer, *inner]))


def split_address(written: str) -> tuple[IPv4Address | IPv6Address, int]:
    """Split `127.0.0.1:8730` or `[::1]:8730` into address and port.

    Raises:
        ValueError: it is written otherwise; a name is refused, since its address can change.
    """
    host, _, port = written.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    address = ip_address(host[1:-1] if is_bracketed else host)
    if is_bracketed != (address.version == 6) or not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ValueError(f"{written!r} is not an address with a port")
    return address, int(port)


def build_url(written: str) -> str:
    """Complete `localhost:8000/v1` to the URL that is meant: plain http within a network of one's own, else https.

    Empty if it has a scheme already, or lacks more than that.
    """
    found = _WITHOUT_SCHEME.fullmatch(written)
    if found is None:
        return ""
    host = found[1].strip("[]")
    ending = host.rpartition(".")[2]
    is_number = ending.isdecimal() or ":" in host
    is_near = not is_public(host) if is_number else ending == host or ending in _NEAR_ENDINGS
    return f"{'http' if is_near else 'https'}://{written}"


def plain_address_of(peer: str) -> str:
    """Return one spelling for each peer: an IPv4 address within an IPv6 address is shortened.

    Other texts stay as they are.
    """
    return str(parse_address(peer) or peer)


def parse_address(written: str) -> IPv4Address | IPv6Address | None:
    """Return the address, or the IPv4 address within it; None for any other text."""
    address = _parse(written)
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def _parse(written: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(written.partition("%")[0])
    except ValueError:
        return None


def _find_embedded(address: IPv6Address) -> list[IPv4Address]:
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _TRANSLATED or int(address) < 2**32:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def _is_open(address: IPv4Address | IPv6Address) -> bool:
    if address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local:
        return False
    return address.is_global and not any(
        address in network for network in _CLOSED_NETWORKS if network.version == address.version
    )
