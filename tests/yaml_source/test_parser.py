"""The reader's accepted and refused files, and that each finding names the place of the fault."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.yaml_source.parser import parse_yaml, read_yaml
from gateway.yaml_source.tree import YamlDocument, YamlMapping, YamlNode, YamlScalar, YamlSequence, to_plain


def findings(text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    return [str(found) for found in parse_yaml(data, "f.yaml").findings]


def scalars(node: YamlNode) -> list[YamlScalar]:
    match node:
        case YamlMapping(pairs=pairs):
            return [one for key, value in pairs for one in (key, *scalars(value))]
        case YamlSequence(items=items):
            return [one for item in items for one in scalars(item)]
        case _:
            return [node]


def test_a_value_keeps_its_place() -> None:
    tree = parse_yaml(b"a:\n  b: [x, y]\n", "f.yaml")
    assert str(tree.place("a", "b")) == "f.yaml:2:6"
    assert str(tree.place("a", "missing")) == "f.yaml:2:3"
    assert [str(one.place) for one in scalars(tree.root)] == ["f.yaml:1:1", "f.yaml:2:3", "f.yaml:2:7", "f.yaml:2:10"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False),
        ("Yes", True),
        ("'no'", "no"),
        ("~", None),
        ("", None),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x1F", 31),
        ("1_000", 1000),
        ("-7", -7),
        ("1.5e3", 1500.0),
        ("1.2.3", "1.2.3"),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("=", "="),
    ],
)
def test_untyped_scalars_become_what_json_can_hold(text: str, value: object) -> None:
    assert to_plain(parse_yaml(f"k: {text}".encode(), "f").root) == {"k": value}


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only a comment\n", b"---\n", b"\xef\xbb\xbf", b"~"])
def test_nothing_is_an_empty_tree_without_findings(text: bytes) -> None:
    tree = parse_yaml(text, "f")
    assert tree.findings == ()


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        (b"a: 1\nb: &x 2\nc: *x\n", "f.yaml:2:4", "anchor"),
        (b"a: *x\n", "f.yaml:1:4", "alias"),
        (b"a: !!python/object:os.system x\n", "f.yaml:1:4", "tag"),
        (b"a: !!str 5\n", "f.yaml:1:4", "tag"),
        (b"a: 1\nb:\n  a: 1\n  a: 2\n", "f.yaml:4:3", "second time"),
        (b"a: 1\n---\nb: 2\n", "f.yaml:2:1", "second document"),
        (b"? [x]\n: y\n", "f.yaml:1:3", "key that is a list"),
        (b"a: 1\nb: \x00\n", "f.yaml:2:4", "U+0000"),
        (b"\x7fELF\x02\x01", "f.yaml:1:1", "U+007F"),
        ("ä: ü\nö: \udcff".encode("utf-8", "surrogateescape"), "f.yaml:2:4", "UTF-8"),
        (b"a: [1,\nb: }", "f.yaml:2:4", "brackets"),
        (b"a:\n\t- b", "f.yaml:2:1", "tab"),
        (b"a: 'x", "f.yaml:1:6", "quot"),
    ],
)
def test_a_fault_is_found_at_its_place(text: bytes, place: str, word: str) -> None:
    assert any(one.startswith(f"{place}: error: ") and word in one for one in findings(text)), findings(text)


def test_all_faults_are_reported_together() -> None:
    assert len(findings("a: &x 1\nb: *x\nc: !t 2\na: 3\n")) == 4


def test_nesting_is_bounded_without_recursion() -> None:
    assert "nested deeper" in findings("[" * 50_000)[0]
    assert "nested deeper" in findings("- " * 50_000 + "x")[0]


def test_a_yaml_bomb_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    assert 0 < len(findings(bomb)) <= 100


def test_a_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("a: " + "x" * 100)
    assert "larger than 50 bytes" in str(read_yaml(path, limit=50).findings[0])
    assert read_yaml(path, limit=200).findings == ()


def test_what_is_no_file_is_a_finding(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, word in ((tmp_path / "none", "No such file"), (tmp_path, "director"), (pipe, "not a regular file")):
        (found,) = read_yaml(path).findings
        assert word in found.what
        assert str(found.place) == str(path)


def test_a_name_can_stand_for_the_path(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: *b")
    assert str(read_yaml(tmp_path / "x.yaml", name="HOOK.yaml").findings[0].place) == "HOOK.yaml:1:4"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    assert isinstance(parse_yaml(data, "f"), YamlDocument)


@settings(deadline=None)
@given(st.text(alphabet="ab:- \n\t[]{}'\"#&*!|>?,%@`0.~\\", max_size=80))
def test_no_text_makes_it_fail_and_findings_lie_inside(text: str) -> None:
    tree = parse_yaml(text.encode(), "f")
    lines = text.count("\n") + 1
    assert all(0 <= found.place.line <= lines + 1 for found in tree.findings)


@settings(deadline=None)
@given(st.text(alphabet="abc:- \n[]{},'#", max_size=60))
def test_what_is_read_without_findings_is_what_pyyaml_reads(text: str) -> None:
    """The safe loader, told to leave every scalar as text, sees the same tree."""
    tree = parse_yaml(text.encode(), "f")
    if not tree.findings:
        assert (as_text(tree.root) or {}) == (yaml.load(text, Loader=yaml.BaseLoader) or {})


def as_text(node: YamlNode) -> object:
    match node:
        case YamlMapping(pairs=pairs):
            return {key.text: as_text(value) for key, value in pairs}
        case YamlSequence(items=items):
            return [as_text(item) for item in items]
        case _:
            return node.text


words = st.text(alphabet="abcdefghxyzäöü", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.recursive(words, lambda below: st.lists(below, max_size=3) | st.dictionaries(words, below, max_size=3)))
def test_every_scalar_stands_where_its_place_says(data: object) -> None:
    text = yaml.safe_dump({"root": data}, allow_unicode=True)
    lines = text.splitlines()
    for one in scalars(parse_yaml(text.encode(), "f").root):
        line = lines[one.place.line - 1]
        at = line[one.place.column - 1 :]
        assert at.lstrip("'").startswith(one.text)
