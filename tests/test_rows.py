"""`./x rows` ends well when every promised row has a passing test, and rows that are not yet promised are counted."""

import tomllib
from typing import Any

import pytest

from tests.rows import STATES, TABLE, Collector, report


@pytest.fixture
def table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text("utf-8"))


def all_passed(table: dict[str, Any]) -> Collector:
    """Each row that is to be met has one test, which passed."""
    rows = [row for system in table["systems"].values() for row in system["rows"]]
    wanted = [row for row in rows if row not in {*table["left_out"], *table["not_yet"]}]
    return Collector({row: [row] for row in wanted}, dict.fromkeys(wanted, "passed"))


def test_rows_that_are_not_yet_promised_are_counted_and_wanted_of_nobody(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(table, all_passed(table))
    said = capsys.readouterr().out
    assert f"Not yet promised ({len(table['not_yet'])})" in said
    assert all(f"{row:<7} {title}" in said for row, title in table["not_yet"].items())


@pytest.mark.parametrize("end", [*STATES[1:], "no test"])
def test_a_promised_row_without_a_passing_test_is_open(table: dict[str, Any], end: str) -> None:
    seen = all_passed(table)
    seen.outcomes = {**seen.outcomes, "T30": end}
    if end == "no test":
        del seen.tests["T30"]
    assert not report(table, seen)


def test_what_is_not_yet_promised_is_a_row_of_the_table(table: dict[str, Any]) -> None:
    rows = {row for system in table["systems"].values() for row in system["rows"]}
    assert table["not_yet"].keys() <= rows - table["left_out"].keys()


def test_what_is_not_installed_opens_no_row_and_is_said(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = all_passed(table)
    seen.wants["T25"] = {"an sshd"}
    assert report(table, seen)
    assert "T25     a part of it wants an sshd, which is not installed here" in capsys.readouterr().out
