"""Pings: a job that went well calls its URL, again if that fails, and nothing waits for it."""

import logging

import pytest

from gateway.jobs.ping import call_ping
from tests.http_server import QuietHandler, serving


class Switch(QuietHandler):
    """A dead man's switch that is busy at first."""

    calls: list[str]

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        self.calls.append(self.path)
        if len(self.calls) == 1:
            self.send_error(503)
        else:
            self.answer(b"OK")


async def test_a_ping_that_fails_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    Switch.calls = []
    with serving(Switch) as server:
        await call_ping(f"http://127.0.0.1:{server.server_port}/ping/a-b?c=1", "tea")
    assert Switch.calls == ["/ping/a-b?c=1"] * 2
    assert not caplog.records


async def test_a_ping_that_goes_nowhere_is_told_without_its_url(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Switch) as server:
        port = server.server_port
    caplog.set_level(logging.WARNING, "gateway")
    await call_ping(f"http://127.0.0.1:{port}/secret", "the job tea")
    assert "the ping of the job tea failed 3 times: it could not be reached (network)" in caplog.text
    assert "secret" not in caplog.text
