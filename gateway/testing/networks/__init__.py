"""For tests of a chat network's adapter: what holds for each of them, and what it takes to show it.

- `wire` is what the tests need of a network: a server on loopback, on which a test is the people;
- `house` is a gateway in the test's own loop that serves a wire, and what a test sees of it;
- `suite` has the tests. They run on a wire by a file of tests like this:

    from gateway.testing.networks.suite import *

    @pytest.fixture
    async def wire(tmp_path):
        wire = MyWire()
        async with wire.serving():
            yield wire
"""
