"""How much there is to read in the documentation, and how it speaks to its readers.

    python -m bench.docs               # ours
    python -m bench.docs FOLDER ...    # beside the pages of other projects
    python -m bench.docs --pages       # each page of ours, the longest first

Pages are the Markdown and reStructuredText files that people wrote: of ours without the generated ones, the list of
changes, the proofs, the troubleshooting and the pages for contributors. Words are counted as `wc -w` does. `you` and
`blocks` are counts for 1,000 words.
"""

import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.prose import FENCE
from tests.reference import PAGES as GENERATED

ROOT = Path(__file__).parent.parent
NOT_COUNTED = {*GENERATED, "docs/performance.md", "docs/troubleshooting.md"}
ALSO = ("README.md", "SECURITY.md")
YOU = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
SUFFIXES = {".md", ".mdx", ".rst"}


def list_own_pages() -> list[Path]:
    """List the pages that count towards the limits of the documentation."""
    docs = ROOT / "docs"
    pages = [ROOT / name for name in ALSO] + sorted(docs.glob("*.md")) + sorted(docs.glob("recipes/*.md"))
    return [page for page in pages if page.relative_to(ROOT).as_posix() not in NOT_COUNTED]


def list_pages(folder: Path) -> list[Path]:
    """List the pages of another project."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def describe(name: str, pages: Iterable[Path]) -> str:
    texts = [page.read_text("utf-8", errors="replace") for page in pages]
    counts = sorted(len(text.split()) for text in texts) or [0]
    words = max(sum(counts), 1)
    you = sum(len(YOU.findall(FENCE.sub("", text))) for text in texts)
    blocks = sum(len(FENCE.findall(text)) for text in texts)
    rates = f"{1000 * you / words:5.1f}  {1000 * blocks / words:6.1f}"
    return f"{name[-24:]:24}  {len(texts):5}  {words:7,}  {statistics.median(counts):6,.0f}  {counts[-1]:7,}  {rates}"


def list_rows(arguments: list[str]) -> Iterator[str]:
    yield f"{'':24}  pages    words  median  longest    you  blocks"
    if arguments == ["--pages"]:
        sizes = {page: len(page.read_text("utf-8").split()) for page in list_own_pages()}
        for page in sorted(sizes, key=lambda one: -sizes[one]):
            yield describe(page.name, [page])
    yield describe("ours", list_own_pages())
    yield from (describe(one, list_pages(Path(one))) for one in arguments if not one.startswith("--"))


if __name__ == "__main__":
    print("\n".join(list_rows(sys.argv[1:])))
