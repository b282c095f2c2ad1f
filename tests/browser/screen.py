"""The page as people see it in a real browser, at one width, in light or dark; and all its failures."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    StorageState,
    expect,
    sync_playwright,
)

from gateway.testing import GatewayProcess
from tests.proof_table import ROOT

PICTURES = ROOT / "build" / "pictures"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--disable-background-networking", "--disable-sync", "--disable-component-update", "--no-first-run")
PATIENCE = 60_000  # milliseconds
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
WIDTHS = {"desk": DESK, "phone": PHONE}
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SERIOUS = ("serious", "critical")
REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']"
# What somebody can act on: each by what it is called, without numbers, since times count on.
NAMES = f"""() => [...document.querySelectorAll("{REACHABLE}")]
    .filter(one => !one.disabled && one.checkVisibility({{ visibilityProperty: true }}))
    .map(one => (one.ariaLabel || one.textContent || one.tagName).replace(/\\d+/g, "0"))"""
# What has the keyboard, by the same name ("": nothing of the page), and whether one can see that.
FOCUSED = """() => {
    const one = document.activeElement, style = getComputedStyle(one)
    const name = one === document.body ? "" : one.ariaLabel || one.textContent || one.tagName
    return [name.replace(/\\d+/g, "0"), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0]
}"""
# Puts the keyboard before everything, wherever it was.
TO_BEGIN = """() => {
    const first = document.body.insertBefore(document.createElement("button"), document.body.firstChild)
    first.focus()
    first.remove()
    window.getSelection().removeAllRanges()
}"""
# What ends to the right of the screen, and stands in nothing that can be scrolled.
CUT = """() => {
    const wide = document.documentElement.clientWidth
    const scrolls = one => /auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth
    const canScroll = one => one && one !== document.documentElement && (scrolls(one) || canScroll(one.parentElement))
    const isCut = one => {
        const box = one.getBoundingClientRect()
        return box.width > 1 && box.right > wide + 1 && !canScroll(one.parentElement)
    }
    const name = one => `${one.tagName.toLowerCase()}.${one.className} ${one.textContent.trim().slice(0, 60)}`
    return [...document.body.querySelectorAll("*")].filter(isCut).map(name)
}"""
# Panels in which one has to scroll sideways.
SIDEWAYS = """() => [...document.querySelectorAll("main .panel")]
    .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.trim().slice(0, 60))"""


class Screen:
    """One tab. `faults` is what the browser complained of, and every request to somewhere else."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.faults: list[str] = []
        self._url = url
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.faults.append(f"{error}\n{error.stack}"))
        self.page.on("request", self._note_request)

    @property
    def room(self) -> Locator:
        """Return the content of the open room."""
        return self.page.locator("#room")

    def enter(self, address: str, shows: str) -> None:
        """Go to a room by its address (`hooks/audit`), and wait until it shows this."""
        self.page.goto(f"{self._url}/#{address}")
        expect(self.room).to_contain_text(shows, timeout=PATIENCE)

    def keep_picture(self, name: str) -> Path:
        """Keep a picture of all of it, however long it is; the run names its place at the end."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path

    def list_barriers(self) -> list[str]:
        """List the barriers to its use that axe finds serious or worse."""
        found = Axe().run(self.page).response["violations"]
        return [describe_barrier(one) for one in found if one["impact"] in SERIOUS]

    def list_cut(self) -> list[str]:
        """List the elements that do not fit into the screen's width, and cannot be scrolled to."""
        return [str(one) for one in self.page.evaluate(CUT)]

    def list_sideways(self) -> list[str]:
        """Which panels are wider inside than they are, so that a part is out of sight."""
        return [str(one) for one in self.page.evaluate(SIDEWAYS)]

    def tab_through(self) -> list[tuple[str, bool]]:
        """Press Tab until the browser's end of the page: what had the keyboard each time, and could one see that?

        A room that changed meanwhile is gone through once more: it lives, and a slow machine sees more of that.
        """
        while True:
            there = self.list_reachable()
            stops = self._press_tab()
            if there == self.list_reachable():
                return stops

    def _press_tab(self) -> list[tuple[str, bool]]:
        self.page.evaluate(TO_BEGIN)
        stops: list[tuple[str, bool]] = []
        while True:
            self.page.keyboard.press("Tab")
            name, is_seen = self.page.evaluate(FOCUSED)
            if not name:
                return stops
            stops.append((name, is_seen))

    def list_reachable(self) -> list[str]:
        """List the elements that can be used, in the order of the page, by their names."""
        return [str(name) for name in self.page.evaluate(NAMES)]

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _note_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self._url).netloc:
            self.faults.append(f"asked elsewhere: {request.url}")


def find_chromium() -> str | None:
    """Whichever this machine has."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def open_chromium(program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@contextmanager
def screens(browser: Browser, url: str, login: StorageState, **options: Any) -> Iterator[Screen]:
    """Open one tab of a logged-in browser; `options` are those of Playwright's contexts."""
    context = browser.new_context(**{"storage_state": login, "viewport": DESK, **options})
    try:
        yield Screen(context, url)
    finally:
        context.close()


def log_in(browser: Browser, gateway: GatewayProcess) -> tuple[str, StorageState]:
    """By the link that `open` prints: the page's address, and what the browser keeps."""
    link = re.search(r"http://\S+", gateway.cli("open").stdout)
    assert link
    context = browser.new_context()
    page = context.new_page()
    page.goto(link[0])
    expect(page.locator("h1")).to_contain_text("need", timeout=PATIENCE)
    kept = context.storage_state()
    context.close()
    return f"http://{urlsplit(link[0]).netloc}", kept


def describe_barrier(violation: dict[str, Any]) -> str:
    places = "; ".join(f"{node['target']} {node.get('failureSummary', '')}" for node in violation["nodes"][:5])
    return f"{violation['impact']}: {violation['help']}: {places}"
