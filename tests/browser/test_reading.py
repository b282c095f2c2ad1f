"""Rooms of the page that are read for long: they update themselves, use the local time, and hide unused features."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from gateway.testing import GatewayProcess
from tests.browser.busy_home import ACTING, PASS, start_busy
from tests.browser.conftest import OpenScreen
from tests.browser.screen import PATIENCE, PHONE
from tests.web.visits import send

CROWD = [f"telegram:{number}" for number in range(2001, 2151)]
SETTINGS = f"access: {{groups: {{crowd: {{people: {CROWD}}}}}}}\n"
pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

SHIPPED = "disabled: comes with the gateway and is off; to switch it on"
PRINTED_MORE = """before => {
    const log = document.querySelector("[data-key^='log '] pre")
    return log.textContent.split("agent:end").length - 1 > before
}"""
LOGS_OF_AUDIT = "hermes-gateway hooks logs audit -f"
MORE, FEW = 100, 30  # hooks beside those that have something to show; hooks on a page of a phone
ISO = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("read") / "home") as gateway:
        for number in range(MORE):
            gateway.add_hook(f"hook-{number:04}", {"HOOK.yaml": "events: [gateway:stop]\n", "handler.py": PASS})
        start_busy(gateway, SETTINGS)
        yield gateway


def test_one_of_a_thing_is_one_thing(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("", "Cost today")
        said = screen.page.evaluate(
            "import('/static/dom.js').then(({ counted }) => [counted(1, 'call'), counted(2, 'call'),"
            " counted(1, 'call is', 'calls are')])"
        )
        assert said == ["1 call", "2 calls", "1 call is"]


def test_many_people_are_turned_over_like_pages(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("people", "telegram:")
        rows = screen.room.locator("tbody").first.locator("tr")
        expect(rows).to_have_count(100, timeout=PATIENCE)
        before = rows.locator("td:first-child b").all_inner_texts()
        screen.room.get_by_role("link", name="next").click()
        expect(screen.room.get_by_role("link", name="first")).to_be_visible(timeout=PATIENCE)
        behind = rows.locator("td:first-child b").all_inner_texts()
        assert set(CROWD) <= {*before, *behind}
        assert not {*before} & {*behind}
        screen.room.get_by_role("link", name="first").click()
        expect(rows).to_have_count(100, timeout=PATIENCE)


def test_one_of_many_people_is_found_by_a_part_of_their_id(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("people", "telegram:")
        field = screen.room.get_by_role("searchbox", name="Name or id")
        field.fill("m:2119")
        field.press("Enter")
        rows = screen.room.locator("tbody").first.locator("tr")
        expect(rows).to_have_count(1, timeout=PATIENCE)
        expect(rows.locator("b")).to_have_text("telegram:2119")
        screen.room.get_by_role("link", name="Owners").click()
        expect(screen.room).to_contain_text("No matches.", timeout=PATIENCE)


def test_what_a_hook_prints_is_seen_as_it_prints_it(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("hooks/audit", "What it can do")
        log = screen.room.locator("[data-key^='log '] pre")
        expect(log).to_contain_text("agent:end", timeout=PATIENCE)
        before = log.inner_text().count("agent:end")
        screen.page.route("**/api/hooks.info*", lambda route: route.abort())  # the room itself is not drawn anew
        gateway.say("good morning", session="printed")
        screen.page.wait_for_function(PRINTED_MORE, arg=before)


def test_hundreds_of_hooks_are_a_few_screens_of_a_phone_and_each_is_found(open_screen: OpenScreen) -> None:
    with open_screen(viewport=PHONE) as screen:
        screen.enter("hooks", "audit")
        rows = screen.room.locator("tbody tr")
        shown = rows.locator("td:first-child").all_inner_texts()
        assert len(shown) == FEW
        assert screen.page.evaluate("document.documentElement.scrollHeight") < 6 * PHONE["height"]
        screen.room.get_by_role("link", name="next").click()
        expect(screen.room.get_by_role("link", name="first")).to_be_visible(timeout=PATIENCE)
        assert not {*shown} & {*rows.locator("td:first-child").all_inner_texts()}
        for words, found in (("hook-0077", ["hook-0077"]), ("Keep UP", ["behind"]), ("nobody has this", [])):
            field = screen.room.get_by_role("searchbox", name="Name, description or event")
            field.fill(words)
            field.press("Enter")
            expect(screen.page.locator("h1")).to_have_text(f"Hooks with {words}", timeout=PATIENCE)
            assert rows.locator("td:first-child b").all_inner_texts() == found
            assert screen.list_cut() == screen.list_barriers() == []
        screen.enter("overview", "Time to answer")
        expect(screen.room.get_by_role("link", name="All 1")).to_be_visible()
        assert screen.page.evaluate("document.documentElement.scrollHeight") < 6 * PHONE["height"]


def test_a_conversation_is_known_by_its_first_words(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    key = gateway.call("keys.create", {"name": "script", "role": "user", "agent": "main"})["key"]
    body = json.dumps({"model": "main", "messages": [{"role": "user", "content": f"sum up {ACTING}"}]}).encode()
    head = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
    url = str(gateway.call("status")["web"]["url"])
    assert send(url, "/v1/chat/completions", "POST", body, **head).status == 200
    with open_screen(viewport=PHONE) as screen:
        screen.enter("conversations", "sum up")
        link = screen.room.get_by_role("link", name="sum up")
        expect(link).to_contain_text(f"sum up {ACTING}")
        expect(
            screen.room.get_by_role("link", name="good morning owner · terminal · direct chat · talk0")
        ).to_be_visible()
        assert screen.list_cut() == screen.list_barriers() == []
        link.click()
        expect(screen.page.locator("h1")).to_have_text(f"sum up {ACTING}")


def test_times_are_told_by_the_clock_of_whoever_reads(open_screen: OpenScreen) -> None:
    with open_screen(timezone_id="Asia/Tokyo", locale="en-GB") as screen:
        screen.enter("conversations", "talk0")
        screen.room.get_by_role("link", name="talk0").click()
        times = screen.room.locator(".line time")
        expect(times).to_have_count(2, timeout=PATIENCE)
        for time in times.all():
            expect(time).to_have_attribute("datetime", ISO)
            at = datetime.fromisoformat(str(time.get_attribute("datetime"))).astimezone(ZoneInfo("Asia/Tokyo"))
            assert f"{at:%-H:%M}" in time.inner_text()
            assert "GMT+9" in str(time.get_attribute("title"))


def test_a_line_to_type_is_copied_as_it_is_typed(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen(permissions=["clipboard-read", "clipboard-write"]) as screen:
        screen.enter("hooks/audit", "At the terminal")
        line = screen.room.locator(".cmd").first
        line.get_by_role("button", name="Copy").click()
        expect(line.get_by_role("button")).to_have_attribute("title", "Copied")
        assert screen.page.evaluate("() => navigator.clipboard.readText()") == line.inner_text() == LOGS_OF_AUDIT


def test_what_comes_with_the_gateway_and_is_off_is_one_line(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    states = [one["state"] for one in gateway.call("hooks.list", {"by": "worst"})["hooks"]]
    with open_screen(viewport=PHONE) as screen:
        screen.enter(f"hooks/%3Ffirst%3D{states.index('disabled')}", "quiet")
        folded = screen.room.locator("details").filter(has_text="built-in hooks are off")
        told = screen.room.get_by_text(SHIPPED)
        expect(told.first).to_be_hidden()
        folded.locator("summary").press("Enter")
        expect(told.first).to_be_visible()
        expect(folded.get_by_text(SHIPPED)).to_have_count(told.count())
        assert screen.list_barriers() == screen.list_cut() == []
