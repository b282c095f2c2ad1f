"""Each thing that is done on the page, done with mouse or keyboard in a real browser, and seen in the gateway."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Browser, Locator, Route, expect

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.reference import describe_setting
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.browser.busy_home import ACTING, LETTERS, bury_letters
from tests.browser.conftest import OpenScreen, make_screens
from tests.browser.screen import PATIENCE, WIDTHS, Screen

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

COMMAND = f"echo 'it ran'; echo {ACTING!r} \u202eback"
RUN = {"tool_calls": [{"name": "shell", "args": {"command": COMMAND}}]}
TURNS: list[dict[str, Any]] = [
    *[{"user": "run", "answers": [RUN, {"text": "it ran"}]}] * 9,
    {"user": "endless", "chunks": ["and "] * 3000, "delay": "100ms"},
]
PRINTS = "def handle(event_type, context):\n    print(event_type)\n"
ASKS = f"""
def handle(event_type, context):
    if "which" in str(context["message"]):
        return {{"decision": "ask", "prompt": "Which one? {ACTING}", "name": "side"}}
"""
FALLS = """
def handle(event_type, context):
    if "fall" in str(context["message"]):
        raise ValueError("it fell")
"""
HOOKS = {
    "watches": ("events: [agent:end]\n", PRINTS),
    "asks": ("intercepts: [agent:start]\n", ASKS),
    "courier": ("events: [session:end]\ndelivery: durable\n", PRINTS),
    "falls": ("events: [agent:start]\n", FALLS),
}


@pytest.fixture(scope="module", params=list(WIDTHS))
def viewport(request: pytest.FixtureRequest) -> dict[str, int]:
    """All of it is done on a phone too."""
    return WIDTHS[request.param]


@pytest.fixture(scope="module")
def wire(viewport: dict[str, int]) -> TelegramWire:
    """Make a wire for each gateway: one gateway for each width, since its actions stay done."""
    assert viewport
    return TelegramWire()


@pytest.fixture(scope="module")
def open_screen(chromium: Browser, gateway: GatewayProcess, viewport: dict[str, int]) -> OpenScreen:
    """Open a screen of this width."""
    return make_screens(chromium, gateway, viewport=viewport)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, wire: TelegramWire) -> Iterator[GatewayProcess]:
    """One in which something can be done."""
    with (
        GatewayProcess(tmp_path_factory.mktemp("acts") / "home") as gateway,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(wire.serving()),
    ):
        gateway.environ |= wire.environ
        gateway.script(*TURNS, settings="tools: {shell: ask}\n")
        for name, (manifest, handler) in HOOKS.items():
            gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler})
        portal.call(bury_letters, gateway)
        gateway.start()
        gateway.until(lambda: {state_of(gateway, name) for name in HOOKS} == {"loaded"})
        portal.call(partial(wire.write, "let me in", by=STRANGER))
        gateway.until(lambda: bool(gateway.call("pairing.list")["asking"]))
        yield gateway


def state_of(gateway: GatewayProcess, hook: str) -> str:
    return str(gateway.call("hooks.info", {"name": hook})["state"])


def said_in(gateway: GatewayProcess, session: str) -> str:
    return str(gateway.call("sessions.show", {"session": f"agent:main:terminal:dm:{session}"}))


def button(where: Screen | Locator, name: str) -> Locator:
    place = where.room if isinstance(where, Screen) else where
    return place.get_by_role("button", name=name, exact=True)


def form_of(screen: Screen, name: str) -> Locator:
    return screen.room.locator("form").filter(has=screen.page.get_by_role("button", name=name))


def asked_of(screen: Screen) -> Locator:
    """Return what waits for a decision, beside all else that needs somebody."""
    return screen.room.locator("article[aria-labelledby^=asked-]")


def press(screen: Screen, found: Locator) -> None:
    """By the keyboard."""
    found.focus()
    screen.page.keyboard.press("Enter")


def shows(found: Locator, text: str) -> None:
    expect(found).to_contain_text(text, timeout=PATIENCE)


def test_an_approval_is_answered_and_another_tab_sees_it(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.say("run it", session="one")
    with open_screen() as screen, open_screen() as other:
        for each in (screen, other):
            each.enter("overview", "wants to run shell")
            shows(each.page.locator("#count-overview"), "2")
        asked = asked_of(screen)
        expect(asked.locator(".cmd span")).to_have_text(COMMAND.replace("\u202e", "\u27e8U+202E\u27e9"))
        press(screen, button(asked, "Allow once"))
        shows(asked, "Allowed, this once.")
        expect(screen.page.locator("[data-key^='act ']:focus, [data-key^='act '] :focus")).to_have_count(1)
        shows(asked_of(other), "Answered elsewhere.")
        expect(button(other, "Allow once")).to_have_count(0)
        gateway.until(lambda: "it ran" in said_in(gateway, "one"))
        assert screen.faults == other.faults == []


def test_what_was_settled_a_moment_ago_says_so_where_it_is_pressed(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    gateway.say("run it", session="late")
    with open_screen() as screen:
        screen.enter("overview", "wants to run shell")
        screen.page.route("**/api/approvals.list*", lambda route: route.abort())  # it hears of nothing any more
        (asked,) = gateway.call("approvals.list")["approvals"]
        gateway.call("approvals.answer", {"id": asked["id"], "allowed": False})
        press(screen, button(screen, "Allow once"))
        shows(asked_of(screen), "it was answered, or no answer came in time")
        gateway.until(lambda: "did not allow shell to run" in said_in(gateway, "late"))


@pytest.mark.parametrize(("label", "lasts"), [("For this session", "session"), ("Always", "always")])
def test_a_yes_may_last(gateway: GatewayProcess, open_screen: OpenScreen, label: str, lasts: str) -> None:
    gateway.say("run it", session=lasts)
    with open_screen() as screen:
        screen.enter("overview", "For this session and Always allow every call of this tool")
        button(screen, label).click()
        shows(asked_of(screen), "Allowed for")
    gateway.until(lambda: f"({lasts})" in gateway.say("/approvals", session=lasts)["reply"])
    if lasts == "always":
        gateway.say("/approvals revoke 1", session=lasts)


def test_no_is_no(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.say("run it", session="two")
    with open_screen() as screen:
        screen.enter("overview", "wants to run shell")
        shows(screen.room, "Cost today")
        button(screen, "Deny").click()
        gateway.until(lambda: "did not allow shell to run" in said_in(gateway, "two"))
        shows(asked_of(screen), "Denied.")
        screen.enter("hooks", "watches")
        screen.enter("overview", "Cost today")
        expect(screen.room).not_to_contain_text("wants to run shell", timeout=PATIENCE)


def test_a_question_is_answered_in_words_that_stay_while_they_are_written(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    gateway.say("which way?", session="three")
    with open_screen() as screen:
        screen.enter("overview", f"Which one? {ACTING}")
        field = screen.room.get_by_label("Your answer")
        field.fill("the left")
        gateway.say("/status", session="aside")  # something happens, and the room is drawn anew
        with screen.page.expect_response("**/api/approvals.list*"):
            pass
        expect(field).to_be_focused()
        expect(field).to_have_value("the left")
        screen.page.keyboard.press("Enter")
        shows(asked_of(screen), "Answered.")
        assert gateway.call("approvals.list")["questions"] == []
        expect(screen.page).to_have_title(re.compile("need.* · hermes-gateway"))


def test_somebody_is_let_in_by_whoever_knows_them(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("people", STRANGER)
        row = screen.room.get_by_role("article").filter(has_text=STRANGER)
        press(screen, button(row, "Let in as user"))
        shows(row, "Everybody chooses their own name")
        expect(button(row, "Cancel")).to_be_focused()
        screen.page.keyboard.press("Enter")
        expect(row).not_to_contain_text("Everybody")
        press(screen, button(row, "Let in as user"))
        press(screen, button(row, "Let in as user"))
        expect(row).to_have_count(0, timeout=PATIENCE)
        shows(screen.page.locator("#done"), "can write now")
        (guest,) = gateway.call("pairing.list")["people"]
        assert (guest["user_id"], guest["role"]) == (STRANGER, "user")
        screen.room.get_by_label("The code that the bot sent").fill("WRONGONE")
        button(screen, "Let in").click()
        shows(screen.room, "the code was not found")


def test_a_hook_is_switched_off_and_on_and_reloaded(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen, open_screen() as other:
        screen.enter("hooks/watches", "What it can do")
        other.enter("hooks/%3Ftab%3Doff", "Off")
        press(screen, button(screen, "Switch off"))
        shows(screen.room, "It is off")
        expect(button(screen, "Switch on")).to_be_visible(timeout=PATIENCE)
        assert state_of(gateway, "watches") == "disabled"
        assert screen.page.evaluate("document.activeElement !== document.body")
        shows(other.room.get_by_role("row").filter(has_text="watches"), "disabled")
        button(screen, "Switch on").click()
        gateway.until(lambda: state_of(gateway, "watches") == "loaded")
        before = gateway.call("hooks.info", {"name": "watches"})["loaded_at"]
        button(screen, "Reload").click()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "watches"})["loaded_at"] != before)


def test_a_sample_is_fired_and_what_failed_says_why_there(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    calls = gateway.call("hooks.info", {"name": "watches"})["calls"]
    with open_screen() as screen:
        screen.enter("hooks/watches", "Try it")
        button(screen, "Fire").click()
        shows(form_of(screen, "Fire"), "agent:end: ok in")
        assert gateway.call("hooks.info", {"name": "watches"})["calls"] == calls + 1
        shows(screen.room.locator("section").filter(has_text="what it printed last").locator("pre"), "agent:end")
        button(screen, "Replay").click()
        shows(form_of(screen, "Replay"), "sent again")
        gateway.call("hooks.disable", {"name": "watches"})
        button(screen, "Fire").click()
        shows(form_of(screen, "Fire"), "watches is disabled")
        gateway.call("hooks.enable", {"name": "watches"})


def test_dead_letters_are_tried_again_and_thrown_away(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    def left() -> list[Any]:
        return list(gateway.call("hooks.dead_letters")["letters"])

    with open_screen() as screen:
        screen.enter("undelivered", "gave up")
        assert len(left()) == LETTERS
        row = screen.room.get_by_role("row").nth(1)
        button(row, "Drop").click()
        button(row, "Cancel").click()
        assert len(left()) == LETTERS
        button(row, "Retry").click()
        gateway.until(lambda: len(left()) == LETTERS - 1)
        shows(screen.page.locator("#done"), "1 on the way again")
        button(screen, f"Drop all {LETTERS - 1}").click()
        shows(screen.room, "for good?")
        button(screen, f"Drop all {LETTERS - 1}").click()
        shows(screen.room, "Nothing here.")
        assert left() == []


def test_a_network_is_paused_and_goes_on(gateway: GatewayProcess, wire: TelegramWire, open_screen: OpenScreen) -> None:
    def state() -> str:
        return str(gateway.call("platform.list")["platforms"][0]["state"])

    with open_screen() as screen:
        screen.enter("networks", "telegram")
        row = screen.room.get_by_role("row").filter(has_text="telegram").first
        button(row, "Test").click()
        shows(row, "It answered within")
        press(screen, button(row, "Pause"))
        shows(row, "telegram is paused")
        expect(button(row, "Resume")).to_be_visible(timeout=PATIENCE)
        assert state() == "paused"
        press(screen, button(row, "Resume"))
        gateway.until(lambda: state() == "up")
        button(row, "Restart").click()
        shows(row, "telegram is connected again")
        screen.room.get_by_label("To, such as").fill("nowhere")
        screen.room.get_by_label("Text").fill("hello")
        button(screen, "Send").click()
        shows(screen.room.locator("form"), "nowhere")
        screen.room.get_by_label("To, such as").fill(f"telegram:{ANN}")
        button(screen, "Send").click()
        gateway.until(lambda: ("hello", ANN) in [(one.text, one.chat) for one in wire.shown])


def test_a_breaker_is_closed(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    for _ in range(5):
        gateway.say("fall", session="falls")
    gateway.until(lambda: state_of(gateway, "falls") == "tripped")
    with open_screen() as screen:
        screen.enter("hooks/falls", "failed 5 times in a row")
        press(screen, button(screen, "Close its breaker"))
        shows(screen.room, "It is loaded")
        gateway.until(lambda: gateway.call("hooks.info", {"name": "falls"})["breaker"] == "closed")
        expect(button(screen, "Close its breaker")).to_have_count(0, timeout=PATIENCE)


def test_a_conversation_is_stopped_saved_and_forgotten(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.say("a word that stays", session="nine")
    endless = Thread(target=gateway.say, args=("endless", "nine"))
    endless.start()
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
    with open_screen() as screen:
        screen.enter("conversations", "a word that stays")
        screen.room.get_by_role("link", name="a word that stays").click()
        press(screen, button(screen, "Stop"))
        shows(screen.room, "Stopped.")
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 0)
        endless.join()
        for label, ending, begins in (("Export", "md", "# "), ("JSON", "json", "{")):
            with screen.page.expect_download() as saved:
                button(screen, label).click()
            text = Path(saved.value.path()).read_text()
            assert (saved.value.suggested_filename.endswith(f".{ending}"), text.startswith(begins)) == (True, True)
            assert "a word that stays" in text
        button(screen, "Delete").click()
        shows(screen.room, "deleted for good")
        button(screen, "Delete").click()
        shows(screen.page.locator("#done"), "is deleted")
        expect(screen.page).to_have_title("Conversations · hermes-gateway", timeout=PATIENCE)
        expect(screen.room).not_to_contain_text("a word that stays", timeout=PATIENCE)
    assert gateway.cli("sessions", "search", "stays").stdout == "no such message\n"
    assert screen.faults == []


def test_what_was_asked_stays_though_the_room_was_made_before(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.say("a first word", session="ten")
    held: list[Route] = []
    is_asked = Event()

    def hold(route: Route) -> None:
        if is_asked.is_set():
            route.continue_()
        else:
            held.append(route)

    with open_screen() as screen:
        screen.enter("conversations", "a first word")
        screen.room.get_by_role("link", name="a first word").click()
        shows(screen.room, "What was said")
        screen.page.route("**/api/status*", hold)  # the room is made at once, and drawn when this has come
        with screen.page.expect_response(lambda answer: "sessions.show" in answer.url):
            gateway.say("another word", session="ten")
        while not held:
            screen.page.wait_for_timeout(20)  # in which the browser is heard
        button(screen, "Delete").click()
        shows(screen.room, "deleted for good")
        is_asked.set()
        for one in held:
            one.continue_()
        shows(screen.room, "another word")
        shows(screen.room, "deleted for good")
        expect(button(screen, "Cancel")).to_be_focused()


def test_a_changed_setting_is_read_again(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.home.config.write_text(f"{gateway.home.config.read_text()}budgets: {{all: {{day: {{money: 7}}}}}}\n")
    with open_screen() as screen:
        screen.enter("settings", "Changed on disk, not in effect yet")
        press(screen, button(screen, "Reload"))
        shows(screen.page.locator("main"), "Reloaded: budgets.all.day.money.")
        expect(screen.room).not_to_contain_text("not in effect yet", timeout=PATIENCE)
        assert gateway.call("usage")["budgets"][0]["limit"] == 7
        button(screen, "Restart").click()
        shows(screen.room, "Restart?")
        button(screen, "Cancel").click()
        assert screen.faults == []
    gateway.home.config.write_text(gateway.home.config.read_text().replace("budgets: {all: {day: {money: 7}}}\n", ""))
    gateway.call("reload")


def test_a_setting_is_proposed_and_waits_for_an_owner_elsewhere(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    before = gateway.home.config.read_text()
    with open_screen() as screen:
        screen.enter("settings", "model.script")
        expect(screen.room).not_to_contain_text("logs.level")
        screen.room.get_by_role("link", name="With the defaults").click()
        shows(screen.room, "logs.level")
        about = describe_setting(load_settings_schema(), "logs.level")
        screen.room.get_by_role("searchbox").fill(about)
        screen.page.keyboard.press("Enter")
        expect(screen.room.locator(".options li")).to_have_count(1, timeout=PATIENCE)
        shows(screen.room, about[1:].replace("`", ""))
        button(screen, "Change logs.level").click()
        dialog = screen.page.get_by_role("dialog")
        dialog.get_by_role("textbox").fill("debug")
        assert screen.list_barriers() == []
        dialog.get_by_role("button", name="Propose").click()
        shows(dialog, "Nothing has changed yet.")
        dialog.get_by_role("button", name="Close").click()
        screen.enter("overview", "waits for an owner")
        waiting = screen.room.get_by_role("article").filter(has_text="waits for an owner")
        assert waiting.get_by_role("button").all_inner_texts() == ["Withdraw"]
        press(screen, button(waiting, "Withdraw"))
        expect(screen.room).not_to_contain_text("waits for an owner", timeout=PATIENCE)
        assert screen.faults == []
    assert gateway.home.config.read_text() == before


def test_what_is_kept_of_a_person_is_saved(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.say("a word of mine", session="kept")
    with open_screen() as screen:
        screen.enter("people/terminal%3Aowner", "Calls of the model")
        expect(screen.room).to_contain_text("Let people in, and read their conversations here")
        with screen.page.expect_download() as saved:
            button(screen, "Export").click()
        kept = json.loads(Path(saved.value.path()).read_text())
        assert saved.value.suggested_filename == "terminal_owner.json"
        assert json.loads(kept["person.json"])["person"] == "terminal:owner"
        assert any("a word of mine" in text for name, text in kept.items() if name.startswith("sessions/"))


def test_events_are_filtered_and_paused(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("live", "as they happen")
        screen.room.get_by_label("Names, such as tool:*").fill("*:end")
        screen.room.get_by_label("Of this session").fill("dm:six")
        for session in ("five", "six"):
            gateway.say("/new", session=session)
            gateway.say("hello", session=session)
        tail = screen.room.get_by_label("Events, the newest first")
        shows(tail, "A turn ended")
        expect(tail.get_by_role("listitem")).to_have_count(2)  # those of the other session are left out
        names = [row.get_attribute("title") for row in tail.locator("summary").all()]
        assert set(names) <= {"agent:end", "session:end"}
        button(screen, "Pause").click()
        expect(button(screen, "Resume")).to_be_focused()
        count = tail.get_by_role("listitem").count()
        gateway.say("again", session="six")
        gateway.until(lambda: "again" in said_in(gateway, "six"))
        assert tail.get_by_role("listitem").count() == count
        button(screen, "Resume").click()
        expect(tail.get_by_role("listitem")).not_to_have_count(count, timeout=PATIENCE)
