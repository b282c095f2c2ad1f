"""Jobs on the page: their moments on a strip, and all that an owner does with one."""

import pytest
from playwright.sync_api import expect

from gateway.testing import GatewayProcess
from tests.browser.conftest import OpenScreen
from tests.browser.jobs_of_a_day import FULL
from tests.browser.screen import PATIENCE

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def test_moments_behind_and_ahead_stand_on_one_strip(open_screen: OpenScreen) -> None:
    with open_screen() as screen:
        screen.enter("jobs", "server-watch")
        row = screen.room.get_by_role("row").filter(has_text="backup-notes")
        said = "6 moments in the last 12 hours, 4 ran, 2 failed; 6 in the next"
        expect(row.get_by_role("img", name=said)).to_be_visible(timeout=PATIENCE)
        expect(row).to_contain_text(FULL)
        expect(screen.room.locator(".beats")).to_have_attribute("aria-label", "11 ran, 2 failed, 1 missed")


def test_what_fails_needs_somebody_and_runs_again_where_it_stands(
    gateway: GatewayProcess, open_screen: OpenScreen
) -> None:
    with open_screen() as screen:
        screen.enter("overview", "backup-notes failed")
        need = screen.room.get_by_role("article").filter(has_text="backup-notes failed")
        need.get_by_role("button", name="Run now").click()
        expect(need).to_have_count(0, timeout=PATIENCE)
    [job] = [one for one in gateway.call("jobs.list")["jobs"] if one["name"] == "backup-notes"]
    assert job["last"]["state"] == "ran"


def test_one_is_made_run_paused_and_removed(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    with open_screen(timezone_id="Asia/Tokyo") as screen:
        screen.enter("jobs", "server-watch")
        screen.room.get_by_role("button", name="Add").click()
        form = screen.page.get_by_role("dialog", name="Add a job")
        assert screen.list_barriers() == []
        for label, text in (("Name", "water plants"), ("What", "Are the plants dry?"), ("When", "every 5s")):
            form.get_by_label(label).fill(text)
        form.get_by_role("button", name="Add").click()
        expect(form).to_contain_text("too often: the shortest interval is 1m", timeout=PATIENCE)
        form.get_by_label("When").fill("30 8 * * *")
        form.get_by_role("button", name="Add").click()
        expect(form).to_be_hidden(timeout=PATIENCE)
        row = screen.room.get_by_role("row").filter(has_text="water-plants")
        expect(row).to_contain_text("daily at 8:30", timeout=PATIENCE)
        row.get_by_role("button", name="Run now").click()
        gateway.until(lambda: [one["state"] for one in history_of(gateway)] == ["ran"])
        row.get_by_role("button", name="Pause water-plants").click()
        expect(row).to_contain_text("paused by hand", timeout=PATIENCE)
        row.get_by_role("button", name="Resume water-plants").click()
        expect(row.get_by_role("button", name="Pause water-plants")).to_be_visible(timeout=PATIENCE)
        made = gateway.call("jobs.show", {"name": "water-plants"})
        assert (made["maker"], made["zone"]) == ("web:owner", "Asia/Tokyo")
        row.get_by_role("link").click()
        expect(screen.page.locator("h1")).to_have_text("water-plants", timeout=PATIENCE)
        expect(screen.room).to_contain_text("1 ran", timeout=PATIENCE)
        screen.room.get_by_role("button", name="Remove").click()
        screen.room.get_by_role("button", name="Remove").click()
        expect(screen.room).not_to_contain_text("water-plants", timeout=PATIENCE)
        assert [fault for fault in screen.faults if "409" not in fault] == []  # the time that was refused


def history_of(gateway: GatewayProcess) -> list[dict[str, object]]:
    found: list[dict[str, object]] = gateway.call("jobs.history", {"name": "water-plants"})["moments"]
    return found
