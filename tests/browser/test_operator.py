"""The page of an operator, who a proxy names: what runs is seen and steered, what people and models say is not."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from gateway.testing import GatewayProcess
from tests.browser.busy_home import LETTERS, SAID, TURNS, start_busy
from tests.browser.conftest import OpenScreen
from tests.browser.screen import DESK, PATIENCE, SCHEMES, WIDTHS, Screen, screens

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

NAMED = {"X-Person": "olga"}
SETTINGS = "web: {identity: X-Person, trusted_proxies: [127.0.0.1], people: {olga: operator}}\n"
WORDS = (*SAID, *(str(turn["text"])[:40] for turn in TURNS if "text" in turn), "the clock is private here", "seldom")
ROOMS = ("Overview", "Chat", "Conversations", "Hooks", "Jobs", "Networks", "Costs", "Live", "Logs")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("operated") / "home") as gateway:
        start_busy(gateway, SETTINGS)
        yield gateway


@pytest.fixture(scope="module")
def open_screen(chromium: Browser, gateway: GatewayProcess) -> OpenScreen:
    url = str(gateway.call("status")["web"]["url"])

    def open_one(**options: Any) -> AbstractContextManager[Screen]:
        return screens(chromium, url, {}, extra_http_headers=NAMED, **options)

    return open_one


def test_what_runs_is_shown_and_what_was_said_is_not(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("overview", "Time to answer")
        screen.page.locator("nav summary").click()
        rooms = screen.page.locator("nav #rooms a")
        assert [name.split("\n")[0].strip() for name in rooms.all_inner_texts()] == list(ROOMS)
        for name in ROOMS:
            screen.page.set_viewport_size(DESK)  # type: ignore[arg-type]
            screen.page.locator("#rooms").get_by_role("link", name=name).click()
            expect(screen.page.locator("h1")).to_contain_text("need" if name == "Overview" else name, timeout=PATIENCE)
            expect(screen.room).not_to_contain_text("Loading", timeout=PATIENCE)
            for width, viewport in WIDTHS.items():
                screen.page.set_viewport_size(viewport)  # type: ignore[arg-type]
                for scheme in SCHEMES:
                    screen.page.emulate_media(color_scheme=scheme)
                    assert screen.list_cut() == screen.list_sideways() == screen.list_barriers() == []
                screen.keep_picture(f"operator-{name.lower().replace(' ', '-')}-{width}")
            shown = screen.room.inner_text()
            assert [word for word in WORDS if word in shown] == []
        expect(screen.page.get_by_role("button", name="Log out")).to_be_hidden()
        assert screen.faults == []


def test_there_is_nothing_to_press_that_would_be_refused(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("conversations", "talk0")
        assert screen.room.get_by_role("link").all_inner_texts() == []
        assert screen.room.get_by_role("search").all() == []


def test_a_hook_is_seen_without_what_it_was_given(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("hooks/moody", "Last calls")
        shown = screen.room.inner_text()
        assert [word for word in WORDS if word in shown] == []
        assert screen.room.get_by_role("button").all_inner_texts() == []
        assert screen.faults == []


def test_dead_letters_are_tried_again(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("undelivered", "courier")
        screen.room.get_by_role("button", name=re.compile("^Retry")).first.click()
        gateway.until(lambda: len(gateway.call("hooks.dead_letters", {"name": "courier"})["letters"]) < LETTERS)
        gateway.until(lambda: ("hooks.dead_retry", "web:olga") in list_done(gateway))


def list_done(gateway: GatewayProcess) -> list[tuple[str, str]]:
    return [(one["what"], one["who"]) for one in gateway.call("activity.list")["activity"]]
