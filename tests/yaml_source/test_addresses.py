"""Only addresses of the public internet are public, however they are spelt or wrapped."""

import pytest

from gateway.yaml_source.addresses import is_public

INSIDE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::", "2001:db8::1", "not an address",
]  # fmt: skip
OUTSIDE = ["1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.row("T31")
@pytest.mark.parametrize("address", INSIDE)
def test_addresses_of_this_machine_and_its_network_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.row("T31")
@pytest.mark.parametrize("address", OUTSIDE)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.row("T31")
@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("::ffff:93.184.216.34", True),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::", False),
        ("::7f00:1", False),
        ("fd00::1", False),
        ("fe80::1%eth0", False),
        ("172.31.255.255", False),
        ("192.168.0.1", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::5db8:d822", False),
        ("2001:0:a00:1:0:0:a247:27dd", False),
        ("3fff::1", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_an_address_is_judged_by_its_number(address: str, public: bool) -> None:
    assert is_public(address) is public
