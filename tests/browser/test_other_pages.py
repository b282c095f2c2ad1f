"""A page of another program of this machine, in the browser of a logged-in person: it can do and read nothing.

To a browser it is of the same site, since ports make no difference there: it would get a cookie of ours, may set one,
and can frame, open and fetch. The login is the origin's own.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from playwright.sync_api import StorageState, expect

from gateway.testing import GatewayProcess
from tests.browser.conftest import OpenScreen
from tests.http_server import QuietHandler, serving

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

HOOK = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context):\n    pass\n"}
# Each way to ask that a page has; what it could read of the answer.
WAYS = """async url => {
    const body = '{"name": "watches"}', heard = []
    const ask = async (path, options) => {
        try { const answer = await fetch(url + path, { credentials: 'include', method: 'POST', body, ...options })
              heard.push([answer.type, await answer.text()]) } catch { heard.push(['refused', '']) }
    }
    const json = { 'Content-Type': 'application/json' }
    await ask('/api/hooks.disable', { mode: 'no-cors' })
    await ask('/api/hooks.disable', { mode: 'no-cors', headers: { 'Content-Type': 'text/plain' } })
    await ask('/api/hooks.disable', { headers: json })
    await ask('/api/hooks.disable', { headers: { ...json, 'X-Token': '0'.repeat(64) } })
    await ask('/api/status', { method: 'GET', body: undefined })
    await ask('/', { method: 'GET', body: undefined })
    await ask('/api/me', { method: 'GET', body: undefined })
    await ask('/api/me', { method: 'GET', body: undefined, headers: { 'X-Token': 'owner' } })
    await ask('/open', { headers: json, body: '{"code": "x"}' })
    await ask('/end', { mode: 'no-cors' })
    document.cookie = 'hermes-gateway=planted; path=/'
    document.cookie = 'X-Token=planted; path=/'
    navigator.sendBeacon(url + '/api/hooks.disable', body)
    const script = document.body.appendChild(document.createElement('script'))
    const loaded = new Promise(done => { script.onload = () => done('loaded'); script.onerror = () => done('refused') })
    script.src = url + '/static/main.js'
    const frame = document.body.appendChild(document.createElement('iframe'))
    frame.src = url + '/'
    await new Promise(done => { frame.onload = done })
    let seen = 'nothing'
    try { seen = frame.contentDocument?.body?.textContent || seen } catch { /* another origin */ }
    const live = new EventSource(url + '/live', { withCredentials: true })
    const told = await new Promise(done => { live.onopen = () => done('told'); live.onerror = () => done('refused') })
    live.close()
    const other = window.open(url + '/')
    await new Promise(done => setTimeout(done, 500))
    let opened = 'nothing'
    try { opened = other.document.body.textContent || other.localStorage.length } catch { /* another origin */ }
    const kept = [document.cookie.includes('hermes-gateway-'), localStorage.getItem('hermes-gateway-login')]
    return { heard, script: await loaded, seen, told, opened, kept }
}"""


class EvilPage(QuietHandler):
    """Another page of this machine; it keeps the browser's requests."""

    heard: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        self.heard.append({name.lower(): value for name, value in self.headers.items()})
        self.answer(b"<!doctype html><title>evil</title><body>", "text/html")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("others") / "home") as gateway:
        gateway.add_hook("watches", HOOK)
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "loaded")
        yield gateway


def find_login(state: StorageState) -> str:
    """Return the browser's storage for the page's origin."""
    stored = [entry for origin in state.get("origins", []) for entry in origin["localStorage"]]
    (login,) = [str(one["value"]) for one in stored if one["name"] == "hermes-gateway-login"]
    return login


def state_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("hooks.info", {"name": "watches"})["state"])


@pytest.mark.row("T2")
@pytest.mark.row("T4")
def test_a_page_of_another_program_here_does_nothing_and_reads_nothing(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    with serving(EvilPage) as server, open_screen() as screen:
        screen.enter("hooks/watches", "What it can do")
        port = server.server_address[1]
        screen.page.goto(f"http://127.0.0.1:{port}/")
        found: dict[str, Any] = screen.page.evaluate(WAYS, str(gateway.call("status")["web"]["url"]))
        assert [text for _, text in found["heard"] if text] == []
        assert (found["script"], found["seen"], found["told"]) == ("refused", "nothing", "refused")
        assert (found["opened"], found["kept"]) == ("nothing", [False, None])
        login = find_login(screen.page.context.storage_state())
        assert EvilPage.heard
        assert not [one for one in EvilPage.heard if login in str(one) or "cookie" in one or "x-token" in one]
        assert state_of(gateway) == "loaded"
        screen.enter("hooks/watches", "What it can do")  # and nobody was logged out


def test_a_login_of_before_is_over_and_the_page_says_how_to_get_one(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    url = str(gateway.call("status")["web"]["url"])
    with open_screen(storage_state={"cookies": [], "origins": []}) as screen:
        screen.page.context.add_cookies([{"name": "hermes-gateway-8730", "value": "0" * 64, "url": url}])
        screen.page.goto(url)
        expect(screen.page.locator("body")).to_contain_text("run `hermes-gateway open` where the gateway runs")
        assert [fault for fault in screen.faults if "403" not in fault] == []
