"""The documentation site in a real browser: it is read and searched from a disk, without any request elsewhere."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from gateway.errors import GatewayError
from gateway.testing.patience import wait_until
from tests.browser.screen import PATIENCE
from tests.docs import build, gather, read_search_words
from tests.proof_table import ROOT
from tests.recordings import KIND

pytestmark = pytest.mark.process

WORDS = read_search_words()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `./x docs` builds it."""
    folder = tmp_path_factory.mktemp("docs")
    gather(folder)
    assert build(folder) == 0
    return folder / "site"


@pytest.fixture(scope="module")
def search(chromium: Browser, site: Path) -> Iterator[Page]:
    """Its first page, with the search open."""
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((site / "index.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    yield page
    page.close()


@pytest.mark.parametrize("word", WORDS)
def test_search_has_the_page_of_a_word_among_the_first_three(word: str, search: Page) -> None:
    answer = WORDS[word].partition("#")[0]
    search.get_by_role("combobox").fill("")
    expect(search.get_by_role("option")).to_have_count(0)
    search.get_by_role("combobox").fill(word)
    with suppress(GatewayError):  # what it shows instead is said below
        wait_until(lambda: answer in list_shown(search)[:3])
    assert answer in list_shown(search)[:3]


def list_shown(search: Page) -> list[str]:
    """The pages of what was found, in its order."""
    found = search.get_by_role("option").evaluate_all("all => all.map(one => one.href)")
    return [url.partition("/site/")[2].partition("#")[0] for url in found]


def test_it_is_searched_from_a_disk(chromium: Browser, site: Path) -> None:
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    asked, faults = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(f"{error}\n{error.stack}"))
    page.goto((site / "proofs" / "siege.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("pairing")
    expect(page.get_by_role("option", name="hermes-gateway pairing list")).to_be_visible(timeout=PATIENCE)
    assert ([url for url in asked if not url.startswith("file:")], faults) == ([], [])
    page.close()


def test_the_pictures_are_taken_from_a_gateway_that_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "tests/pictures.py", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    taken = {path.name for path in tmp_path.iterdir()}
    kept = list((ROOT / "docs" / "pictures").iterdir())
    of_text = {path.stem for path in kept if path.suffix in {".mmd", KIND}}  # drawn only when their text has changed
    assert taken == {path.name for path in kept if path.stem not in of_text}
    drawn = (tmp_path / "terminal.svg").read_text("utf-8").replace("\u00a0", " ")
    assert all(said in drawn for said in ("model       demo", "The result is 84.", "May I do this sum?"))
    for name in taken - {"terminal.svg"}:
        with Image.open(tmp_path / name) as picture:
            assert picture.size[0] == 1200
