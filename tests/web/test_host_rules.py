"""The rules of hosts and origins: foreign names, other sites' pages and lying headers."""

from collections.abc import Mapping

import pytest

from gateway.config.settings import WebSettings, WebTlsSettings
from gateway.web.host_rules import HostRules, build_host_rules
from gateway.web.key_check import MOST_PEERS, MOST_WRONG, WINDOW, KeyLimiter
from gateway.web.request_body import WebRefusal

HERE = "127.0.0.1:8730"
OWN = build_host_rules(WebSettings())
PROXIED = build_host_rules(WebSettings(url="https://gate.example.org/", trusted_proxies=("10.0.0.0/24", "::1/128")))


def refused(rules: HostRules, peer: str = "127.0.0.1", **headers: str) -> int:
    """The status of the refusal; 0: it is let on."""
    named: Mapping[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        rules.check(named, peer)
    except WebRefusal as refusal:
        return int(refusal.status)
    return 0


@pytest.mark.row("T3")
@pytest.mark.parametrize("host", [HERE, "127.0.0.1", "127.8.9.1:80", "localhost:8730", "LOCALHOST", "[::1]:8730"])
def test_this_machine_is_known_by_its_number_and_one_word(host: str) -> None:
    assert refused(OWN, host=host) == 0


@pytest.mark.row("T3")
@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.com", "127.evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "localhost.", "evil.com:8730"),
        *("127.0.0.1:8730@evil.com", "127.0.0.1:evil", "0.0.0.0:8730", "10.0.0.5", "[::2]:8730", "127.1", "0x7f.0.0.1"),
        *("gate.example.org", "127.0.0.1, evil.com"),
    ],
)
def test_a_foreign_host_is_misdirected(host: str) -> None:
    assert refused(OWN, host=host) == 421


def test_names_of_the_configuration_are_ours_with_any_port() -> None:
    rules = build_host_rules(
        WebSettings(listen="192.168.1.5:8730", hosts=("Gate.Local",), tls=WebTlsSettings(cert="c"))
    )
    assert [refused(rules, host=host) for host in ("gate.local:1", "192.168.1.5:8730", "gate.local.evil")] == [
        0,
        0,
        421,
    ]
    assert refused(PROXIED, host="gate.example.org") == 0


@pytest.mark.row("T2")
@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "", "http://127.0.0.1:9", "http://localhost:8730", "file://", f"ws://{HERE}"]
)
def test_a_page_from_elsewhere_is_refused_whatever_else_it_shows(origin: str) -> None:
    assert refused(OWN, host=HERE, origin=origin, authorization="Bearer right", cookie="right") == 403


@pytest.mark.row("T2")
def test_our_own_page_is_answered() -> None:
    assert refused(OWN, host=HERE, origin=f"http://{HERE}", sec_fetch_site="same-origin") == 0
    assert [refused(OWN, host=HERE, sec_fetch_site=site) for site in ("cross-site", "same-site")] == [403, 403]


@pytest.mark.row("T2")
def test_the_page_of_web_url_is_ours_by_whatever_name_a_proxy_asks_for_it() -> None:
    origins = (
        "https://gate.example.org",
        "HTTPS://Gate.Example.Org",
        "http://gate.example.org",
        "https://gate.example.org:444",
    )
    assert [refused(PROXIED, host=HERE, origin=origin) for origin in origins] == [0, 0, 403, 403]
    assert refused(PROXIED, host="evil.com", origin="https://gate.example.org") == 421
    assert [refused(OWN, host=HERE, origin=origin) for origin in ("", "://", "https://")] == [403] * 3


@pytest.mark.row("T7")
def test_one_peer_has_one_spelling() -> None:
    peers = ("1.2.3.4", "::ffff:1.2.3.4", "::ffff:102:304", "fe80::1%eth0", "FE80:0::1")
    assert [OWN.find_peer({}, peer) for peer in peers] == ["1.2.3.4"] * 3 + ["fe80::1"] * 2


@pytest.mark.row("T7")
def test_where_a_request_came_from_is_believed_of_a_listed_proxy_alone() -> None:
    said = {"x-forwarded-for": "6.6.6.6, 1.2.3.4"}
    assert OWN.find_peer(said, "127.0.0.1") == "127.0.0.1"
    assert PROXIED.find_peer(said, "9.9.9.9") == "9.9.9.9"
    assert PROXIED.find_peer(said, "::ffff:10.0.0.7") == "1.2.3.4", (
        "what stands before the proxy's own word is anybody's"
    )
    assert PROXIED.find_peer({"x-forwarded-for": "1.2.3.4, 10.0.0.8"}, "10.0.0.7") == "1.2.3.4"
    with_ports = ("1.2.3.4:5678", "[2001:db8::1]:5678", "2001:db8::1", "[::ffff:1.2.3.4]:80")
    found = [PROXIED.find_peer({"x-forwarded-for": one}, "10.0.0.7") for one in with_ports]
    assert found == ["1.2.3.4", "2001:db8::1", "2001:db8::1", "1.2.3.4"]


@pytest.mark.row("T29")
@pytest.mark.parametrize(
    "said", ["\x9b31mEVIL", "unknown", "a" * 15_000, "1.2.3.4, _hidden", "1.2.3", "1.2.3.4:x", "[]:1"]
)
def test_what_is_no_address_is_not_taken_for_one(said: str) -> None:
    """It would stand in the record of activity for ever, and who guesses keys would be somebody else each time."""
    assert PROXIED.find_peer({"x-forwarded-for": said}, "10.0.0.7") == "10.0.0.7"


def test_what_is_not_encrypted_comes_through_the_proxy() -> None:
    rules = build_host_rules(WebSettings(listen="0.0.0.0:8730", trusted_proxies=("10.0.0.2",), hosts=("gate",)))
    assert [refused(rules, peer, host="gate") for peer in ("10.0.0.2", "127.0.0.1", "10.0.0.3")] == [0, 0, 403]


@pytest.mark.row("T6")
def test_who_guesses_is_made_to_wait_and_nobody_else() -> None:
    now = [1000.0]
    limiter = KeyLimiter(lambda: now[0])
    assert [limiter.note_wrong("a") for _ in range(MOST_WRONG)] == [0] * MOST_WRONG
    now[0] += 20
    assert [limiter.note_wrong("a"), limiter.note_wrong("b")] == [WINDOW - 20, 0]
    now[0] += WINDOW
    assert limiter.note_wrong("a") == 0


@pytest.mark.row("T6")
def test_a_crowd_of_guessers_takes_no_more_memory() -> None:
    limiter = KeyLimiter()
    for number in range(MOST_PEERS + 10):
        limiter.note_wrong(str(number))
    assert len(limiter._wrong) == MOST_PEERS
