"""The page: who gets in and how, what it shows and that it changes nothing, and events without a gap."""

import gzip
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.daemon.verb_table import VERBS
from gateway.testing import GatewayProcess
from gateway.web.key_check import MOST_WRONG
from gateway.web.page import APART, FILES
from tests.web.logged_in import Browser, log_in, open_link, read_login, redeem
from tests.web.visits import connect, read_answer, visit

pytestmark = pytest.mark.process

FEW_BYTES = 60_000
HOOK = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context):\n    pass\n"}
SECRET = "sesame-open-7712-canary"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("page") / "home") as gateway:
        gateway.script(*[{"user": "", "text": "Hello."}] * 60)
        gateway.environ["MY_TOKEN"] = SECRET
        gateway.add_hook("watches", HOOK)
        gateway.start()
        gateway.say("good morning")
        yield gateway


@pytest.fixture(scope="module")
def browser(gateway: GatewayProcess) -> Browser:
    return log_in(gateway)


def test_without_a_login_everything_is_the_same_refusal(gateway: GatewayProcess) -> None:
    url = str(gateway.call("status")["web"]["url"])
    for path in ("/api/me", "/api/status", "/live", "/chat/list", "/end", "/nothing", "/hooks/x"):
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            answer = visit(url, path, method, X_Token="guess", Cookie="hermes-gateway-00000000=guess")
            assert (answer.status, b"hermes-gateway open" in answer.body) == (403, True)


def test_the_page_s_own_files_are_for_everybody_and_hold_nothing(gateway: GatewayProcess, browser: Browser) -> None:
    for path in ("/", "/open", "/static/main.js", "/static/page.css"):
        shown = [visit(browser.url, path), browser.get(path), visit(browser.url, path, Cookie="a=b")]
        assert [one.status for one in shown] == [200] * 3
        assert len({one.body for one in shown}) == 1
        assert not [one for one in shown if browser.token.encode() in one.body or "set-cookie" in one.headers]
    assert visit(browser.url, "/static/nothing").status == 404


def test_a_link_is_good_once_and_for_our_own_page(gateway: GatewayProcess) -> None:
    link = open_link(gateway)
    assert visit(link.partition("/open")[0], f"/open?{urlsplit(link).query}").status == 200, "to look uses it not up"
    for elsewhere in ({"Origin": "http://evil.com"}, {"Sec_Fetch_Site": "same-site"}, {"Content_Type": "text/plain"}):
        assert redeem(link, **elsewhere).status in (403, 415)
    first, second = redeem(link, Sec_Fetch_Site="same-origin"), redeem(link)
    assert (first.status, second.status) == (200, 403)
    assert "set-cookie" not in first.headers
    assert b"used, or is older than a minute" in second.body
    assert len(urlsplit(link).query.removeprefix("code=")) * 6 >= 256
    assert len(read_login(first)) * 6 >= 256


def test_the_frame_names_all_modules_so_that_they_come_at_once(browser: Browser) -> None:
    named = re.findall(rb'<link rel="modulepreload" href="/static/(\w+\.js)">', browser.page.body)
    assert sorted(named) == sorted(path.name.encode() for path in FILES.glob("*.js") if path.name not in APART)


def test_the_page_asks_for_what_the_terminal_shows(gateway: GatewayProcess, browser: Browser) -> None:
    assert b"</html>" in browser.page.body
    assert browser.ask("status")["state"] == "ready"
    assert browser.ask("hooks.list") == gateway.call("hooks.list") or browser.ask("hooks.list")["hooks"]
    (session,) = browser.ask("sessions.list", "limit=5")["sessions"]
    shown = browser.ask("sessions.show", f"session={session['session_id']}")
    assert [one["content"] for one in shown["entries"]][:2] == ["good morning", "Hello."]
    gateway.until(lambda: bool(browser.ask("hooks.info", "name=watches")["state"] == "loaded"))
    assert browser.ask("hooks.dead_letters") == {"letters": []}
    assert browser.get("/api/sessions.list?limit=many").status == 400
    refused = browser.get(f"/api/hooks.info?name={SECRET}")
    assert (refused.status, SECRET.encode() in refused.body) == (409, False)
    assert browser.get("/api/sessions.list?path=/etc/passwd").status == 400


@pytest.mark.row("T10")
@pytest.mark.row("T11")
def test_to_look_changes_nothing_and_what_is_not_the_page_s_is_not_there(browser: Browser) -> None:
    for verb in (name for name, row in VERBS.items() if isinstance(row.page, tuple)):
        assert browser.get(f"/api/{verb}?name=watches").status == 404
    for verb in (
        "hooks.trust",
        "chat.say",
        "stop",
        "keys.create",
        "web.open",
        "events.tail",
        "__init__",
        "Hooks.disable",
    ):
        assert browser.get(f"/api/{verb}?name=watches").status == 404
        assert browser.do(verb, name="watches").status == 404
    for method in ("PUT", "DELETE", "PATCH"):
        assert browser.get("/api/hooks.disable", method, X_Token=browser.token).status == 405
    assert browser.ask("hooks.info", "name=watches")["state"] != "disabled"


@pytest.mark.row("T4")
def test_a_login_counts_in_its_header_alone(gateway: GatewayProcess) -> None:
    browser = log_in(gateway)
    form = {"Content_Type": "text/plain", "Content_Length": "0"}
    cookie = f"hermes-gateway={browser.token}"
    for path, method in (("/end", "POST"), ("/api/status", "GET"), ("/live", "GET"), ("/chat/list", "GET")):
        for headers in ({}, form, {"Cookie": cookie}, {"Authorization": f"Bearer {browser.token}"}):
            assert visit(browser.url, path, method, **headers).status == 403
        assert visit(browser.url, f"{path}?token={browser.token}", method).status == 403
        assert browser.get(path, method, X_Token="0" * 43).status == 403
        assert browser.get(path, method, X_Token=f"{browser.token}, {browser.token}").status == 403
        assert browser.get(path, method, Origin="http://evil.com").status == 403
        assert browser.get(path, method, Sec_Fetch_Site="cross-site").status == 403
    assert browser.get("/api/me").status == 200
    assert json.loads(browser.get("/end", "POST").body) == {"ended": 1}
    assert browser.get("/api/me").status == 403


@pytest.mark.row("T5")
def test_no_secret_stands_in_an_address_and_nothing_comes_from_elsewhere(browser: Browser) -> None:
    for answer in (browser.entered, browser.page, browser.get("/static/main.js"), browser.get("/api/status")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert (answer.headers["referrer-policy"], answer.headers["cache-control"]) == ("no-referrer", "no-store")
    assert browser.get("/?token=evil&url=http://evil.com").body == browser.page.body
    for path in FILES.iterdir():
        text = path.read_text("utf-8", "replace").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(
            r"https?://|//[a-z]+\.[a-z]+/|location\.search|innerHTML|insertAdjacent|eval\(|style=", text
        ), path


@pytest.mark.row("T2")
def test_a_page_from_elsewhere_gets_nothing_though_it_sends_the_login(browser: Browser) -> None:
    for path in ("/", "/live", "/api/status", "/static/main.js"):
        assert browser.get(path, Origin="http://evil.com").status == 403
        assert browser.get(path, Origin="null").status == 403
        assert browser.get(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
        assert browser.get(path, host="evil.com").status == 421


@pytest.mark.row("T6")
def test_links_cannot_be_guessed_for_long(gateway: GatewayProcess) -> None:
    link = open_link(gateway)
    tries = [redeem(f"{link}{number}") for number in range(MOST_WRONG + 1)]
    assert tries[-1].status == 429
    assert {one.status for one in tries} <= {403, 429}
    assert int(tries[-1].headers["retry-after"]) > 0
    assert redeem(link).status == 200


def test_a_file_is_known_by_its_name_alone(browser: Browser) -> None:
    for name in ("..%2Fpage.py", "%2e%2e/page.py", "../page.py", "/etc/passwd", "main.js%00", "Main.js", ""):
        assert browser.get(f"/static/{name}").status == 404


def kind_of(path: Path) -> tuple[str, str]:
    """Return what puts files of one kind beside each other."""
    return path.suffix, path.name


def test_the_page_is_small(browser: Browser) -> None:
    bodies = {path.name: browser.get(f"/static/{path.name}").body for path in sorted(FILES.iterdir(), key=kind_of)}
    assert "main.js" in bodies
    assert len(gzip.compress(b"".join(body for name, body in bodies.items() if not name.endswith(".png")))) < FEW_BYTES
    assert sum(len(body) for name, body in bodies.items() if name.endswith(".png")) < FEW_BYTES / 4


class Stream:
    """What is told live, event by event."""

    def __init__(self, browser: Browser, seen: str = "") -> None:
        self.line: socket.socket = connect(browser.url)
        self.file = self.line.makefile("rb")
        resume = f"Last-Event-ID: {seen}\r\n" if seen else ""
        at = urlsplit(browser.url).netloc
        self.line.sendall(f"GET /live HTTP/1.1\r\nHost: {at}\r\nX-Token: {browser.token}\r\n{resume}\r\n".encode())
        head = iter(self.file.readline, b"\r\n")
        self.status = int(next(head).split()[1])
        assert list(head)

    def read(self) -> dict[str, str]:
        """The next one; empty when the other end has closed."""
        found: dict[str, str] = {}
        while line := self.file.readline().decode():
            if line == "\n" and "event" in found:
                return found
            name, _, value = line.rstrip("\n").partition(": ")
            found[name] = value
        return {}

    def until(self, name: str) -> list[dict[str, str]]:
        """All up to the first event of this name."""
        found = [self.read()]
        while json.loads(found[-1]["data"] or "{}") and name not in found[-1]["data"]:
            found.append(self.read())
        return found

    def close(self) -> None:
        self.file.close()
        self.line.close()


def test_events_come_live_and_after_a_lost_line_without_a_gap(gateway: GatewayProcess, browser: Browser) -> None:
    stream = Stream(browser)
    assert (stream.status, stream.read()["event"]) == (200, "hello")
    gateway.say("one")
    before = stream.until('"message:sent"')
    stream.close()
    gateway.say("two")  # nobody hears it
    again = Stream(browser, before[-1]["id"])
    assert again.read()["event"] == "hello"
    gateway.say("three")
    after = [again.read() for _ in range(3)]
    while "three" not in after[-1]["data"]:
        after.append(again.read())
    again.close()
    numbers = [int(one["id"].partition("-")[2]) for one in (*before, *after)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert any('"text":"two"' in one["data"] for one in after)
    assert {one["event"] for one in after} == {"event"}


def test_what_cannot_be_caught_up_is_said(browser: Browser) -> None:
    for seen in ("another0-5", "nonsense", f"{'9' * 30}-1"):
        stream = Stream(browser, seen)
        assert [stream.read()["event"], stream.read()["event"]] == ["hello", "gap"]
        stream.close()


@pytest.mark.row("T28")
def test_no_secret_is_told_live(gateway: GatewayProcess, browser: Browser) -> None:
    stream = Stream(browser)
    gateway.say(f"it is {SECRET}", session="canary")
    told = stream.until("dm:canary") + stream.until('"message:sent"')
    stream.close()
    assert len(told) > 2
    assert SECRET not in str(told)


@pytest.mark.row("T9")
def test_a_login_survives_a_restart_and_all_end_at_once(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        browser = log_in(gateway)
        gateway.stop()
        gateway.start()
        browser.url = str(gateway.call("status")["web"]["url"])
        assert browser.get("/api/me").status == 200
        stream = Stream(browser)
        assert stream.read()["event"] == "hello"
        unused = open_link(gateway)
        assert "1 logins have ended" in gateway.cli("open", "--end").stdout
        assert stream.read() == {}
        stream.close()
        assert browser.get("/api/me").status == 403
        assert redeem(unused).status == 403
        assert browser.token.encode() not in gateway.home.journal.read_bytes()


def test_no_port_no_page(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("web: {enabled: false}\n")
        gateway.start()
        opened = gateway.cli("open")
        assert (opened.returncode, "the page is off: web.enabled is false" in opened.stderr) == (1, True)


def test_answers_are_read_as_they_were_sent() -> None:
    assert read_answer(b"HTTP/1.1 200 OK\r\nSet-Cookie: A=Bc\r\n\r\nbody").headers == {"set-cookie": "A=Bc"}
