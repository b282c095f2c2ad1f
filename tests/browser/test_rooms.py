"""Each room of the page in a real browser: wide and narrow, light and dark, by keyboard, and for who cannot see it."""

import pytest
from playwright.sync_api import expect

from tests.browser.busy_home import ACTING
from tests.browser.conftest import OpenScreen
from tests.browser.rooms import ROOMS, Room
from tests.browser.screen import DESK, PATIENCE, PHONE, SCHEMES, WIDTHS

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

each_room = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)


@each_room
def test_a_room_is_shown_to_everybody(open_screen: OpenScreen, room: Room) -> None:
    with open_screen() as screen:
        screen.enter(room.address, room.shows)
        expect(screen.page.locator("h1")).to_have_text(room.title)
        expect(screen.page).to_have_title(f"{room.title} · hermes-gateway")
        expect(screen.page.locator("nav [aria-current=page]")).to_contain_text(room.title)
        for width, viewport in WIDTHS.items():
            screen.page.set_viewport_size(viewport)  # type: ignore[arg-type]
            for scheme in SCHEMES:
                screen.page.emulate_media(color_scheme=scheme)
                screen.keep_picture(f"{room.name}-{width}-{scheme}")
                assert screen.list_cut() == []
                assert screen.list_sideways() == []
                assert screen.list_barriers() == []
        assert screen.faults == []


@each_room
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_room_is_used_by_the_keyboard_alone(open_screen: OpenScreen, room: Room, viewport: dict[str, int]) -> None:
    with open_screen(viewport=viewport) as screen:
        screen.enter(room.address, room.shows)
        stops = screen.tab_through()
        assert [name for name, is_seen in stops if not is_seen] == []
        assert [name for name, _ in stops] == screen.list_reachable()


def test_one_walks_from_room_to_room_by_the_keyboard(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        first, *others = dict.fromkeys(room.title for room in ROOMS)
        screen.enter(ROOMS[0].address, ROOMS[0].shows)
        for title in (*others, first):
            screen.page.locator("nav").get_by_role("link", name=title).focus()
            screen.page.keyboard.press("Enter")
            expect(screen.page.locator("h1")).to_have_text(title, timeout=PATIENCE)
            expect(screen.page.locator("main")).to_be_focused()


def test_one_skips_what_stands_before_a_room_and_stays_in_it(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("hooks/moody", ACTING)
        screen.page.keyboard.press("Tab")
        expect(screen.page.locator(".skip")).to_be_focused()
        screen.page.keyboard.press("Enter")
        expect(screen.page.locator("main")).to_be_focused()
        expect(screen.page.locator("h1")).to_have_text("Hooks")


def test_whoever_wants_no_motion_has_none(open_screen: OpenScreen) -> None:
    moves = "() => document.getAnimations().length"
    with open_screen(reduced_motion="reduce") as screen:
        for room in ROOMS:
            screen.enter(room.address, room.shows)
            assert screen.page.evaluate(moves) == 0
