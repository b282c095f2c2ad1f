"""What is read on the page for long: it goes on by itself, tells one's own time, and what is off takes no place."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from gateway.testing import GatewayProcess
from tests.browser.busy_home import ACTING, start_busy
from tests.browser.conftest import OpenScreen
from tests.browser.screen import PATIENCE, PHONE
from tests.web.visits import send

CROWD = [f"telegram:{number}" for number in range(2001, 2151)]
SETTINGS = f"access: {{groups: {{crowd: {{people: {CROWD}}}}}}}\n"
pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

SHIPPED = "comes with the gateway and is off; to switch it on: hermes-gateway hooks enable"
PRINTED_MORE = """before => {
    const log = document.querySelector("[data-key^='log '] pre")
    return log.textContent.split("agent:end").length - 1 > before
}"""
ISO = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("read") / "home") as gateway:
        start_busy(gateway, SETTINGS)
        yield gateway


def test_many_people_are_turned_over_like_pages(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("people", "telegram:")
        rows = screen.room.locator("tbody").first.locator("tr")
        expect(rows).to_have_count(100, timeout=PATIENCE)
        before = rows.locator("td:first-child").all_inner_texts()
        screen.room.get_by_role("link", name="further").click()
        expect(screen.room.get_by_role("link", name="the first")).to_be_visible(timeout=PATIENCE)
        behind = rows.locator("td:first-child").all_inner_texts()
        assert set(CROWD) <= {*before, *behind}
        assert not {*before} & {*behind}
        screen.room.get_by_role("link", name="the first").click()
        expect(rows).to_have_count(100, timeout=PATIENCE)


def test_what_a_hook_prints_is_seen_as_it_prints_it(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("hooks/audit", "observes")
        log = screen.room.locator("[data-key^='log '] pre")
        expect(log).to_contain_text("agent:end", timeout=PATIENCE)
        before = log.inner_text().count("agent:end")
        screen.page.route("**/api/hooks.info*", lambda route: route.abort())  # the room itself is not drawn anew
        gateway.say("good morning", session="printed")
        screen.page.wait_for_function(PRINTED_MORE, arg=before)


def test_a_conversation_is_known_by_its_first_words(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    key = gateway.call("keys.create", {"name": "script", "role": "user", "agent": "main"})["key"]
    body = json.dumps({"model": "main", "messages": [{"role": "user", "content": f"sum up {ACTING}"}]}).encode()
    head = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
    url = str(gateway.call("status")["web"]["url"])
    assert send(url, "/v1/chat/completions", "POST", body, **head).status == 200
    with open_screen(viewport=PHONE) as screen:
        screen.enter("conversations", "sum up")
        link = screen.room.get_by_role("link", name="sum up")
        expect(link).to_have_text(f"sum up {ACTING} call · script")
        expect(screen.room.get_by_role("link", name="good morning dm · talk0")).to_be_visible()
        assert screen.list_cut() == screen.list_barriers() == []
        link.click()
        expect(screen.room.locator("h2").first).to_have_text(f"sum up {ACTING}")


def test_times_are_told_by_the_clock_of_whoever_reads(open_screen: OpenScreen) -> None:
    with open_screen(timezone_id="Asia/Tokyo", locale="en-GB") as screen:
        screen.enter("conversations", "talk0")
        screen.room.get_by_role("link", name="talk0").click()
        times = screen.room.locator("dl time")
        expect(times).to_have_count(2, timeout=PATIENCE)
        for time in times.all():
            expect(time).to_have_attribute("title", ISO)
            shown = screen.page.evaluate("iso => new Date(iso).toLocaleString()", time.get_attribute("title"))
            assert time.inner_text() == shown
            assert not ISO.match(shown)


def test_what_comes_with_the_gateway_and_is_off_is_one_line(open_screen: OpenScreen) -> None:
    with open_screen(viewport=PHONE) as screen:
        screen.enter("hooks", "quiet")
        folded = screen.room.locator("details").filter(has_text="that come with the gateway are off")
        told = screen.room.get_by_text(SHIPPED)
        expect(told.first).to_be_hidden()
        folded.locator("summary").press("Enter")
        expect(told.first).to_be_visible()
        expect(folded.get_by_text(SHIPPED)).to_have_count(told.count())
        assert screen.list_barriers() == screen.list_cut() == []
