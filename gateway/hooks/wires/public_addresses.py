"""Which network addresses a program may be sent to on the word of a stranger: the public ones, and no others.

Judged is the number, never the spelling. An IPv6 address that carries an IPv4 address (mapped, translated, tunnelled)
is judged by the one inside, since that is where the packet ends.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# Not all of these are private in the eyes of every Python version.
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether this IP address lies on the open internet; what is no IP address does not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and (inside := _embedded_ipv4_of(found)):
        found = inside
    return found.is_global and not any(found in network for network in _NOT_PUBLIC if network.version == found.version)


def _embedded_ipv4_of(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
