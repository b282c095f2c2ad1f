"""Events in several tabs of a real browser: one line for all, and none is missed or repeated, whichever tab closes."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from gateway.testing import GatewayProcess
from gateway.testing.patience import wait_until
from tests.browser.screen import PATIENCE, log_in
from tests.http_server import QuietHandler, find_free_ports, serving

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

TABS = 5
LONG = 60.0
LISTEN = """async () => {
    const live = await import('/static/live.js')
    window.heard = []
    live.listen(message => window.heard.push(message))
}"""
NUMBERS = "() => window.heard.filter(one => one.kind === 'event').map(one => one.number)"
TEXTS = "() => window.heard.filter(one => one.event === 'message:received').map(one => one.fields.text)"
KINDS = "() => window.heard.filter(one => one.kind !== 'event').map(one => one.kind)"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """On a port that stays, over restarts."""
    (port,) = find_free_ports(1)
    with GatewayProcess(tmp_path_factory.mktemp("live") / "home") as gateway:
        gateway.script(*[{"user": "", "text": "Hello."}] * 300)
        gateway.environ["GATEWAY_WEB_LISTEN"] = f"127.0.0.1:{port}"
        gateway.start()
        yield gateway


class LoneProxy(QuietHandler):
    """The proxy of a gateway that is away."""

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        self.send_response(502)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><h1>a page of the proxy</h1></html>")


class Tabs:
    """Tabs of one logged-in browser, each with its events; `lines` are the tabs that requested events."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._context = context
        self._url = url
        self.lines: list[Page] = []

    def open(self) -> Page:
        page = self._context.new_page()
        page.on("request", lambda request: self.lines.append(page) if "/live?" in f"{request.url}?" else None)
        page.goto(f"{self._url}/#live")
        expect(page.locator("#room")).to_contain_text("as they happen", timeout=PATIENCE)
        page.evaluate(LISTEN)
        return page


@pytest.fixture
def tabs(chromium: Browser, gateway: GatewayProcess) -> Iterator[Tabs]:
    url, login = log_in(chromium, gateway)
    context = chromium.new_context(storage_state=login)
    yield Tabs(context, url)
    context.close()


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, LONG)


def until_heard(page: Page, text: str) -> None:
    """Wait until the tab has received this message."""
    until(lambda: text in page.evaluate(TEXTS))


def until_missed(page: Page) -> None:
    """Wait until the tab knows that it missed some."""
    until(lambda: "gap" in page.evaluate(KINDS))


def holds_all(page: Page) -> bool:
    """Return True if its events have no gap and no repetition."""
    numbers = page.evaluate(NUMBERS)
    return bool(numbers) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_all_tabs_hear_all_by_one_line_also_when_the_one_that_has_it_is_closed(
    gateway: GatewayProcess, tabs: Tabs
) -> None:
    pages = [tabs.open() for _ in range(TABS)]
    assert tabs.lines == pages[:1]
    gateway.say("to all")
    for page in pages:
        until_heard(page, "to all")
    pages[0].close()
    gateway.say("while it closed")
    for page in pages[1:]:
        until_heard(page, "while it closed")
        assert (holds_all(page), "gap" in page.evaluate(KINDS)) == (True, False)
    assert len(tabs.lines) == 2


def test_a_tab_that_sleeps_is_replaced_and_hears_the_rest_when_it_wakes(gateway: GatewayProcess, tabs: Tabs) -> None:
    sleeper, other = tabs.open(), tabs.open()
    gateway.say("before the night")
    until_heard(other, "before the night")
    devtools = sleeper.context.new_cdp_session(sleeper)
    devtools.send("Debugger.enable")
    devtools.send("Debugger.pause")  # nothing of it runs, as when its machine sleeps
    for number in range(80):
        gateway.say(f"in the night {number}")
    until_heard(other, "in the night 79")
    assert len(other.evaluate(NUMBERS)) > 800
    assert (holds_all(other), tabs.lines[-1] == other) == (True, True)
    devtools.send("Debugger.disable")
    gateway.say("in the morning")
    for page in (sleeper, other):
        until_heard(page, "in the morning")
        assert (holds_all(page), "gap" in page.evaluate(KINDS)) == (True, False)


def test_a_gateway_that_was_killed_is_said_and_found_again(gateway: GatewayProcess, tabs: Tabs) -> None:
    pages = [tabs.open(), tabs.open()]
    gateway.say("before")
    for page in pages:
        until_heard(page, "before")
    gateway.kill()
    for page in pages:
        expect(page.locator("#line")).to_contain_text("the line to the gateway is lost", timeout=PATIENCE)
    gateway.start()
    for page in pages:
        expect(page.locator("#line")).to_contain_text("ready", timeout=PATIENCE)
        until_missed(page)
    gateway.say("after")
    for page in pages:
        until_heard(page, "after")
        expect(page.locator(".gap")).to_contain_text("were missed")


def test_what_a_proxy_says_in_place_of_the_gateway_is_told_in_short(gateway: GatewayProcess, tabs: Tabs) -> None:
    page, port = tabs.open(), urlsplit(str(gateway.call("status")["web"]["url"])).port
    gateway.kill()
    with serving(LoneProxy, port or 0):
        page.evaluate("location.hash = '#hooks'")
        expect(page.locator("main")).to_contain_text("the gateway did not answer: 502 Bad Gateway", timeout=PATIENCE)
        expect(page.locator("main")).not_to_contain_text("a page of the proxy")
    gateway.start()
    expect(page.locator("#line")).to_contain_text("ready", timeout=PATIENCE)
