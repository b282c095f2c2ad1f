"""How much there is to read in the documentation, and how it speaks to its readers.

    python -m bench.docs               # ours
    python -m bench.docs FOLDER ...    # beside the pages of other projects
    python -m bench.docs --pages       # each page of ours, the longest first
    python -m bench.docs --sample 11   # forty sentences by chance, to read as somebody new: half of pages, half of code

Pages are the Markdown and reStructuredText files that people wrote: of ours without the generated ones, the list of
changes, the proofs, the troubleshooting and the pages for contributors. Words are counted as `wc -w` does. `you` and
`blocks` are counts for 1,000 words. Pages to follow are the tutorials, the how-tos and the recipes.
"""

import ast
import random
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.docs import list_places, navigation, pages
from tests.prose import COMMENT, FENCE, LIST_MARK, list_strings
from tests.reference import PAGES as GENERATED

ROOT = Path(__file__).parent.parent
NOT_COUNTED = {*GENERATED, "docs/performance.md", "docs/troubleshooting.md"}
ALSO = ("README.md", "SECURITY.md")
YOU = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
SUFFIXES = {".md", ".mdx", ".rst"}
SAMPLE, FEWEST_WORDS = 40, 5
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`*\[])|\n\s*\n|\n\s*(?=[-*|]|\d+\.)|\|")


def list_own_pages() -> list[Path]:
    """List the pages that count towards the limits of the documentation."""
    docs = ROOT / "docs"
    pages = [ROOT / name for name in ALSO] + sorted(docs.glob("*.md")) + sorted(docs.glob("recipes/*.md"))
    return [page for page in pages if page.relative_to(ROOT).as_posix() not in NOT_COUNTED]


def list_guides() -> list[Path]:
    """List the tutorials, the how-tos and the recipes among our pages."""
    guides = {
        place for part in navigation() if not {"Tutorial", "How to"}.isdisjoint(part) for place in list_places(part)
    }
    addresses = pages()
    return [page for page in list_own_pages() if addresses[page] in guides]


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


def split_sentences(text: str) -> Iterator[str]:
    for part in SENTENCE_END.split(COMMENT.sub("", FENCE.sub("\n\n", text))):
        sentence = " ".join(LIST_MARK.sub("", part).split())
        if len(sentence.split()) >= FEWEST_WORDS:
            yield sentence


def list_program_texts(source: str) -> Iterator[str]:
    """The texts in code that are not docstrings: help, errors, answers in a chat, lines of the log."""
    statements = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    docstrings = "\n\n".join(str(one.value) for one in statements if isinstance(one, ast.Constant))
    yield from (text for text in list_strings(source) if text not in docstrings)


def draw_sample(seed: int) -> Iterator[str]:
    pages = [(page, sentence) for page in list_own_pages() for sentence in split_sentences(page.read_text("utf-8"))]
    files = sorted((ROOT / "gateway").rglob("*.py"))
    texts = ((path, text) for path in files for text in list_program_texts(path.read_text("utf-8")))
    program = [(path, sentence) for path, text in texts for sentence in split_sentences(text)]
    chance = random.Random(seed)
    for path, sentence in chance.sample(pages, SAMPLE // 2) + chance.sample(program, SAMPLE // 2):
        yield f"{path.relative_to(ROOT)}: {sentence}"


def list_rows(arguments: list[str]) -> Iterator[str]:
    yield f"{'':24}  pages    words  median  longest    you  blocks"
    if arguments == ["--pages"]:
        sizes = {page: len(page.read_text("utf-8").split()) for page in list_own_pages()}
        for page in sorted(sizes, key=lambda one: -sizes[one]):
            yield describe(page.name, [page])
    yield describe("ours", list_own_pages())
    yield describe("ours to follow", list_guides())
    yield from (describe(one, list_pages(Path(one))) for one in arguments if not one.startswith("--"))


if __name__ == "__main__":
    sample = sys.argv[1:2] == ["--sample"]
    print("\n".join(draw_sample(int(sys.argv[2])) if sample else list_rows(sys.argv[1:])))
