"""Foreign schemas: what they forbid is refused with the place, what is not understood is let through."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.json_schema import check_value

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"name": "Ada", "tags": ["a"]}, PERSON),
        (3, {"type": ["integer", "null"]}),
        (None, {"type": ["integer", "null"]}),
        (3.0, {"type": "integer"}),
        ("x", {"type": "invented"}),
        ("x", {"pattern": "(a+)+$"}),
        ("x", True),
        (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anything": 1}, {}),
    ],
)
def test_what_fits_passes(value, schema):
    check_value(value, schema)


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ({}, PERSON, r"missing 'name' at \$"),
        ({"name": 1}, PERSON, r"expected string at \$.name, got integer"),
        ({"name": "A", "tags": ["a", 1]}, PERSON, r"expected string at \$.tags\[1\], got integer"),
        ({"name": "A", "x": 1}, PERSON, r"unknown 'x' at \$"),
        ({"name": "longer"}, PERSON, "longer than 5"),
        (True, {"type": "integer"}, "got boolean"),
        ("c", {"enum": ["a", "b"]}, "'c' at \\$ is not one of 'a', 'b'"),
        (7, {"type": "integer", "maximum": 5}, "outside None..5"),
        (1.5, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "expected string .*; or expected integer"),
        (1, {"const": 2}, "expected 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value, schema, words):
    with pytest.raises(ValueError, match=words):
        check_value(value, schema)


def test_a_schema_without_end_is_not_followed_for_ever():
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    check_value(value, schema)


WORDS = ("type", "enum", "properties", "required", "items", "anyOf", "maximum", "maxLength", "additionalProperties")

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.sampled_from(WORDS), x),
)


@given(json, json)
def test_no_schema_however_odd_does_more_than_refuse(value, schema):
    with contextlib.suppress(ValueError):
        check_value(value, schema)
