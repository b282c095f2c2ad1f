"""The page's visitors beside the owner: people whom a trusted proxy names, and people with a link from a chat."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.testing import GatewayProcess
from gateway.web.live_stream import MOST_OF_ONE
from tests.web.chats import ChatVisitor
from tests.web.logged_in import open_link, read_login, redeem
from tests.web.visits import Visit, connect, read_all, read_answer, say, visit

pytestmark = pytest.mark.process

PEOPLE = "{ann: user, olga: operator, 'boss@example.org': owner}"
SETTINGS = f"web: {{identity: X-Person, trusted_proxies: [127.0.0.1], people: {PEOPLE}}}\n"
VERBS = ("status", "hooks.list", "sessions.list", "sessions.show?session=x", "pairing.list", "approvals.list")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("named") / "home") as gateway:
        gateway.script(*({"user": "", "text": "I heard you."},) * 60, settings=SETTINGS)
        gateway.start()
        yield gateway


def url_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("status")["web"]["url"])


def look(gateway: GatewayProcess, path: str = "/", **headers: str) -> Visit:
    return visit(url_of(gateway), path, **headers)


def come_as(gateway: GatewayProcess, name: str) -> ChatVisitor:
    return ChatVisitor(url_of(gateway), name, **{"X-Person": name})


@pytest.mark.row("T17")
def test_whom_the_proxy_names_has_a_chat_of_their_own_and_what_their_role_gives(gateway: GatewayProcess) -> None:
    ann, olga = come_as(gateway, "ann"), come_as(gateway, "olga")
    ann.write("hello")
    ann.see("I heard you.")
    ann.write("/whoami")
    assert "web user ann, user; session agent:main:web:dm:ann" in ann.see("web user")[-1].data["text"]
    assert [one for one in olga.hear(lambda one: one.kind == "state") if one.kind == "shown"] == []
    assert [ann.get(f"/api/{verb}").status for verb in VERBS] == [403] * len(VERBS)
    assert (ann.get("/live").status, ann.ask("/chat/list")["chats"][0]["title"]) == (403, "hello")
    assert olga.get("/api/status").status == 200
    assert olga.get("/api/sessions.show?session=x").status == 403
    about = {"person": "ann", "role": "user", "is_named": True, "may": [], "program": "hermes-gateway"}
    assert ann.ask("/api/me") == about


@pytest.mark.parametrize(
    "headers",
    [
        "X-Person: stranger",
        "X-Person: owner",
        "X-Person:",
        "X-Person: ann\r\nX-Person: ann",
        "X-Person: ann\r\nX-Person: boss@example.org",
        "X-Person: ann boss@example.org",
        "X-Person: telegram:1",
        f"X-Person: {'a' * 201}",
        "X-Person: \xe4nn",
        "X-Person: Ann",
        "X_Person: ann",
    ],
)
def test_what_is_no_name_that_is_known_lets_nobody_in(gateway: GatewayProcess, headers: str) -> None:
    host = urlsplit(url_of(gateway)).netloc
    asked = f"GET /api/me HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n\r\n".encode("latin-1")
    assert read_answer(say(url_of(gateway), asked)).status == 403


def test_a_name_counts_before_a_login_and_links_are_good_for_nobody_there(gateway: GatewayProcess) -> None:
    link = open_link(gateway)
    assert redeem(link, X_Person="ann").status == 403
    token = read_login(redeem(link))
    assert look(gateway, "/api/status", X_Token=token).status == 200
    assert look(gateway, "/api/status", X_Token=token, X_Person="ann").status == 403
    assert look(gateway, "/api/me", X_Token=token, X_Person="nobody").status == 403


def test_one_person_holds_so_many_lines_and_shuts_nobody_out(gateway: GatewayProcess) -> None:
    def hear(name: str) -> socket.socket:
        line = lines.enter_context(connect(url_of(gateway)))
        host = urlsplit(url_of(gateway)).netloc
        line.sendall(f"GET /chat/live HTTP/1.1\r\nHost: {host}\r\nX-Person: {name}\r\n\r\n".encode())
        return line

    with ExitStack() as lines:
        assert {hear("ann").recv(12) for _ in range(MOST_OF_ONE)} == {b"HTTP/1.1 200"}
        assert [hear(name).recv(12) for name in ("ann", "olga")] == [b"HTTP/1.1 429", b"HTTP/1.1 200"]
        assert {hear("boss@example.org").recv(12) for _ in range(MOST_OF_ONE + 1)} == {b"HTTP/1.1 200"}
    gateway.until(lambda: visit(url_of(gateway), "/chat/live", "HEAD", X_Person="ann").status == 200)


def test_that_somebody_came_whom_the_proxy_names_is_recorded_once(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure(SETTINGS)
        gateway.start()
        for name in ("olga", "olga", "ann", "stranger"):
            look(gateway, "/api/me", X_Person=name)
            look(gateway, "/api/status", X_Person=name)
        gateway.stop()
        gateway.start()
        look(gateway, "/api/me", X_Person="olga")
        done = gateway.call("activity.list")["activity"]
        assert [(one["who"], one["place"]) for one in done if one["what"] == "page.login"] == [
            ("web:olga", "page 127.0.0.1"),
            ("web:ann", "page 127.0.0.1"),
        ]
        assert "0 logins have ended" in gateway.cli("open", "--end").stdout


@pytest.mark.row("T4")
def test_a_name_alone_changes_nothing(gateway: GatewayProcess) -> None:
    body = json.dumps({"id": "message-1", "text": "hello"}).encode()
    for token in ("", "0" * 64, come_as(gateway, "olga").token):
        assert ChatVisitor(url_of(gateway), token, **{"X-Person": "ann"}).post("/chat/say", body).status == 403


@pytest.mark.row("T7")
def test_from_elsewhere_than_the_proxy_the_header_is_nothing(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(settings=SETTINGS.replace("127.0.0.1", "10.9.8.7"))
        gateway.start()
        for name in ("ann", "boss@example.org"):
            assert look(gateway, "/api/me", X_Person=name, X_Forwarded_For="10.9.8.7").status == 403


@pytest.mark.row("T7")
def test_whoever_may_no_longer_look_hears_no_more(tmp_path: Path) -> None:
    """A line that is open ends too, before anything more is told on it; and without that, in its next beat."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*({"user": "", "text": "I heard you."},) * 4, settings=SETTINGS)
        gateway.start()
        host = urlsplit(url_of(gateway)).netloc
        with ExitStack() as lines:
            opened = {}
            for name in ("olga", "boss@example.org"):
                opened[name] = line = lines.enter_context(connect(url_of(gateway)))
                line.settimeout(None)
                line.sendall(f"GET /live HTTP/1.1\r\nHost: {host}\r\nX-Person: {name}\r\n\r\n".encode())
                assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
            config = gateway.home.config
            of_now = config.read_text().replace("olga: operator", "olga: user")
            config.write_text(of_now.replace("'boss@example.org': owner", "'boss@example.org': operator"))
            assert gateway.cli("reload").returncode == 0
            gateway.say("canary of yellow")
            heard = {name: read_all(line) for name, line in opened.items()}
        assert not [name for name, told in heard.items() if b"canary" in told]
        assert look(gateway, "/live", X_Person="olga").status == 403


def test_a_proxy_that_asks_by_the_address_that_it_was_given_serves_the_page_too(tmp_path: Path) -> None:
    """As nginx does where nothing is said of `Host`, and holds streams back where nobody asks it not to."""
    with GatewayProcess(tmp_path / "home") as gateway:
        behind = SETTINGS.replace("web: {", "web: {url: 'https://Gate.example.org:443/', ")
        gateway.script({"user": "", "text": "I heard you."}, settings=behind)
        gateway.start()
        ann = come_as(gateway, "ann")
        ann.headers["Origin"] = "https://gate.example.org"
        ann.write("hello")
        ann.see("I heard you.")
        with connect(url_of(gateway)) as line:
            host = urlsplit(url_of(gateway)).netloc
            line.sendall(f"GET /chat/live HTTP/1.1\r\nHost: {host}\r\nX-Person: ann\r\n\r\n".encode())
            assert b"\r\nX-Accel-Buffering: no\r\n" in line.recv(1 << 16)
        link = str(json.loads(gateway.cli("open", "--json").stdout)["url"])
        assert link.startswith(f"{url_of(gateway)}/open?"), "behind the proxy it would be good for nobody"
