"""For tests of a chat network's adapter: what holds for each of them, and what it takes to show it.

- `wire` is what the tests need of a network: a server on loopback, on which a test is the people;
- `house` is a gateway in the test's own loop that serves a wire, and what a test sees of it;
- `suite` has the tests, those of `suite_groups` and `suite_parts` among them; `suite_media` has those of pictures and
  voice, `plugin` what they need of pytest.
  docs/adapters.md shows how they are run on an adapter.
"""

from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Shown, Wire

__all__ = ["ANN", "BEN", "GROUP", "STRANGER", "Shown", "Wire"]
