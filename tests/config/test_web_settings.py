"""The port is closed to others unless what is said there is encrypted."""

import pytest

from gateway.config.home import Home
from tests.config.sources import SCHEMA, right, said


@pytest.mark.row("T1")
def test_it_is_bound_to_this_machine_unless_what_is_said_is_encrypted(home: Home) -> None:
    assert SCHEMA.settings().web.listen == "127.0.0.1:8730"
    for address in ("0.0.0.0:8730", "[::]:8730", "192.168.1.5:8730", "[::ffff:127.0.0.1]:8730"):
        (line,) = said(home, f"web: {{listen: '{address}'}}")
        assert line.startswith("config.yaml:1:15: error: `web.listen` can be reached from elsewhere")
    for address in ("localhost:8730", "127.evil.com:8730", "127.0.0.1", ":8730", "127.0.0.1:99999", "::1:8730"):
        (line,) = said(home, f"web: {{listen: '{address}'}}")
        assert "`web.listen` is not an IP address with a port; write for instance 127.0.0.1:8730" in line
    right(home, "web: {listen: '0.0.0.0:8730', tls: {cert: a, key: b}}")
    right(home, "web: {listen: '0.0.0.0:8730', trusted_proxies: [10.0.0.2]}")
    for wrong in ("tls: {cert: a}", "trusted_proxies: [proxy]", "hosts: ['http://a']"):
        assert len(said(home, f"web: {{{wrong}}}")) == 1
