"""Which proxy the environment names for an address."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from gateway.config.environment import find_proxy

ADDRESS = "https://api.models.example:8443/v1"


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": "http://a:1"}, "http://a:1"),
        ({"HTTPS_PROXY": "a:1"}, "http://a:1"),
        ({"HTTP_PROXY": "http://a:1"}, ""),
        ({"ALL_PROXY": "socks5://a:1"}, "socks5://a:1"),
        ({"ALL_PROXY": "http://b:1", "HTTPS_PROXY": "http://a:1"}, "http://a:1"),
        ({"HTTPS_PROXY": "http://b:1", "https_proxy": "http://a:1"}, "http://a:1"),
        ({"HTTPS_PROXY": "http://b:1", "https_proxy": ""}, ""),
    ],
)
def test_the_nearest_name_counts(environ: Mapping[str, str], proxy: str) -> None:
    assert find_proxy(urlsplit(ADDRESS), environ) == proxy


@pytest.mark.parametrize(
    ("named", "is_meant"),
    [
        ("*", True),
        ("api.models.example", True),
        ("other, MODELS.example", True),
        (".models.example", True),
        ("api.models.example:8443", True),
        ("api.models.example:443", False),
        ("els.example", False),
        ("", False),
        (" , ", False),
        ("below.api.models.example", False),
    ],
)
def test_no_proxy_names_a_host_and_all_below_it(named: str, is_meant: bool) -> None:
    environ = {"HTTPS_PROXY": "http://a:1", "NO_PROXY": named}
    assert find_proxy(urlsplit(ADDRESS), environ) == ("" if is_meant else "http://a:1")


def test_an_address_of_ipv6_can_be_named() -> None:
    assert not find_proxy(urlsplit("http://[::1]:11434/v1"), {"http_proxy": "http://a:1", "no_proxy": "localhost,::1"})
