"""The tests of a chat network's adapter: the rules that hold for each of them, and the means to show it.

- `wire` is the part of a network that the tests need: a server on loopback, where a test plays the people;
- `house` is a gateway in the test's own loop that serves a wire, and the test's view of it;
- `suite` has the tests, those of `suite_groups` and `suite_parts` among them; `suite_media` has those of pictures and
voice, `plugin` the parts for pytest.

docs/adapters.md shows how to run them on an adapter.
"""

from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Shown, Wire

__all__ = ["ANN", "BEN", "GROUP", "STRANGER", "Shown", "Wire"]
