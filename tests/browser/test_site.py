"""The documentation site in a real browser: it is read and searched from a disk, and asks nobody for anything."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.browser.screen import PATIENCE
from tests.docs import build, gather
from tests.proof_table import ROOT

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


def test_the_pictures_are_taken_from_a_gateway_that_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "tests/pictures.py", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    taken = {path.name for path in tmp_path.iterdir()}
    assert taken == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    drawn = (tmp_path / "terminal.svg").read_text("utf-8").replace("\u00a0", " ")
    assert all(said in drawn for said in ("model       demo", "The result is 84.", "we do no sums here"))
    for name in taken - {"terminal.svg"}:
        with Image.open(tmp_path / name) as picture:
            assert picture.size[0] == 1200
