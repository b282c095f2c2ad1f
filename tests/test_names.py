"""Names say what they are in words that `docs/contributing/names.md` lists. Each rule is shown a sin first.

A word that is new is a decision: it is added to the list, and the commit that adds it says why.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"  # has the words that no name may have
LISTS = ROOT / "docs" / "contributing" / "names.md"
VERBS, OTHERS = "Verbs", ("Nouns", "Other words")
SUITES = ("suite", "suite_groups", "suite_media", "suite_parts", "plugin")
SENTENCES = tuple(f"gateway/testing/networks/{name}.py" for name in SUITES)
HERMES_NAMES = ("gateway/hermes/shim/", "gateway/hermes/modules.py")  # what handlers written for Hermes import

ASKS = re.compile(r"(is|has|can|needs|wants)_")
CONVERTS = re.compile(r"(as|to|from)_.|.+_(of|from|as|to)(_|$)")
# Functions whose name is not a verb, and who wants it so.
FORCED = {
    "gateway/agent/models/demo_agent.py:time": "a tool: the model reads its name",
    "gateway/agent/models/script.py:script": "public in 0.1, as gateway.testing.script",
    "gateway/agent/toolbox/chat.py:scheduled": "a tool: the model reads its name",
    "gateway/agent/tools.py:tool": "public in 0.1: a decorator",
    "gateway/events/event.py:on": "public in 0.1: a decorator",
    "gateway/hooks/remote.py:interceptor": "public in 0.1",
    "gateway/testing/live_gateway.py:gateway_in": "public in 0.1: a context manager",
    "gateway/testing/live_gateway.py:until": "a test's word: it reads as a sentence",
    "gateway/testing/networks/house.py:housed": "a test's word: a context manager",
}
# Class names that stand twice, and who wants it so.
TWICE = {
    "hookregistry": "Hermes's handlers import theirs by the name that ours has",
    "wire": "a network's, which a test plays, beside a hook's",
}


@dataclass(frozen=True)
class Name:
    """A file, a public class or a public function, and where it is."""

    kind: str
    text: str
    path: str

    @property
    def words(self) -> list[str]:
        return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", self.text)]


def names_in(path: str, source: str) -> Iterator[Name]:
    """All that others see: the file, its classes and functions without an underscore before them."""
    if path.startswith(HERMES_NAMES):
        return
    stem = Path(path).parent.name if path.endswith("__init__.py") else Path(path).stem
    yield Name("file", stem, path)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield Name("class", node.name, path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_sentence(path, node.name):
            yield Name("function", node.name, path)


def is_sentence(path: str, function: str) -> bool:
    """Private, or a test for others to run, whose name is a sentence; or what is called by a name of its own.

    So pytest calls its own, and an answer has the name of its verb (tests/daemon/test_verbs.py).
    """
    return function.startswith("_") or path in SENTENCES or "/answers" in path


def classes_in(path: str, source: str) -> Iterator[Name]:
    """All classes, private ones and those in functions too."""
    return (Name("class", node.name, path) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))


@cache
def sources() -> dict[str, str]:
    files = sorted((ROOT / "gateway").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}


def listed(page: str, section: str) -> list[str]:
    """The words of a section, in its order: `- **group**: word, word`."""
    found = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    groups = re.findall(r"^- \*\*.*?\*\*: (.*?)(?=^- |^$|\Z)", found[1] if found else "", re.MULTILINE | re.DOTALL)
    return [word for group in groups for word in re.findall(r"[a-z0-9]+", group)]


def avoided(page: str) -> set[str]:
    """The words of the column `not`."""
    rows = re.findall(r"^\| \*\*.*\|([^|]*)\|$", page, re.MULTILINE)
    return {word.strip() for row in rows for word in row.split(",") if word.strip()}


def is_listed(word: str, words: set[str]) -> bool:
    """A plural is its singular."""
    return bool({word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)} & words)


def strange_words(names: list[Name], page: str) -> list[str]:
    words = {word for section in (VERBS, *OTHERS) for word in listed(page, section)}
    return [
        f"{name.path}: {name.text}: {word!r} is not in docs/contributing/names.md"
        for name in names
        for word in name.words
        if not is_listed(word, words)
    ]


def avoided_words(names: list[Name], page: str) -> list[str]:
    words = avoided(page)
    return [
        f"{name.path}: {name.text}: say something else for {word!r}"
        for name in names
        for word in name.words
        if word in words
    ]


def unused_words(names: list[Name], page: str) -> list[str]:
    used = {
        form
        for name in names
        for word in name.words
        for form in (word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word))
    }
    return [word for section in (VERBS, *OTHERS) for word in listed(page, section) if word not in used]


def functions_without_verb(names: list[Name], page: str) -> list[str]:
    verbs = set(listed(page, VERBS))
    return [
        f"{name.path}: {name.text} neither begins with a verb of docs/contributing/names.md nor asks nor converts"
        for name in names
        if name.kind == "function"
        and name.words[0] not in {*verbs, "main"}
        and not ASKS.match(name.text)
        and not CONVERTS.match(name.text)
        and f"{name.path}:{name.text}" not in FORCED
        and not name.path.startswith(HERMES_NAMES)
    ]


def double_classes(classes: list[Name]) -> list[str]:
    """Names that differ by a number or an underscore are the same name."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in classes:
        found[re.sub(r"[_\d]", "", name.text).lower()].append(f"{name.path}: {name.text}")
    return [f"{' and '.join(places)}" for key, places in found.items() if len(places) > 1 and key not in TWICE]


@cache
def all_names() -> list[Name]:
    return [name for path, source in sources().items() for name in names_in(path, source)]


@cache
def all_classes() -> list[Name]:
    return [name for path, source in sources().items() for name in classes_in(path, source)]


PAGE = """# Glossary

| word | what it is | not |
|---|---|---|
| **lane** | a queue | channel, track |

## Verbs

- **all**: read, write

## Nouns

- **all**: lane, entry, file

## Other words

- **all**: of
"""


@pytest.mark.parametrize(
    ("find", "source", "sinner"),
    [
        (strange_words, "class LaneKeeper: ...", "keeper"),
        (strange_words, "def read_doorbell(): ...", "doorbell"),
        (avoided_words, "class LaneTrack: ...", "track"),
        (functions_without_verb, "def entries(): ...", "entries"),
        (functions_without_verb, "def lane_write(): ...", "lane_write"),
    ],
)
def test_the_rule_sees_the_sin(find, source: str, sinner: str) -> None:
    found = find(list(names_in("gateway/file.py", source)), PAGE)
    assert [sinner in one for one in found] == [True]


def test_what_is_right_is_let_through() -> None:
    source = "class Entries: ...\ndef read_lane(): ...\ndef is_lane(): ...\ndef lane_of_entry(): ...\nclass _Track: ..."
    names = list(names_in("gateway/lane/__init__.py", source))
    page = PAGE.replace(": of", ": of, is")
    assert [*strange_words(names, page), *avoided_words(names, page), *functions_without_verb(names, page)] == []


def test_a_class_that_is_there_twice_is_seen() -> None:
    classes = [*classes_in("gateway/a.py", "class Reader: ..."), *classes_in("gateway/b.py", "class _Reader2: ...")]
    assert double_classes(classes) == ["gateway/a.py: Reader and gateway/b.py: _Reader2"]


def test_every_word_in_a_name_is_listed() -> None:
    assert strange_words(all_names(), LISTS.read_text("utf-8")) == []


def test_every_word_of_the_list_is_in_a_name() -> None:
    assert unused_words(all_names(), LISTS.read_text("utf-8")) == []


def test_no_word_is_listed_twice() -> None:
    words = [word for section in (VERBS, *OTHERS) for word in listed(LISTS.read_text("utf-8"), section)]
    assert {word for word in words if words.count(word) > 1} == set()


def test_words_that_the_glossary_avoids_are_in_no_name() -> None:
    assert avoided_words(all_names(), GLOSSARY.read_text("utf-8")) == []


def test_a_public_function_begins_with_a_verb_or_asks_or_converts() -> None:
    assert functions_without_verb(all_names(), LISTS.read_text("utf-8")) == []


def test_a_class_name_is_one_class() -> None:
    assert double_classes(all_classes()) == []
    assert len(TWICE) <= 5


def test_every_exception_is_still_needed() -> None:
    there = {f"{name.path}:{name.text}" for name in all_names() if name.kind == "function"}
    classes = [re.sub(r"[_\d]", "", name.text).lower() for name in all_classes()]
    assert set(FORCED) <= there
    assert all(classes.count(name) > 1 for name in TWICE)
