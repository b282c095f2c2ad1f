"""`./x docs`: builds the documentation site into `build/docs/site`, with zensical; a link that leads nowhere ends it.

The pages are those of `docs/` and the ones that lie beside it (README.md is the first). What a page links to that is no
page (folders of code, a licence) is named there, and no link. Nothing on the site comes from elsewhere: it reads and
searches without a network, and from a disk.

For those who write with an agent, each page is on the site as Markdown too, `llms.txt` has a sentence of each, and
`llms-hooks.txt` all that one needs to write a hook.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent, shorten

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.docs_blocks import ROOT

DOCS = ROOT / "docs"
SETTINGS = DOCS / "site.toml"
SEARCH_WORDS = ROOT / "tests" / "search_words.toml"
FOLDER = ROOT / "build" / "docs"
# What the page of a file beside `docs/` is called.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# All that one needs to write a hook, in the order in which one reads it.
ABOUT_HOOKS = (
    *("hooks.md", "hook-yaml.md", "hooks-decide.md", "hooks-gateway.md", "hooks-delivery.md", "hooks-limits.md"),
    *("hooks-sandbox.md", "hooks-processes.md"),
    *("hooks-languages.md", "testing.md", "examples.md"),
)
LONGEST_SENTENCE = 66  # signs, in the overview
CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$|`[^`\n]+`(?!\])", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<sign>!?)\[(?P<text>[^\]]*)\]\((?P<place>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")
ASIDE = re.compile(r"^\*\*(?P<kind>Warning|Note):\*\* (?P<said>.+?)(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)
# What zensical has its pages fetch for the search of a site on a disk, and what they get instead.
FETCHED, OWN = "https://unpkg.com/iframe-worker/shim", "site.js"


def pages(root: Path = ROOT) -> dict[Path, str]:
    """Each file that is a page, with its address on the site."""
    docs = root / "docs"
    inside = {path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))}
    return {**{root / name: address for name, address in BESIDE.items()}, **inside}


def navigation() -> list[dict[str, object]]:
    """The parts of the site, each with its pages."""
    nav: list[dict[str, object]] = tomllib.loads(SETTINGS.read_text("utf-8"))["project"]["nav"]
    return nav


def list_places(nav: object) -> Iterator[str]:
    """The addresses in the navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, Mapping):
        for part in nav.values():
            yield from list_places(part)
    elif isinstance(nav, list):
        for part in nav:
            yield from list_places(part)


def as_page(path: Path, known: Mapping[Path, str]) -> str:
    """Return the page of this file: its links lead to pages of the site."""
    text = path.read_text("utf-8")
    kept, at = [], 0
    for code in CODE.finditer(text):
        kept += [with_links(text[at : code.start()], path, known), code[0]]
        at = code.end()
    return ASIDE.sub(as_aside, "".join([*kept, with_links(text[at:], path, known)]))


def as_aside(found: re.Match[str]) -> str:
    """Return the aside of a paragraph that begins with **Warning:** or **Note:**; a forge shows the paragraph."""
    said = found["said"][:1].upper() + found["said"][1:]
    return f"!!! {found['kind'].lower()}\n\n{indent(said, ' ' * 4)}"


def with_links(text: str, path: Path, known: Mapping[Path, str]) -> str:
    here = Path(known[path]).parent

    def lead(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(path.parent / link["place"]))
        address = known.get(target) or asset(target)
        if address is None:
            return link["text"]
        return f"{link['sign']}[{link['text']}]({os.path.relpath(address, here)}{link['anchor'] or ''})"

    return LINK.sub(lead, text)


def asset(target: Path) -> str | None:
    """The address of a file that goes to the site as it is: a picture, or what one takes away."""
    is_there = target.is_file() and target.is_relative_to(DOCS) and target.suffix in {".svg", ".png", ".json"}
    return target.relative_to(DOCS).as_posix() if is_there else None


def gather(folder: Path) -> None:
    """The pages as zensical reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    known = pages()
    for path, address in known.items():
        (folder / "pages" / address).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / address).write_text(as_page(path, known), "utf-8")
    for path in DOCS.rglob("*"):
        if taken := asset(path):
            (folder / "pages" / taken).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / "pages" / taken)
    shutil.copy(SETTINGS, folder / "zensical.toml")


def put_search(site: Path) -> None:
    """Search needs nothing from elsewhere."""
    shutil.copy(DOCS / OWN, site / OWN)
    for page in site.rglob("*.html"):
        own = os.path.relpath(site / OWN, page.parent)
        page.write_text(page.read_text("utf-8").replace(FETCHED, own), "utf-8")


def add_search_words(site: Path, words: Mapping[str, str]) -> None:
    """Give search an entry for each of these words, which leads to where it is answered, as a book's index does."""
    for file in (site / "search.json", site / "search.js"):
        before, brace, found = file.read_text("utf-8").partition("{")
        index, end = json.JSONDecoder().raw_decode(brace + found)
        items = {item["location"]: item for item in index["items"]}
        entries = [{**items[place], "title": word} for word, place in words.items()]
        # Those that fit alike are shown in this order.
        index["items"] = [*entries, *index["items"]]
        file.write_text(before + json.dumps(index) + (brace + found)[end:], "utf-8")


def read_search_words() -> dict[str, str]:
    """Each word that has a page, with its address on the site."""
    known = pages()
    answers: dict[str, str] = tomllib.loads(SEARCH_WORDS.read_text("utf-8"))["pages"]
    places = {word: place.partition("#") for word, place in answers.items()}
    return {
        word: f"{Path(known[ROOT / page]).with_suffix('.html')}{sign}{anchor}"
        for word, (page, sign, anchor) in places.items()
    }


def put_texts(folder: Path) -> None:
    """Put each page beside itself as Markdown, an overview of all of them, and the pages about hooks as one text."""
    site, texts = folder / "site", {}
    for address in pages().values():
        texts[address] = (folder / "pages" / address).read_text("utf-8")
        (site / address).write_text(texts[address], "utf-8")
    parts = [f"# hermes-gateway\n\n> {tomllib.loads(SETTINGS.read_text('utf-8'))['project']['site_description']}\n"]
    for part in navigation():
        rows = [f"- [{find_title(texts[one])}]({one}): {find_first_sentence(texts[one])}" for one in list_places(part)]
        parts.append("\n".join([f"## {next(iter(part))}\n", *rows, ""]))
    (site / "llms.txt").write_text("\n".join(parts), "utf-8")
    (site / "llms-hooks.txt").write_text("\n\n".join(texts[one].strip() for one in ABOUT_HOOKS) + "\n", "utf-8")


def find_title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ")


def find_first_sentence(text: str) -> str:
    """Return the first sentence below the title, without its links."""
    paragraphs = [one for one in text.split("\n\n")[1:] if one[:1].isalpha() or one.startswith(("[", "*", "`"))]
    words = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraphs[0]).split()) if paragraphs else ""
    return shorten(
        re.split(r"(?<=[.:!?]) (?=[A-Z`*])", words, maxsplit=1)[0].rstrip(":"), LONGEST_SENTENCE, placeholder=" …"
    )


def build(folder: Path) -> int:
    """zensical's exit code: not 0 where a link leads nowhere; it says which."""
    program = Path(sys.executable).parent / "zensical"
    command = [str(program), "build", "--strict", "--clean", "--config-file", str(folder / "zensical.toml")]
    status = subprocess.run(command, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, check=False).returncode
    if not status:
        put_search(folder / "site")
        add_search_words(folder / "site", read_search_words())
        put_texts(folder)
    return status


def main() -> int:
    begun = time.monotonic()
    gather(FOLDER)
    status = build(FOLDER)
    if not status:
        print(f"{FOLDER.relative_to(ROOT)}/site/index.html ({time.monotonic() - begun:.1f} s)")
    return status


if __name__ == "__main__":
    sys.exit(main())
