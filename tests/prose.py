"""`./x check prose`: turns of phrase that docs/contributing/style.md advises against, counted in each file.

It reads the hand-written pages, and in `gateway/` the docstrings and the texts for people.

`tests/prose.toml` holds a ceiling for each file, and ceilings only fall: a file above its ceiling fails the check, and
so does one below it, until `.venv/bin/python tests/prose.py --lower` has written the new number. A file that is not
listed has a ceiling of 0.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.reference import PAGES as GENERATED

ROOT = Path(__file__).parent.parent
CEILINGS = ROOT / "tests" / "prose.toml"
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE_CODE = re.compile(r"``?[^`]+``?")
BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*|]|\d+\.)\s|\|")  # between paragraphs, items of lists and cells of tables
LIST_MARK = re.compile(r"^\s*(?:[-*#]+|\d+\.)\s+")
FEWEST_WORDS = 3  # of a text in code: what is shorter is a name or a key
SENTENCE = r"(?:^|(?<=[.!?:;] ))"


@dataclass(frozen=True)
class Turn:
    """A turn of phrase, a sentence that has it, and the same in plain words."""

    pattern: str
    sin: str
    better: str

    def count(self, text: str) -> int:
        return len(re.findall(self.pattern, text))


TURNS = (
    Turn(
        SENTENCE + r"What\b(?![^.]*\?)",
        "What stands in BOOT.md the agent does at each start.",
        "At each start, the agent does what BOOT.md says.",
    ),
    Turn(
        SENTENCE + r"Who(?:ever|se)?\b(?![^.]*\?)",
        "Whoever may approve is asked.",
        "The gateway asks the people who may approve.",
    ),
    Turn(
        SENTENCE + r"Whether\b",
        "Whether the hook runs, `hooks list` says.",
        "Run `hooks list` to see the hook's state.",
    ),
    Turn(
        SENTENCE + r"(?:Of|Those|Such)\b",
        "Of one that is given up all hooks are told that it is over.",
        "When a turn is given up, every hook is notified.",
    ),
    Turn(
        SENTENCE + r"Where\b(?![^.]*\?)",
        "Where no model is set, the demo answers.",
        "The demo answers if you set no model.",
    ),
    Turn(
        r"\b(?:is|are|was|were|be|been|being) (?:told|given|asked|heard)\b",
        "The hook is told of each message.",
        "The gateway notifies the hook of each message.",
    ),
    Turn(r"\b[Tt]here is (?:none|nothing|no )", "There is no such hook.", "The hook `greet` was not found."),
    Turn(r"\b(?:stands?|lies?)\b", "The setting stands in config.yaml.", "The setting is in config.yaml."),
    Turn(r"\blets? in\b|\blet in\b", "Ann is let in.", "Ann is authorized."),
    Turn(
        r"\bowe[sd]?\b",
        "Replies that are owed are sent at the next start.",
        "Pending replies are sent at the next start.",
    ),
    Turn(r"\ba yes\b", "A tool waits for a yes.", "A tool waits for approval."),
    Turn(r"\b(?:[Ss]omebody|[Nn]obody|[Ww]hoever)\b", "Nobody may read it.", "No other user can read it."),
    Turn(r"\b(?:[Aa]new|[Ll]ikewise|[Bb]esides)\b", "The line is built anew.", "The gateway reconnects."),
)


def list_files() -> Iterator[Path]:
    """List the hand-written files: no page of `./x reference` or `./x prove`, and no past entry of the changelog."""
    yield from sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")
    made = {ROOT / page for page in GENERATED}
    pages = sorted((ROOT / "docs").rglob("*.md"))
    yield from (path for path in pages if path not in made and path.parent.name != "proofs")
    yield from sorted((ROOT / "gateway").rglob("*.py"))


def list_texts(path: Path) -> Iterator[str]:
    """Each paragraph, item and cell of a page, or each text in code, on one line and without code in it."""
    source = path.read_text("utf-8")
    texts = list_strings(source) if path.suffix == ".py" else list_blocks(source)
    for text in texts:
        yield " ".join(INLINE_CODE.sub("`", text).replace("*", "").split())


def list_blocks(source: str) -> list[str]:
    blocks = BLOCK.split(COMMENT.sub("", FENCE.sub("", source)))
    return [LIST_MARK.sub("", block) for block in blocks]


def list_strings(source: str) -> Iterator[str]:
    """An f-string is one text, with a sign in the place of each value."""
    parts: set[int] = set()
    for node in ast.walk(ast.parse(source)):  # what holds others comes before them
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if len(text.split()) >= FEWEST_WORDS:
            yield from re.split(r"\n\s*\n", text)


def count_turns(path: Path) -> int:
    return sum(turn.count(text) for text in list_texts(path) for turn in TURNS)


def count_all() -> dict[str, int]:
    return {path.relative_to(ROOT).as_posix(): count_turns(path) for path in list_files()}


def read_ceilings() -> dict[str, int]:
    return tomllib.loads(CEILINGS.read_text("utf-8"))


def find_faults(ceilings: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[str]:
    for name in sorted({*ceilings, *counts}):
        most, count = ceilings.get(name, 0), counts.get(name, 0)
        if count > most:
            yield f"{name}: {count} turns that docs/contributing/style.md advises against, at most {most} are allowed"
        elif count < most:
            yield f"{name}: {count} turns, fewer than {most}: .venv/bin/python tests/prose.py --lower"


def write_ceilings(ceilings: Mapping[str, int]) -> None:
    text = "# How many turns that docs/contributing/style.md advises against each file may have: see tests/prose.py.\n"
    text += "".join(f'"{name}" = {count}\n' for name, count in ceilings.items() if count)
    CEILINGS.write_text(text, "utf-8")


def main() -> int:
    counts, ceilings = count_all(), read_ceilings()
    if "--lower" in sys.argv[1:]:
        ceilings = {name: min(count, ceilings.get(name, 0)) for name, count in counts.items()}
        write_ceilings(ceilings)
    faults = list(find_faults(ceilings, counts))
    left = f"{sum(counts.values())} turns left, in {sum(map(bool, counts.values()))} files"
    print("\n".join(faults) or left)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
