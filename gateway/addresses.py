"""Which network addresses lie in the public internet: others are closed to strangers' URLs and to an agent's fetches.

The number is judged, never the spelling. An IPv6 address can carry IPv4 addresses (mapped, translated, tunnelled): it
is public when each of these is, and the outer one too.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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
    """Is this an address of the open internet? What is no IP address is not."""
    try:
        outer = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _find_embedded(outer) if isinstance(outer, IPv6Address) else []
    # These two forms are nothing but spellings of the address inside; Python takes them for reserved.
    is_spelling = isinstance(outer, IPv6Address) and (outer.ipv4_mapped is not None or outer in _TRANSLATED)
    return all(_is_open(one) for one in (inner if is_spelling else [outer, *inner]))


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
