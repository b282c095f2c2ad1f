"""One value of a YAML text changes, and no byte of any other line does: texts and edits that nobody chose."""

import random
import re
from typing import Any, NamedTuple

import pytest
import yaml

from gateway.yaml_source.edit import EditError, remove_value, set_value
from gateway.yaml_source.parser import parse_yaml
from gateway.yaml_source.tree import SourceLocation, YamlMapping, YamlNode, YamlScalar, YamlSequence

HERE = SourceLocation("here")
KEYS = ("level", "idle", "größe", "a b", "名前", "x-y", "n.1", "true", "17", "quote'd", "users")
TEXTS = (
    "2h",
    "debug",
    "17",
    "grün",
    "true",
    "a: b",
    "# no comment",
    "it's",
    "",
    "  space",
    "日本 \U0001f600",
    "x\ny\n",
    "-",
    "[1",
    "a\u2028b",
)


class Line(NamedTuple):
    """A line, and the key path that it belongs to: of a comment, the section that it is in."""

    text: str
    owner: tuple[str, ...]
    kind: str


def plain(value: Any) -> str:
    return (
        yaml.dump(value, Dumper=yaml.SafeDumper, default_flow_style=True, allow_unicode=True, width=10**6)
        .removesuffix("...\n")
        .strip()
    )


class Writer:
    """Writes a section in a way that a person might."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[Line] = []

    def comment(self, path: tuple[str, ...], indent: str) -> None:
        for _ in range(self.dice.choice((0, 0, 0, 1, 2))):
            text = self.dice.choice((f"{indent}# ü: note", "# at the margin", "", f"{indent}#", "   "))
            self.lines.append(Line(text, path, "comment"))

    def section(self, path: tuple[str, ...], indent: str, depth: int) -> None:
        step = " " * self.dice.choice((1, 2, 4))
        for key in self.dice.sample(KEYS, self.dice.randint(1, 4)):
            self.comment(path, indent)
            self.pair((*path, key), indent, step, depth)
        self.comment(path, indent)

    def pair(self, path: tuple[str, ...], indent: str, step: str, depth: int) -> None:
        quoted = self.dice.choice((f'"{path[-1]}"', path[-1], path[-1])) if path[-1] != "quote'd" else path[-1]
        key = f"{indent}{quoted}:"
        note = self.dice.choice(("", "", "  # why: not"))
        kind = self.dice.choice(("plain", "plain", "flow", "list", "block", "null", "section", "section"))
        if kind == "section" and depth < 3:
            self.lines.append(Line(f"{key}{note}", path, "head"))
            self.section(path, indent + step, depth + 1)
        elif kind == "list":
            self.lines.append(Line(f"{key}{note}", path, "value"))
            inner = indent + self.dice.choice(("", step))
            self.lines += [Line(f"{inner}- {one}", path, "value") for one in ("1", "'zwei'  # zwei")]
        elif kind == "block":
            mark = self.dice.choice(("|", ">", "|-", "|+", ">+"))
            self.lines.append(Line(f"{key} {mark}{note}", path, "value"))
            self.lines += [Line(one and f"{indent}{step}{one}", path, "value") for one in ("line # of it", "", "ende")]
        elif kind == "flow":
            flow = self.dice.choice(("{idle: 1, level}", "{}", "[a, 'b']", '{"users": [1, 2], level: {idle: "x"},}'))
            self.lines.append(Line(f"{key} {flow}{note}", path, "flow"))
        else:
            value = "" if kind == "null" else f" {self.dice.choice(('17', 'grün', chr(34) + '#' + chr(34), 'it is'))}"
            self.lines.append(Line(f"{key}{value}{note}", path, "flow"))


def load(data: bytes) -> Any:
    """What another reader makes of it: all scalars as text."""
    return yaml.load(data.decode("utf-8-sig"), Loader=yaml.BaseLoader) or {}


def make_value(dice: random.Random) -> tuple[YamlNode, Any]:
    text = dice.choice(TEXTS)
    scalar = YamlScalar(HERE, text, quoted=dice.random() < 0.3)
    match dice.randrange(4):
        case 0:
            return YamlSequence(HERE, (scalar, YamlScalar(HERE, "2"))), [text, "2"]
        case 1:
            return YamlMapping(HERE, ((YamlScalar(HERE, "users"), scalar),)), {"users": text}
    return scalar, text


def put(tree: Any, path: tuple[str, ...], value: Any) -> Any:
    below = tree if isinstance(tree, dict) else {}
    return {**below, path[0]: put(below.get(path[0], {}), path[1:], value)} if path else value


def drop(tree: Any, path: tuple[str, ...]) -> Any:
    below = drop(tree[path[0]], path[1:]) if path[1:] else {}
    return {**tree, path[0]: below} if below else {key: one for key, one in tree.items() if key != path[0]}


def paths_of(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = (
        [one for key, value in tree.items() for one in paths_of(value, (*path, key))] if isinstance(tree, dict) else []
    )
    return [path, *below] if path else below


def begins(path: tuple[str, ...], with_this: tuple[str, ...]) -> bool:
    return path[: len(with_this)] == with_this


def check_lines(lines: list[Line], before: list[str], after: list[str], path: tuple[str, ...]) -> None:
    """All lines that went belong to the path: to its value, or to the one line that its section is."""
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    for at in range(first, len(before) - last):
        line = lines[at]
        is_kept = before[at].rstrip("\r\n") in {one.rstrip("\r\n") for one in after[first : len(after) - last]}
        if is_kept and (before[at] in after or at == len(before) - 1):
            continue  # the last line gets its end where another follows it
        inside = begins(line.owner, path)
        around = line.kind == "flow" and begins(path, line.owner)
        behind = not line.text.strip() and begins(last_written(lines[:at]), path)  # a block scalar may hold it
        assert inside or around or behind, (path, line, before, after)


def last_written(lines: list[Line]) -> tuple[str, ...]:
    return next((line.owner for line in reversed(lines) if line.text.strip()), ())


def try_one(seed: int) -> str:
    dice = random.Random(seed)
    writer = Writer(seed)
    writer.section((), "", 0)
    line_break = dice.choice(("\n", "\n", "\r\n"))
    text = line_break.join(line.text for line in writer.lines) + dice.choice((line_break, line_break, ""))
    data = (dice.choice(("", "", "\ufeff")) + text).encode()
    if any(one.severity == "error" for one in parse_yaml(data, "").findings):
        return "unreadable"
    tree = load(data)
    known = paths_of(tree)
    path = dice.choice(known) if dice.random() < 0.6 else (*dice.choice([(), *known]), dice.choice(KEYS))[:4]
    removes = dice.random() < 0.3
    node, value = make_value(dice)
    changed_path = path
    try:
        if removes:
            after = remove_value(data, path)
            wanted = drop(tree, path)
            while len(changed_path) > 1 and not _has(wanted, changed_path[:-1]):
                changed_path = changed_path[:-1]
        else:
            after = set_value(data, path, node)
            wanted = put(tree, path, value)
    except EditError as error:
        return f"refused: {error}"
    assert load(after) == wanted, (seed, path, text, after.decode())
    assert after.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
    before, now = (split_lines(one) for one in (data, after))
    if len(before) == len(writer.lines):
        check_lines(writer.lines, before, now, changed_path)
    return "done"


def split_lines(data: bytes) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n)|[^\r\n]+", data.decode("utf-8-sig"))


def _has(tree: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return True


def count(seeds: range) -> dict[str, int]:
    found: dict[str, int] = {}
    for seed in seeds:
        outcome = try_one(seed)
        found[outcome] = found.get(outcome, 0) + 1
    return found


def hold(found: dict[str, int], tried: int) -> None:
    reasons = {"refused: is not set in the file", "refused: cannot be written: its section is not a mapping"}
    vain = sum(times for outcome, times in found.items() if outcome.startswith("refused") and outcome not in reasons)
    assert found["done"] > tried * 0.5, found
    assert vain <= tried * 0.01, found


def test_an_edit_changes_the_lines_of_its_value_alone() -> None:
    hold(count(range(300)), 300)


@pytest.mark.thorough
def test_ten_thousand_edits_change_the_lines_of_their_values_alone() -> None:
    hold(count(range(300, 10_300)), 10_000)
