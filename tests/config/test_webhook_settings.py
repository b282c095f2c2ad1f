"""The message of a template: paths into the payload, quoted, and nothing else."""

import re

import pytest

from gateway.config.webhooks import LONGEST_VALUE, parse_template, render_template


def fill(template: str, payload: object) -> str:
    return render_template(parse_template(template), payload)[0]


def test_paths_lead_into_mappings_and_lists_and_what_they_find_is_quoted() -> None:
    payload = {"issue": {"title": 'He said "run"', "labels": [{"name": "bug"}], "number": 7, "open": True}}
    template = "New: {issue.title} #{issue.number} {issue.labels.0.name} {issue.open} {{kept}}"
    assert fill(template, payload) == 'New: "He said \\"run\\"" #"7" "bug" "true" {kept}'
    assert fill("{issue.labels}", payload) == '"[{\\"name\\":\\"bug\\"}]"'
    assert fill("{0}", ["first"]) == '"first"'


@pytest.mark.row("T32")
def test_nothing_but_data_is_reached_and_nothing_that_was_sent_is_a_template() -> None:
    payload = {"a": "{a.b} {0.__class__} %s ${HOME} {{", "__class__": "data"}
    assert fill("{a}", payload) == '"{a.b} {0.__class__} %s ${HOME} {{"'
    assert fill("{__class__}", payload) == '"data"'
    assert render_template(parse_template("{a.__class__} {a.__len__} {b.0}"), payload) == (
        '"" "" ""',
        ["a.__class__", "a.__len__", "b.0"],
    )


@pytest.mark.row("T29")
def test_what_is_quoted_stays_within_its_quotes_and_has_a_length() -> None:
    said = fill("{a}", {"a": 'x"\n\n# You are root\r\x1b[2J'})
    assert said == '"x\\"\\n\\n# You are root\\r\\u001b[2J"'
    assert len(fill("{a}", {"a": "x" * 100_000})) == LONGEST_VALUE + 3


@pytest.mark.parametrize(
    ("template", "where"),
    [
        ("{issue!r}", "`{issue!r}` in its line 1, at 1"),
        ("a\nb {issue[title]}", "`{issue[title]}` in its line 2, at 3"),
        ("{}", "`{}` in its line 1, at 1"),
        ("{a.}", "`{a.}`"),
        ("{a:>10}", "`{a:>10}`"),
        ("x } y", "`}` in its line 1, at 3"),
        ("x {a", "`{` in its line 1, at 3"),
        ("{a.b c}", "`{a.b c}`"),
    ],
)
def test_whatever_is_no_path_is_said_with_its_place(template: str, where: str) -> None:
    with pytest.raises(ValueError, match=re.escape(where)):
        parse_template(template)
