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
        expect(screen.page.locator("h1")).to_have_text(room.first_line)
        expect(screen.page).to_have_title(f"{screen.page.locator('h1').inner_text()} · hermes-gateway")
        expect(screen.page.locator("nav [aria-current=page]")).to_contain_text(room.way)
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
        first, *others = {room.way: room for room in reversed(ROOMS)}.values()
        screen.enter(ROOMS[0].address, ROOMS[0].shows)
        screen.page.locator("nav summary").click()
        for room in (*others, first):
            screen.page.locator("#rooms").get_by_role("link", name=room.way).focus()
            screen.page.keyboard.press("Enter")
            expect(screen.page.locator("h1")).to_have_text(room.first_line, timeout=PATIENCE)
            place = screen.page.get_by_label("Your message") if room.way == "Chat" else screen.page.locator("main")
            expect(place).to_be_focused()


def test_rooms_people_and_hooks_are_found_by_a_part_of_their_names(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("overview", "Time to answer")
        screen.page.keyboard.press("Control+k")
        field = screen.page.get_by_role("combobox")
        expect(field).to_be_focused()
        assert screen.list_barriers() == []
        field.fill("moo")
        expect(screen.page.get_by_role("option")).to_have_text(["moodyFails now and then"], timeout=PATIENCE)
        screen.page.keyboard.press("Enter")
        expect(screen.page.locator("h1")).to_have_text("moody", timeout=PATIENCE)
        expect(screen.page.get_by_role("dialog")).to_be_hidden()


def test_a_phone_has_its_rooms_at_the_thumb_and_the_others_behind_more(open_screen: OpenScreen) -> None:
    with open_screen(viewport=PHONE) as screen:
        screen.enter("overview", "Time to answer")
        bar = screen.page.locator("#nav").bounding_box()
        head = screen.page.locator(".head").bounding_box()
        assert bar
        assert head
        assert bar["y"] + bar["height"] == PHONE["height"]
        assert head["height"] <= 52
        assert screen.page.evaluate("document.querySelector('#rooms').scrollWidth") <= PHONE["width"]
        screen.page.get_by_role("button", name="More").click()
        assert screen.list_barriers() == []
        screen.page.get_by_role("option", name="Costs").click()
        expect(screen.page.locator("h1")).to_have_text("Costs", timeout=PATIENCE)


def test_one_cursor_stands_over_all_curves(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("overview", "Time to answer")
        turns = screen.room.locator(".fig").first
        before = turns.inner_text()
        turns.locator(".plot").focus()
        screen.page.keyboard.press("ArrowLeft")
        expect(screen.room.locator(".cursor[visibility=visible]")).to_have_count(4)
        expect(turns).to_contain_text("in 30 min")
        screen.page.keyboard.press("Escape")
        expect(screen.room.locator(".cursor[visibility=visible]")).to_have_count(0)
        assert turns.inner_text() == before


def test_one_skips_what_stands_before_a_room_and_stays_in_it(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("hooks/moody", ACTING)
        screen.page.keyboard.press("Tab")
        expect(screen.page.locator(".skip")).to_be_focused()
        screen.page.keyboard.press("Enter")
        expect(screen.page.locator("main")).to_be_focused()
        expect(screen.page.locator("h1")).to_have_text("moody")


def test_whoever_wants_no_motion_has_none(open_screen: OpenScreen) -> None:
    moves = "() => document.getAnimations().length"
    with open_screen(reduced_motion="reduce") as screen:
        for room in ROOMS:
            screen.enter(room.address, room.shows)
            assert screen.page.evaluate(moves) == 0
