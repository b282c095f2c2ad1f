"""The documentation site in a real browser: it is read and searched from a disk, and asks nobody for anything."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.screen import PATIENCE
from tests.docs import build, gather

pytestmark = pytest.mark.process


def test_it_is_searched_from_a_disk(chromium: Browser, tmp_path: Path) -> None:
    gather(tmp_path)
    assert build(tmp_path) == 0
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    asked, faults = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(f"{error}\n{error.stack}"))
    page.goto((tmp_path / "site" / "proofs" / "siege.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("pairing")
    expect(page.get_by_role("option", name="hermes-gateway pairing list")).to_be_visible(timeout=PATIENCE)
    assert ([url for url in asked if not url.startswith("file:")], faults) == ([], [])
    page.close()
