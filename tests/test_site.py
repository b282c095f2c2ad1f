"""The documentation site: each page has its place, what it is built of needs nothing from elsewhere, and what leads
nowhere is found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import as_page, build, gather, list_places, navigation, pages

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `./x docs` builds it."""
    folder = tmp_path_factory.mktemp("docs")
    gather(folder)
    assert build(folder) == 0
    return folder / "site"


def test_each_page_has_its_one_place() -> None:
    nav = navigation()
    assert sorted(list_places(nav)) == sorted(pages().values())
    assert [list(part) for part in nav] == [["Tutorial"], ["How to"], ["Reference"], ["Explanation"]]


@pytest.mark.process
def test_each_page_is_there_and_asks_for_nothing_from_elsewhere(site: Path) -> None:
    for address in pages().values():
        text = (site / address).with_suffix(".html").read_text("utf-8")
        assert not re.findall(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"?https?://[^>]*>", text), address


@pytest.mark.process
def test_texts_for_agents_have_a_sentence_of_each_page_and_all_about_hooks(site: Path) -> None:
    overview, hooks = ((site / name).read_text("utf-8") for name in ("llms.txt", "llms-hooks.txt"))
    rows = dict(re.findall(r"^- \[.+?\]\((.+?)\): (.+)$", overview, re.MULTILINE))
    assert sorted(rows) == sorted(pages().values())
    assert [address for address, said in rows.items() if not 10 < len(said) < 400] == []
    assert (site / "hooks.md").read_text("utf-8").strip() in hooks
    assert (len(overview) < 12_000, len(hooks) < 80_000) == (True, True)


@pytest.mark.process
@pytest.mark.parametrize("link", ["[there](lost.md)", "[there](page.md#lost)"])
def test_a_link_that_leads_nowhere_ends_the_build(link: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "page.md").write_text(f"# Page\n\nIt is {link}.\n")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "x"\ndocs_dir = "pages"\nsite_dir = "site"\n')
    assert build(tmp_path) != 0
    assert "page.md:3" in "".join(capfd.readouterr())


def test_links_lead_to_pages_and_what_is_none_is_named(tmp_path: Path) -> None:
    page, other, beside = tmp_path / "docs" / "deep" / "page.md", tmp_path / "docs" / "a.md", tmp_path / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "[a](../a.md#b), [first](../../README.md), [code](../../code), `[a](b.md)`\n\n```text\n[a](b)\n```\n"
    )
    known = {page: "deep/page.md", other: "a.md", beside: "index.md"}
    assert as_page(page, known) == ("[a](../a.md#b), [first](../index.md), code, `[a](b.md)`\n\n```text\n[a](b)\n```\n")


def test_notes_and_warnings_are_asides(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n**Warning:** it is `hot`,\nso wait.\n\n- **Note:** in a list\n\n**Note:** Done.\n")
    asides = ("!!! warning\n\n    It is `hot`,\n    so wait.", "- **Note:** in a list", "!!! note\n\n    Done.\n")
    assert as_page(page, {page: "page.md"}) == "\n\n".join(["# Page", *asides])


@pytest.mark.process
def test_ci_builds_it() -> None:
    assert "stage ./x docs\n" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert subprocess.run([sys.executable, "tests/docs.py"], cwd=ROOT, capture_output=True).returncode == 0
