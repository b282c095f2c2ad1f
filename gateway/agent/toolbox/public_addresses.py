"""Which addresses lie in the public internet: an agent's fetches go there and nowhere else, unless told otherwise."""

import ipaddress
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
NOT_PUBLIC_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
        "64:ff9b:1::/48", "100::/64", "2001::/23", "fec0::/10",
    )
)  # fmt: skip


def is_public_address(text: str) -> bool:
    """Is this a host of the public internet? Addresses inside of other addresses are looked at too."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public_itself(one) for one in (address, *_embedded_addresses_of(address)))


def _embedded_addresses_of(address: Address) -> tuple[ipaddress.IPv4Address, ...]:
    """IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64 or int(address) < 2**32:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(one for one in found if one is not None)


def _is_public_itself(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address in NAT64):
        return True  # judged by the address inside
    if address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local:
        return False
    return address.is_global and not any(
        address in network for network in NOT_PUBLIC_NETWORKS if network.version == address.version
    )
