"""The documentation is true: what it shows runs, where it points is something, and what there is has its heading."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs_blocks import Page, is_like
from tests.reference import PAGES as REFERENCE
from tests.reference import page

ROOT = Path(__file__).parent.parent
TRIED = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*TRIED, *sorted(path for path in ROOT.glob("*.md") if path not in TRIED)]
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
# What somebody new reads before anything else.
LONGEST_CHANGE, MOST_OF_0_1_0 = 130, 60
MOST_WORDS = {"README.md": 700, "docs/tutorial.md": 700, "docs/installing.md": 1000, "docs/troubleshooting.md": 1500}
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text("utf-8")))


def headings(path: Path) -> list[str]:
    return re.findall(r"^#{1,6} +(.+?) *#*$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """What can stand behind the `#` of a link: headings in lower case, without punctuation, counted when alike."""
    found: dict[str, int] = {}
    for heading in headings(path):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found[slug] = found.get(slug, 0) + 1
    return {slug if number == 0 else f"{slug}-{number}" for slug, count in found.items() for number in range(count)}


@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", TRIED, ids=name)
def test_every_code_block_does_what_the_page_says(path: Path, tmp_path: Path) -> None:
    Page(path, tmp_path).try_all()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_code_block_is_of_a_kind_that_is_tried(path: Path, tmp_path: Path) -> None:
    tried = Page(path, tmp_path)
    assert (tried.unknown_blocks(), tried.unexplained_skips()) == ([], [])


@pytest.mark.parametrize("listed", REFERENCE)
def test_every_setting_event_and_command_is_listed(listed: str) -> None:
    """`./x reference` writes these pages, with a heading for each."""
    path = ROOT / listed
    is_current = path.is_file() and path.read_text("utf-8") == page(listed)
    assert is_current, f"{listed} is not what there is; ./x reference writes it anew"


@pytest.mark.parametrize(("page", "most"), MOST_WORDS.items())
def test_the_first_pages_are_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text("utf-8").split()) <= most


def faults_of_changes(text: str) -> list[str]:
    """Return the lines that are not headings and no entry of one line, and the first release where it is too long."""
    body = text[text.index("## [Unreleased]") :]
    lines = [line for line in body.splitlines() if line and not line.startswith(("## ", "### "))]
    first = body[body.index("## [0.1.0]") :].splitlines()
    long = [f"0.1.0 has {len(first)} lines"] if len(first) > MOST_OF_0_1_0 else []
    return [line for line in lines if not line.startswith("- ") or len(line) > LONGEST_CHANGE] + long


def test_a_change_is_one_line_of_the_changelog() -> None:
    assert faults_of_changes((ROOT / "CHANGELOG.md").read_text("utf-8")) == []


@pytest.mark.parametrize("line", ["- An entry that goes\n  on below itself.", "- An entry that is " + "long " * 30])
def test_a_longer_entry_is_found(line: str) -> None:
    faults = faults_of_changes(f"## [Unreleased]\n\n### Added\n\n- One.\n{line}\n\n## [0.1.0]\n\n- All.\n")
    assert faults == line.splitlines()[-1:]


def test_the_picture_of_the_floors_is_what_the_imports_are_held_to() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    block = re.search(r"^## Layers$.*?```text\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    shown = [re.split(r"  +", line)[0] for line in block[1].splitlines()] if block else []
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    assert shown == [layer.replace("(", "").replace(")", "") for layer in layers]


def test_no_row_of_a_table_stands_alone() -> None:
    """A table ends with an empty line, so the rows behind one are shown as text."""
    lone = re.compile(r"^\n(\|.*)\n(?!\|[-:| ]+\|$)", re.MULTILINE)
    assert {
        name(path): found for path in PAGES if (found := lone.findall(FENCE.sub("", path.read_text("utf-8"))))
    } == {}


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_into_the_repository_leads_somewhere(path: Path) -> None:
    lost = []
    for link in LINK.findall(prose(path)):
        if not re.match(r"[a-z]+:", link):
            place, _, anchor = link.partition("#")
            target = (path.parent / place) if place else path
            is_there = target.exists() and (not anchor or anchor in anchors(target))
            lost += [] if is_there else [link]
    assert lost == []


def test_a_wrong_block_is_found_with_its_line(tmp_path: Path) -> None:
    shown = tmp_path / "page.md"
    shown.write_text("# A\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        Page(shown, tmp_path).try_all()
    assert caught.value.__notes__ == [f"{shown}:7"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("$ echo one\ntwo", "says, with exit code 0:\none"),
        ("$ false", "ends with 1"),
        ("$ cd /nowhere-at-all", "No such file"),
        ("echo one", "begins with"),
    ],
)
def test_a_command_that_does_otherwise_is_found(block: str, complaint: str, tmp_path: Path) -> None:
    shown = tmp_path / "page.md"
    shown.write_text(f"```console\n{block}\n```\n")
    with pytest.raises(AssertionError, match=complaint):
        Page(shown, tmp_path).try_all()


@pytest.mark.process
def test_a_page_is_one_shell_in_a_home_of_its_own(tmp_path: Path) -> None:
    shown = tmp_path / "page.md"
    shown.write_text(
        "```console\n$ mkdir there && cd there\n$ A=1\n```\n\n```console\n$ pwd; echo $A\n~/desk/there\n1\n```\n"
    )
    Page(shown, tmp_path).try_all()


@pytest.mark.parametrize(
    "block",
    ["# HOOK.yaml\nevents: [agent:strat]\n", "# ~/.hermes/hermes-gateway/config.yaml\ngateway: {shutdown: 3}\n", ""],
)
def test_yaml_is_read_in_earnest(block: str, tmp_path: Path) -> None:
    shown = tmp_path / "page.md"
    shown.write_text(f"```yaml\n{block}```\n")
    with pytest.raises(Exception, match=r"suggest|agent:start|shutdown|first line"):
        Page(shown, tmp_path).try_all()


@pytest.mark.parametrize(
    ("shown", "said", "alike"),
    [("up ... s", "up 3.2 s \n", True), ("a\n...\nz", "a\nb\nc\nz", True), ("a", "ab", False), ("a...z", "a", False)],
)
def test_three_dots_stand_for_anything(shown: str, said: str, alike: bool) -> None:
    assert is_like(shown, said) is alike
