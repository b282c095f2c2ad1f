"""Our own regular expressions stay on the loop, and so each takes at most twice as long for twice as much text.

Every pattern of `gateway/` is found, by import and by reading, and tried on texts that are made to be hard for it (see
`hard_texts`), from 1 kB to 1 MB. Patterns of others are tried in the parser's process alone.
"""

import ast
import importlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.adapter_loading import load_part
from tests.hard_texts import HardText, find_hard_texts

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parent.parent
SEARCHES = frozenset({"search", "sub", "subn", "findall", "finditer", "split"})
WAYS = frozenset({"match", "fullmatch"}) | SEARCHES
CALL = re.compile(rf"\.(?:compile|{'|'.join(sorted(WAYS))})\(")
SMALL, LARGE = 1000, 1_024_000
SIZES = [SMALL << doubled for doubled in range(11)]
COMPARED = 16  # each text is compared with one that has a sixteenth of it
MOST = 8.0  # times as long as a linear pattern would take: the machine may be busy
SHORTEST = 0.001  # seconds; what takes less is not measured well
LONGEST = 10.0  # seconds of the processor for one text
SOON = 0.1  # seconds that no short text may take

# Patterns that are made from others, with what they are made of and where their text comes from.
MADE: Mapping[str, str] = {
    "gateway/records/activity.py": "a person's id, as plain signs",
    "gateway/adapters/discord/reader.py": "our own ids, at the beginning",
    "gateway/adapters/shared/adapter_loading.py": "whether somebody else's pattern of ids is one",
    "gateway/adapters/slack/reader.py": "our own id, at the beginning",
    "gateway/cli/security/people.py": "a network's pattern of its ids, which is among those that are tried here",
    "gateway/cli/setup/question.py": "a pattern of ours, in SetupQuestion",
    "gateway/cli/table.py": "our own name, as plain signs, or a program's, up to the next space",
    "gateway/config/checks.py": "a network's pattern of its ids, which is among those that are tried here",
    "gateway/daemon/part_settings.py": "a network's pattern of its ids, which is among those that are tried here",
    "gateway/desk/script.py": "the beginning of our own keys, as plain signs",
    "gateway/dispatcher/chat_names.py": "a network's pattern of its ids, which is among those that are tried here",
    "gateway/engine/subjects.py": "patterns of subjects: plain signs, and stars that stop at a dot",
    "gateway/hermes/load_trial.py": "a plain word",
    "gateway/hermes/plugin_manifest.py": "plain words",
    "gateway/hermes/written_for.py": "plain words",
    "gateway/hermes/tool_guards.py": "plain matchers of shell hooks, on short names; others are left to the parser",
    "gateway/hermes/wires.py": "a plain word; and where no loop is held up, the matcher of a shell hook",
    "gateway/hooks/durable/dead_letters.py": "a pattern of the engine",
    "gateway/hooks/places/hook_files.py": "our own names of files, as plain signs",
    "gateway/hooks/withheld_codes.py": "codes, as plain signs, and signs of a number each kind of code has",
    "gateway/hooks/patterns.py": "globs: `fnmatch` makes a star take what comes first, once for all",
    "gateway/logs/redaction.py": "plain words, and shapes that are among those that are tried here",
    "gateway/people/leftovers.py": "a person's id, as plain signs",
    "gateway/parser/handler.py": "patterns of others: that is what the parser's process is for",
    "gateway/yaml_source/scalars.py": "patterns of settings, which are ours",
}
# Tried by a name that the reader of sources does not see.
USED: Mapping[str, frozenset[str]] = {
    "gateway/agent/toolbox/repository_check.py: SECTION": frozenset({"fullmatch"}),
    "gateway/agent/toolbox/repository_check.py: SETTING": frozenset({"fullmatch"}),
    "gateway/cli/hooks/freeze.py: HOOK_NAME": frozenset({"match"}),
    "gateway/cli/hooks/freeze.py: SKILL_NAME": frozenset({"match"}),
}


@dataclass
class Pattern:
    """One of ours: where it stands, and the ways in which it is used."""

    compiled: "re.Pattern[Any]"
    place: str
    ways: set[str] = field(default_factory=set)

    def run(self, text: str) -> float:
        """The seconds of the processor that it takes."""
        given: Any = text if isinstance(self.compiled.pattern, str) else text.encode("latin-1", "replace")
        began = time.thread_time()
        if self.ways & SEARCHES:
            self.compiled.sub(given[:0], given)
        else:
            self.compiled.match(given)
            self.compiled.fullmatch(given)
        return time.thread_time() - began


def patterns_in(value: Any, depth: int = 0) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | tuple | list | set | frozenset) and depth < 3:
        for one in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(one, depth + 1)


Call = tuple[str, str, ast.Call]


def calls_in(text: str) -> Iterator[Call]:
    """`NAME.match(...)`: the last name before the way, the way, the call."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {*WAYS, "compile"}:
            owner = node.func.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            yield name, node.func.attr, node


@cache
def calls() -> dict[str, list[Call]]:
    """Find the patterns of each file. Files without one are not parsed, since that would cost most of the time."""
    files = sorted((ROOT / "gateway").rglob("*.py"))
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    return {path: list(calls_in(text)) if CALL.search(text) else [] for path, text in texts.items()}


@cache
def uses() -> dict[tuple[str, str], set[str]]:
    """How a name is used: a private one in its own file, any other anywhere."""
    found: dict[tuple[str, str], set[str]] = {}
    for path, found_there in calls().items():
        for name, way, _ in found_there:
            if name != "re" and way in WAYS:
                found.setdefault((path if name.startswith("_") else "", name), set()).add(way)
    return found


def named_patterns() -> Iterator[Pattern]:
    """Those that stand in a module, by name or in a table."""
    for path in calls():
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if module.endswith(("__main__", "worker.boot")) or "/sample" in path:
            continue
        for name, value in vars(importlib.import_module(module)).items():
            for compiled in patterns_in(value):
                ways = uses().get((path if name.startswith("_") else "", name), set())
                yield Pattern(compiled, f"{path}: {name}", set(ways or USED.get(f"{path}: {name}", SEARCHES)))


def written_patterns() -> Iterator[Pattern]:
    """Those that are written where they are used: `re.sub("...", ...)`."""
    for path, found_there in calls().items():
        for name, way, call in found_there:
            if name == "re" and call.args and isinstance(text := getattr(call.args[0], "value", None), str | bytes):
                yield Pattern(re.compile(text), f"{path}:{call.lineno}", {way} & WAYS)


def patterns_of_networks() -> Iterator[Pattern]:
    for network, place in list_places(None).items():
        spec = load_part(place, "settings").SPEC
        for text in (spec.user_id, spec.chat_id):
            yield Pattern(re.compile(text), f"the ids of {network}", {"fullmatch"})
        for shape in spec.token_shapes:
            yield Pattern(re.compile(shape.pattern), f"the tokens of {network}", {"sub"})
        for question in load_part(place, "setup").SETUP.questions:
            yield Pattern(re.compile(question.pattern), f"the questions of {network}", {"fullmatch"})


def shapes_of_secrets() -> Iterator[Pattern]:
    for shape in importlib.import_module("gateway.logs.redaction")._SHAPES:
        yield Pattern(re.compile(shape.pattern), f"the secrets with {shape.signs[0]}", {"sub"})


@cache
def all_patterns() -> list[Pattern]:
    found: dict[re.Pattern[Any], Pattern] = {}
    for one in (*named_patterns(), *written_patterns(), *patterns_of_networks(), *shapes_of_secrets()):
        if one.ways:
            found.setdefault(one.compiled, one).ways.update(one.ways)
    return list(found.values())


def growth_of(pattern: Pattern) -> str:
    """In words, what takes too long; nothing where all is well."""
    texts = find_hard_texts(pattern.compiled)
    slowest = texts
    for size in (18, 22, 100, SMALL):  # small ones first: what doubles with each sign would never end
        times: list[tuple[float, HardText]] = []
        for one in texts:
            took = pattern.run(one.make(size))
            if took > SOON and pattern.run(one.make(size)) > SOON:
                return f"{took:.2f} s for {size} signs of {one}"
            times.append((took, one))
        slowest = [one for _, one in sorted(times, reverse=True)]
    return growth_on(pattern, slowest[0]) if slowest else ""


def growth_on(pattern: Pattern, text: HardText) -> str:
    """What takes too long does so each time; a machine that did something else meanwhile does not."""
    found = ""
    for _ in range(3):
        if not (found := measure_growth(pattern, text)):
            break
    return found


def measure_growth(pattern: Pattern, text: HardText) -> str:
    times: dict[int, float] = {}
    for size in SIZES:
        given = text.make(size)
        times[size] = pattern.run(given)
        if size < LARGE // 16 and times[size] < SOON:  # so short a time is measured well by the shortest of three
            times[size] = min(times[size], pattern.run(given), pattern.run(given))
        before = max(times.get(size // COMPARED, LONGEST), SHORTEST)
        if times[size] > MOST * COMPARED * before or times[size] > LONGEST:
            shown = ", ".join(f"{one // 1000} kB: {took * 1e3:.1f} ms" for one, took in times.items())
            return f"{shown}, for {text}"
    return ""


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "text", [r"(a+)+b", r"a.*b", r"\d+x", r"(?:.*/)?a/.*\Z", r"<!--.*?-->", r"\[[^\]]*\]", r"\s+$"]
)
def test_the_rule_sees_the_sin(text: str) -> None:
    assert growth_of(Pattern(re.compile(text, re.DOTALL), "here", {"sub"}))


@pytest.mark.parametrize("text", [r"(?<!a)a++b", r"a[^ab]*b", r"\bword\b", r"<[^<>]{1,300}>"])
def test_the_rule_sees_no_sin_where_there_is_none(text: str) -> None:
    assert not growth_of(Pattern(re.compile(text), "here", {"sub"}))


def test_every_pattern_is_found() -> None:
    """What is made of others is listed above, with the reason."""
    made = set()
    for path, found_there in calls().items():
        known = {compiled.pattern for value in patterns_by_module(path) for compiled in patterns_in(value)}
        for name, way, call in found_there:
            if (
                name == "re"
                and call.args
                and not isinstance(call.args[0], ast.Constant)
                and not (way == "compile" and known)
            ):
                made.add(path)
    assert made - MADE.keys() == set()
    assert len(all_patterns()) > 100


def patterns_by_module(path: str) -> list[Any]:
    if "worker/boot" in path or "__main__" in path or "/sample" in path:
        return []
    return list(
        vars(importlib.import_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))).values()
    )


@pytest.mark.timeout(400)
def test_twice_the_text_takes_twice_the_time() -> None:
    """One test for all of them: with one for each, every worker would have to find all patterns to collect them."""
    tried = {f"{one.place}: {one.compiled.pattern}": growth_of(one) for one in all_patterns()}
    assert {place: growth for place, growth in tried.items() if growth} == {}
