"""The data of the page's reading rooms: page by page, in bounds, and to the letter."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from gateway.logs.lines import LogLine, as_json
from gateway.testing import GatewayProcess
from tests.web.logged_in import Browser, log_in

pytestmark = pytest.mark.process

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202eback\u2066 {{token}} ../../etc/passwd"
LONG = "word " * 1_000_000
SECRET = "sesame-open-5521-canary"
HOUR = [{"tool_calls": [{"name": "time", "args": {}, "id": "call-7"}]}, {"text": "Nobody tells me."}]
DECIDERS = {
    "polite": ("[message:received]", "if 'hour' in context['text']: return {'text': context['text'] + ', please'}"),
    "gate": ("[tool:before]", "return {'decision': 'deny', 'text': 'the <b>clock</b> is private'}"),
    "bouncer": (
        "[message:received]",
        "if 'secret' in context['text']: return {'decision': 'deny', 'text': 'not here'}",
    ),
}
KEY = "agent:main:terminal:dm:{}"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("rooms") / "home") as gateway:
        gateway.script(
            {"user": "hostile", "text": HOSTILE}, {"user": "hour", "answers": HOUR}, {"user": "", "text": "Well."}
        )
        for name, (wanted, code) in DECIDERS.items():
            gateway.add_hook(
                name,
                {
                    "HOOK.yaml": f"intercepts: {wanted}\n",
                    "handler.py": f"def handle(event_type, context):\n    {code}\n",
                },
            )
        gateway.environ["MY_TOKEN"] = SECRET
        gateway.start()
        for number in range(7):
            gateway.say(f"/title word {number}", f"s{number}")
            gateway.say(f"word {number}", f"s{number}")
        yield gateway


@pytest.fixture(scope="module")
def browser(gateway: GatewayProcess) -> Browser:
    return log_in(gateway)


def ask(browser: Browser, verb: str, **params: Any) -> Any:
    return browser.ask(verb, urlencode(params))


def read_pages(browser: Browser, verb: str, rows: str, **params: Any) -> list[dict[str, Any]]:
    page = ask(browser, verb, limit=3, **params)
    found = page[rows]
    while page["next"]:
        page = ask(browser, verb, limit=3, after=page["next"], **params)
        found += page[rows]
    return list(found)


def test_conversations_and_what_is_found_come_page_by_page(gateway: GatewayProcess, browser: Browser) -> None:
    listed = read_pages(browser, "sessions.list", "sessions")
    assert listed == gateway.call("sessions.list")["sessions"]
    found = read_pages(browser, "sessions.search", "hits", query="word")
    assert [one["session_id"] for one in found] == [one["session_id"] for one in listed]
    assert browser.get("/api/sessions.list?after=nonsense").status == 409


def test_a_long_transcript_comes_in_parts_and_long_texts_begin(gateway: GatewayProcess, browser: Browser) -> None:
    gateway.say(LONG, "s0")
    page = ask(browser, "sessions.show", session=KEY.format("s0"), limit=2, longest=4000)
    assert (page["first"], page["count"]) == (2, 4)
    assert (len(page["entries"][0]["content"]), page["entries"][0]["cut"]) == (4000, len(LONG))
    before = ask(browser, "sessions.show", session=KEY.format("s0"), before=page["first"], limit=2)
    assert [one["content"] for one in before["entries"]] == ["word 0", "Well."]


@pytest.mark.row("T29")
def test_what_would_act_on_a_reader_comes_as_text(gateway: GatewayProcess, browser: Browser) -> None:
    gateway.say("be hostile", "s1")
    answer = browser.get(f"/api/sessions.show?session={KEY.format('s1')}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"\x1b" not in answer.body
    assert [one["content"] for one in json.loads(answer.body)["entries"]][-1] == HOSTILE


def test_who_looked_into_a_conversation_is_recorded(gateway: GatewayProcess, browser: Browser) -> None:
    ask(browser, "sessions.show", session=KEY.format("s2"))
    done = [one for one in gateway.call("activity.list")["activity"] if one["on"] == KEY.format("s2")]
    assert [(one["what"], one["place"].partition(" ")[0]) for one in done] == [("sessions.show", "page")]


def test_the_log_is_followed_from_line_to_line(gateway: GatewayProcess, browser: Browser) -> None:
    first = ask(browser, "logs.read", lines=2)
    assert (len(first["lines"]), first["gap"]) == (2, False)
    assert ask(browser, "logs.read", after=first["next"])["lines"] == []
    gateway.call("hooks.reload")
    gateway.until(lambda: bool(ask(browser, "logs.read", after=first["next"])["lines"]))
    news = ask(browser, "logs.read", after=first["next"])
    assert "by command: hooks.reload" in [one["message"] for one in news["lines"]]
    assert ask(browser, "logs.read", after=first["next"], level="error")["lines"] == []
    assert ask(browser, "logs.read", text="BY COMMAND: HOOKS.RELOAD")["lines"][-1]["level"] == "info"
    assert ask(browser, "logs.read", text="nobody wrote that")["lines"] == []
    assert ask(browser, "logs.read", after="1-999999999")["gap"]


@pytest.mark.row("T19")
def test_no_file_is_named_to_the_log(browser: Browser) -> None:
    for words in (
        "path=/etc/passwd",
        "file=/etc/passwd",
        "after=../../etc/passwd",
        "after=/etc/passwd-0",
        "lines=99999",
    ):
        assert browser.get(f"/api/logs.read?{words}").status == 400


@pytest.mark.row("T28")
def test_no_secret_stands_in_log_or_configuration(gateway: GatewayProcess, browser: Browser) -> None:
    with gateway.home.log.open("a") as log:
        log.write(f"{SECRET}\n{as_json(LogLine(time.time(), 'info', 'x', SECRET, {}))}\n")
    for verb in ("logs.read", "config.show", "activity.list"):
        assert SECRET not in json.dumps(ask(browser, verb)), verb


def test_the_configuration_says_where_it_is_from_and_what_is_another_by_now(
    gateway: GatewayProcess, browser: Browser
) -> None:
    found = ask(browser, "config.show")
    origins = {one["name"]: one["origin"] for one in found["settings"]}
    assert origins["model.script"].startswith(f"{gateway.home.config}:")
    assert (origins["web.enabled"], found["differences"]) == ("default", [])
    before = gateway.home.config.read_text()
    gateway.home.config.write_text(f"{before}turns: {{}}\nlogs: {{level: debug}}\n")
    changed = ask(browser, "config.show")
    assert (changed["differences"], [one["severity"] for one in changed["findings"]]) == ([], ["error"])
    gateway.home.config.write_text(f"{before}logs: {{level: debug}}\n")
    assert ask(browser, "config.show")["differences"] == ["logs.level"]
    assert "not in force: logs.level" in gateway.cli("config", "show", "--running").stderr
    gateway.home.config.write_text(before)
    assert (
        ask(browser, "config.show")["settings"]
        == json.loads(gateway.cli("config", "show", "--running", "--json").stdout)["settings"]
    )


def test_activity_comes_page_by_page_the_last_first(gateway: GatewayProcess, browser: Browser) -> None:
    whole = gateway.call("activity.list")["activity"]
    found: list[Any] = []
    before = 0
    while True:
        page = ask(browser, "activity.list", last=2, before=before)
        found = page["activity"] + found
        if not (before := page["before"]):
            break
    assert (len(whole) > 4, found) == (True, whole)
    shown = gateway.cli("activity", "list", "-n", "2", "--json")
    assert json.loads(shown.stdout)["activity"] == whole[-2:]
    assert "the same with --before" in shown.stderr


def test_what_hooks_decided_stands_in_its_place_and_stays(gateway: GatewayProcess, browser: Browser) -> None:
    worst = {"by": "worst", "limit": 3}
    gateway.until(lambda: {one["state"] for one in gateway.call("hooks.list", worst)["hooks"]} == {"loaded"})
    gateway.say("which hour is it", "clock")
    gateway.say("the secret", "clock")
    gateway.stop()
    gateway.start()
    browser.url = str(gateway.call("status")["web"]["url"])
    shown = ask(browser, "sessions.show", session=KEY.format("clock"))
    assert [one["role"] for one in shown["entries"]] == ["user", "assistant", "tool", "assistant"]
    assert [tuple(one.values()) for one in shown["decisions"]] == [
        (0, "polite", "message:received", "change", "text"),
        (2, "gate", "tool:before", "deny", "the <b>clock</b> is private"),
        (4, "bouncer", "message:received", "deny", "not here"),
    ]
    part = ask(browser, "sessions.show", session=KEY.format("clock"), limit=1)
    assert [one["hook"] for one in part["decisions"]] == ["bouncer"]
    said = gateway.cli("sessions", "show", KEY.format("clock")).stdout
    assert said.index("hook gate: deny at tool:before: the <b>clock</b> is private") < said.index("Nobody tells me.")
    assert (
        "> hook polite: change at message:received: text"
        in gateway.cli("sessions", "export", KEY.format("clock")).stdout
    )


def test_it_can_be_put_on_a_home_screen(browser: Browser) -> None:
    manifest = browser.get("/static/page.webmanifest")
    assert manifest.headers["content-type"] == "application/manifest+json"
    assert "manifest-src 'self'" in browser.page.headers["content-security-policy"]
    icons = json.loads(manifest.body)["icons"]
    for icon in icons[1:]:
        image = browser.get(icon["src"])
        size = "x".join(str(int.from_bytes(image.body[at : at + 4], "big")) for at in (16, 20))
        assert (image.headers["content-type"], image.body[:4], size) == ("image/png", b"\x89PNG", icon["sizes"])
    assert [icon.get("purpose") for icon in icons] == [None, None, None, "maskable"]


def test_a_conversation_is_exported_by_its_id_alone_and_forgotten(gateway: GatewayProcess, browser: Browser) -> None:
    for name in ("../../etc/passwd", "/etc/passwd", "..", "agent:main:../x"):
        assert browser.do("sessions.export", session=name, format="markdown").status == 409
    assert browser.do("sessions.export", session=KEY.format("s3"), format="../x").status == 400
    exported = browser.do("sessions.export", session=KEY.format("s3"), format="markdown")
    assert json.loads(exported.body)["text"].startswith("# word 3")
    assert browser.do("sessions.delete", session=KEY.format("s3")).status == 200
    assert browser.get(f"/api/sessions.show?session={KEY.format('s3')}").status == 409
    done = [(one["what"], one["place"].partition(" ")[0]) for one in gateway.call("activity.list")["activity"]]
    assert {("sessions.export", "page"), ("sessions.delete", "page")} <= set(done)
