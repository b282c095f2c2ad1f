"""A real Chromium, and a gateway of which there is something to see; both once for the tests of one file.

The tests here are not `async`: Playwright's loop is the one that runs in their thread.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser

from gateway.testing import GatewayProcess
from tests.browser.busy_home import start_busy
from tests.browser.screen import PICTURES, Screen, find_chromium, log_in, open_chromium, screens


class OpenScreen(Protocol):
    """A tab, as the owner sees it."""

    def __call__(self, **options: Any) -> AbstractContextManager[Screen]: ...


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Whichever this machine has; without one the page is not tried, which CI does not allow."""
    program = find_chromium()
    if program is None:
        pytest.skip("the page is tried in a real browser: apt install chromium")
    with open_chromium(program) as browser:
        yield browser


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One that has seen something."""
    with GatewayProcess(tmp_path_factory.mktemp("busy") / "home") as gateway:
        start_busy(gateway)
        yield gateway


@pytest.fixture(scope="module")
def open_screen(chromium: Browser, gateway: GatewayProcess) -> OpenScreen:
    """Open a browser of its own, logged in by one link: `with open_screen(viewport=PHONE) as screen`."""
    return make_screens(chromium, gateway)


def make_screens(chromium: Browser, gateway: GatewayProcess, **usual: Any) -> OpenScreen:
    """Open each screen with these options, unless it has others."""
    url, login = log_in(chromium, gateway)

    def open_one(**options: Any) -> AbstractContextManager[Screen]:
        return screens(chromium, url, login, **{**usual, **options})

    return open_one


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the place of the pictures."""
    pictures = list(PICTURES.glob("*.png"))
    if pictures:
        place = PICTURES.relative_to(Path.cwd()) if PICTURES.is_relative_to(Path.cwd()) else PICTURES
        terminalreporter.write_line(f"{len(pictures)} pictures of the page: {place}")
