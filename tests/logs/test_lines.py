"""How a line looks, for whom; and that the file's form reads back."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.logs.lines import LogLine, as_json, format_for_journald, format_for_pipe, format_for_terminal, from_json

LINE = LogLine(1_700_000_000.5, "warning", "gateway.lanes", "slow", {"session": "s1", "turn": "t1"})
TORN = LINE._replace(exception="Traceback:\n  here\n2026-01-01 00:00:00 info     forged: line\n")


def test_json_names_its_parts() -> None:
    assert json.loads(as_json(TORN)) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "logger": "gateway.lanes",
        "message": "slow",
        "session": "s1",
        "turn": "t1",
        "exception": TORN.exception,
    }


@settings(deadline=None)
@given(
    st.text(), st.text(), st.floats(0, 4_000_000_000), st.dictionaries(st.sampled_from(["session", "hook"]), st.text())
)
def test_json_is_one_line_and_reads_back(message: str, exception: str, moment: float, context: dict[str, str]) -> None:
    line = LogLine(round(moment, 3), "info", "x", message, context, exception)
    written = as_json(line)
    assert "\n" not in written
    read = from_json(written)
    assert read is not None
    assert read._replace(time=0) == line._replace(time=0)
    assert abs(read.time - line.time) < 0.002


@settings(deadline=None)
@given(st.text() | st.sampled_from(['{"time": 5}', "[]", "5", "null", '{"time": "x"}']))
def test_what_is_no_line_is_none(text: str) -> None:
    assert from_json(text) is None


def test_the_journal_reads_the_weight_of_each_line() -> None:
    assert format_for_journald(TORN).split("\n") == [
        "<4>lanes: slow  session=s1 turn=t1",
        "<4>    | Traceback:",
        "<4>    |   here",
        "<4>    | 2026-01-01 00:00:00 info     forged: line",
    ]


def test_a_pipe_gets_the_day_and_no_colours() -> None:
    first, *rest = format_for_pipe(TORN).split("\n")
    assert first.endswith(" warning  lanes: slow  session=s1 turn=t1")
    assert first.startswith("2023-11-1")
    assert all(line.startswith("    | ") for line in rest)


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[33mwarning \x1b[0m lanes: slow" in format_for_terminal(LINE)
