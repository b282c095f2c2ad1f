"""From a tree to a Struct: every type that a manifest or a configuration uses, and everything wrong at once."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct

from gateway.yaml_source.binder import bind
from gateway.yaml_source.parser import parse_yaml
from gateway.yaml_source.tree import Finding, Severity, YamlScalar
from gateway.yaml_source.units import Duration, Size


class Target(Struct, frozen=True):
    url: str
    tries: Annotated[int, Meta(ge=1, le=5)] = 3


class Word:
    """A type of one's own."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def from_scalar(cls, scalar: YamlScalar) -> "Word":
        if " " in scalar.text:
            raise ValueError("has two words", "write one")
        return cls(scalar.text)


class Sheet(Struct, frozen=True):
    name: str
    timeout: Annotated[Duration, Meta(ge=1, le=60, description="how long")] = 30.0
    size: Size = 64000
    mode: Literal["queued", "parallel"] = "queued"
    events: tuple[str, ...] = ()
    when: dict[str, str | list[str]] = {}
    options: dict[str, Any] = {}
    targets: dict[str, Target] = {}
    many: list[Target] = []
    most: int | None = None
    on: bool = True
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    tag: Annotated[str, Meta(pattern="^[a-z]+$", max_length=5)] = "x"
    amount: int | str = 0
    word: Word | None = None


class Pair(Struct, frozen=True):
    low: int = 0
    high: int = 0

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("`low` is above `high`", "swap them")


def read(text: str, unknown: Severity = "error") -> tuple[Sheet | None, list[Finding]]:
    return bind(parse_yaml(text.encode(), "f.yaml"), Sheet, unknown=unknown)


def good(line: str) -> Sheet:
    sheet, findings = read(f"name: n\n{line}\n")
    assert findings == []
    assert sheet is not None
    return sheet


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("timeout: 1m", "timeout", 60.0),
        ("timeout: 5", "timeout", 5.0),
        ("timeout: '1500ms'", "timeout", 1.5),
        ("size: 64KiB", "size", 65536),
        ("size: 1.5 MB", "size", 1_500_000),
        ("size: 12", "size", 12),
        ("mode: parallel", "mode", "parallel"),
        ("events: [no, 1, agent:step]", "events", ("no", "1", "agent:step")),
        ("events:", "events", ()),
        ("when: {platform: telegram, x: [on, 010]}", "when", {"platform": "telegram", "x": ["on", "010"]}),
        ("when:", "when", {}),
        ("options: {a: no, b: [1, 2.5]}", "options", {"a": False, "b": [1, 2.5]}),
        ("targets: {z: {url: u}}", "targets", {"z": Target(url="u")}),
        ("many: [{url: u, tries: 5}]", "many", [Target(url="u", tries=5)]),
        ("most: 7", "most", 7),
        ("most: null", "most", None),
        ("most: ", "most", None),
        ("on: off", "on", False),
        ("ratio: 0.25", "ratio", 0.25),
        ("amount: 5", "amount", 5),
        ("amount: '5'", "amount", "5"),
        ("amount: much", "amount", "much"),
    ],
)
def test_a_value_is_read_by_the_type_that_is_wanted(line: str, field: str, value: object) -> None:
    assert getattr(good(line), field) == value


def test_a_type_of_ones_own_reads_itself() -> None:
    assert (word := good("word: hello").word) is not None
    assert word.text == "hello"
    assert [str(found) for found in read("name: n\nword: a b")[1]] == [
        "f.yaml:2:7: error: `word` has two words; write one"
    ]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("timeout: 5m", "f.yaml:2:10: error: `timeout` is out of range; write at most 1m"),
        ("timeout: x", "f.yaml:2:10: error: `timeout` is text; a duration such as 30s or 5m is wanted here"),
        ("timeout: -5", "f.yaml:2:10: error: `timeout` is a number; a duration such as 30s or 5m is wanted here"),
        ("size: 5 parsecs", "f.yaml:2:7: error: `size` is text; a size such as 64kB or 2MiB is wanted here"),
        ("mode: paralel", "f.yaml:2:7: error: `mode` cannot have this value; did you mean `parallel`?"),
        ("mode: x", "f.yaml:2:7: error: `mode` cannot have this value; write `parallel` or `queued`"),
        ("events: a", "f.yaml:2:9: error: `events` is text; a list is wanted here: [one, two]"),
        ("when: [1]", "f.yaml:2:7: error: `when` is a list; a mapping is wanted here"),
        ("when: {a: {b: c}}", "f.yaml:2:11: error: `when.a` is a mapping; text or a list is wanted here"),
        ("targets: {z: {}}", "f.yaml:2:14: error: `targets.z.url` is missing; add `url: ...`"),
        ("many: [{url: y, tries: 9}]", "f.yaml:2:24: error: `many.1.tries` is out of range; write at most 5"),
        ("many: [5]", "f.yaml:2:8: error: `many.1` is a number; a mapping is wanted here"),
        ("most: 1.5", "f.yaml:2:7: error: `most` is a number; a whole number is wanted here"),
        ("most: '7'", "f.yaml:2:7: error: `most` is quoted text; a whole number is wanted here"),
        ("on: 7", "f.yaml:2:5: error: `on` is a number; true or false is wanted here"),
        ("ratio: 1", "f.yaml:2:8: error: `ratio` is out of range; write less than 1"),
        ("tag: A", "f.yaml:2:6: error: `tag` does not have the form that is wanted here; it must match `^[a-z]+$`"),
        ("tag: abcdefg", "f.yaml:2:6: error: `tag` is too long; give at most 5 characters"),
        ("mode: ", "f.yaml:2:6: error: `mode` has no value; write `parallel` or `queued`, or remove the line"),
        ("timout: 5", "f.yaml:2:1: error: `timout` is not known; did you mean `timeout`?"),
    ],
)
def test_a_fault_says_what_is_wrong_and_what_would_be_right(line: str, finding: str) -> None:
    sheet, findings = read(f"name: n\n{line}\n")
    assert sheet is None
    assert [str(found) for found in findings] == [finding]


def test_all_faults_are_collected_in_the_order_of_the_file() -> None:
    sheet, findings = read("timeout: x\nmode: y\nevents: &a z\nmany: [{}, {url: u, tries: 0}]\nmode: queued\n")
    assert sheet is None
    assert [found.place.line for found in findings] == [1, 1, 2, 3, 3, 4, 4, 5]


def test_an_unknown_key_can_be_a_warning() -> None:
    sheet, findings = read("name: n\nnewer: thing\n", unknown="warning")
    assert sheet == Sheet(name="n")
    assert [found.severity for found in findings] == ["warning"]


def test_what_holds_between_fields_is_checked_by_the_struct() -> None:
    value, findings = bind(parse_yaml(b"low: 3\nhigh: 2\n", "f"), Pair)
    assert value is None
    assert [str(found) for found in findings] == ["f:1:1: error: `low` is above `high`; swap them"]


def test_an_unreadable_file_is_reported_once() -> None:
    value, findings = bind(parse_yaml(b"\xff\xfe", "f"), Sheet)
    assert value is None
    assert len(findings) == 1


def test_findings_are_bounded() -> None:
    _, findings = read("name: n\n" + "".join(f"k{i}: 1\n" for i in range(5000)))
    assert len(findings) == 100


def test_no_value_is_repeated_in_a_finding() -> None:
    secret = "123456789:AAE-canary-canary-canary-canary-can"
    for field in Sheet.__struct_fields__:
        _, findings = read(f"{field}: ['{secret}', {{'x': '{secret}'}}]\nname: '{secret}'\n")
        assert secret not in "".join(map(str, findings))


@settings(deadline=None)
@given(st.recursive(st.text(max_size=8), lambda below: st.lists(below) | st.dictionaries(st.text(max_size=8), below)))
def test_any_tree_gives_a_value_or_an_error(data: object) -> None:
    value, findings = read(repr(data) if isinstance(data, str) else str(data))
    assert (value is None) == any(found.severity == "error" for found in findings)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*Sheet.__struct_fields__, "other"]), st.text(alphabet="ab1:[]{}, ~'", max_size=9))
)
def test_any_values_give_a_value_or_an_error(lines: dict[str, str]) -> None:
    value, findings = read("".join(f"{key}: {text}\n" for key, text in lines.items()))
    assert (value is None) == any(found.severity == "error" for found in findings)
