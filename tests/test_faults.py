"""The parts of `./x faults`: what it changes in a source, whom it asks, and how it knows who executes a line."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import line_hits
from tests.faults import find_failed
from tests.line_probes import add_probes, list_lines
from tests.line_records import MOST_SECONDS, MOST_TESTS, LineRecords, RecordedTest, choose, find_tests_folder
from tests.source_faults import draw, find_faults

ROOT = Path(__file__).parent.parent
CHANGES = [
    ("def f(a):\n    return a < 3\n", {"< -> >=", "3 -> 4", "left out: return a < 3"}),
    ("def f(a, b):\n    yield a  not  in b\n", {"not in -> in", "left out: yield a not in b"}),
    ("def f(a):\n    if a is None: raise\n", {"is -> is not", "left out: raise"}),
    ("A = True\nB = 'ü'\nC = b''\nD = -0.5\n", {"True -> False", "'ü' -> 'üx'", "b'' -> b'x'", "0.5 -> 1.5"}),
    ("class A(B, frozen=True): ...\n", {"True -> False"}),
    ("def f():\n    a(\n        1,\n    )\n", {"left out: a( 1, )", "1 -> 2"}),
]
UNCHANGED = [
    '"""A docstring."""\n',
    "def f():\n    'Another.'\n    log.info('3 of 4')\n    assert 1 < 2\n",
    "import a\nfrom b import c\n__all__ = ['d']\n",
    "def f(a: 'A') -> 'B': ...\nT = TypeVar('T')\nU = Literal['a']\nx: 'int'\n",
    "if __name__ == '__main__': ...\nif TYPE_CHECKING: ...\n",
]
SOURCE = '''"""About it."""
from __future__ import annotations
def f(a):
    "A docstring."
    if a:
        return 1
    elif a is None:
        return 2
    try:
        return 3
    finally:
        a = 4
class A:
    b = 5
'''


def run(name: str, seconds: float, *, lines: int = 0, is_thorough: bool = False) -> RecordedTest:
    return RecordedTest(name, seconds, is_thorough, lines)


@pytest.mark.parametrize(("source", "changes"), CHANGES)
def test_a_comparison_is_turned_a_statement_left_out_a_constant_changed(source: str, changes: set[str]) -> None:
    assert {str(fault) for fault in find_faults("a.py", source.encode())} == changes


@pytest.mark.parametrize("source", UNCHANGED)
def test_what_no_test_could_find_is_left_alone(source: str) -> None:
    assert [str(fault) for fault in find_faults("a.py", source.encode())] == []


def test_a_fault_compiles_and_moves_no_line() -> None:
    source = (ROOT / "tests" / "source_faults.py").read_bytes()
    faults = list(find_faults("a.py", source))
    assert {fault.kind for fault in faults} == {"comparison", "constant", "statement"}
    for fault in faults[::10]:
        changed = fault.put_into(source)
        assert changed != source
        assert changed.count(b"\n") == source.count(b"\n")
        ast.parse(changed)


def test_a_seed_draws_the_same_faults_wherever_they_have_come_to_stand() -> None:
    source = (ROOT / "tests" / "source_faults.py").read_bytes()
    moved = b"# one more line\n" + source
    first, second = ([str(one) for one in draw(find_faults("a.py", text), 1, 9)] for text in (source, moved))
    assert first == second
    assert len(set(first)) > 1
    assert first != [str(one) for one in draw(find_faults("a.py", source), 2, 9)]


def test_a_line_gets_one_fault() -> None:
    assert len(draw(find_faults("a.py", b"A = [1, 2, 3 < 4]\nB = 5\n"), 1, 9)) == 2


def test_as_many_of_each_kind_are_drawn() -> None:
    source = (ROOT / "tests" / "source_faults.py").read_bytes()
    kinds = Counter(fault.kind for fault in draw(find_faults("a.py", source), 1, 6))
    assert kinds == {"comparison": 2, "constant": 2, "statement": 2}


@pytest.mark.parametrize(("given", "came_by"), [(1, {5, 6}), (None, {5, 7, 8}), (0, {5, 7, 9, 10, 12})])
def test_probes_tell_the_lines_that_are_executed(given: object, came_by: set[int]) -> None:
    tree = ast.parse(SOURCE)
    lines = list_lines(tree)
    hits: dict[int, int] = {}
    names: dict[str, Any] = {line_hits.BYTES: hits}
    exec(compile(add_probes(tree, {line: line for line in lines}), "a.py", "exec"), names)
    assert set(hits) == {3, 13, 14} == {line for line, waits_for_call in lines.items() if not waits_for_call} - {1, 2}
    assert names["__doc__"] == "About it."
    assert names["f"].__doc__ == "A docstring."
    hits.clear()
    names["f"](given)
    assert set(hits) == came_by


def test_the_tests_of_a_line_are_those_that_execute_it_or_what_stands_in_its_file() -> None:
    imports, calls = run("imports", 1, lines=0b001), run("calls", 1, lines=0b010)
    records = LineRecords([("a.py", 1, False), ("a.py", 2, True), ("b.py", 1, False)], [imports, calls])
    assert records.list_tests(("a.py", 1)) == [calls]
    assert records.list_tests(("a.py", 2)) == [calls]
    assert records.find_covered() == {("a.py", 1), ("a.py", 2)}


def test_a_file_without_functions_is_tried_by_who_imports_it() -> None:
    imports = run("imports", 1, lines=0b1)
    assert LineRecords([("a.py", 1, False)], [imports]).list_tests(("a.py", 1)) == [imports]


def test_the_cheapest_of_all_files_come_first() -> None:
    cheap = [run(f"tests/a.py::{number}", number / 100) for number in range(MOST_TESTS)]
    other = run("tests/b.py::0", 50.0)
    assert choose([*cheap, other]) == [*cheap[:-1], other]


def test_the_files_of_the_room_have_eight_tests_for_one_of_another_file() -> None:
    near = [run(f"tests/jobs/test_a.py::{number}", 9.0 + number) for number in range(9)]
    others = [run(f"tests/test_{number}.py::a", 1 / (number + 1)) for number in range(MOST_TESTS - 8)]
    second = run("tests/test_0.py::b", 2.0)
    chosen = choose([*near, *others, second], find_tests_folder("gateway/jobs/schedule.py"))
    assert {*chosen} == {*near[:8], *others}


def test_one_that_takes_too_long_is_left_out_unless_it_is_the_only_one() -> None:
    long, short = run("tests/a.py::0", MOST_SECONDS + 1), run("tests/b.py::0", 1.0)
    assert choose([long]) == [long]
    assert choose([long, short]) == [short]


def test_who_failed_is_read_from_what_pytest_says() -> None:
    names = ["a.py::b", "a.py::b[x - y]", "a.py::c"]
    assert find_failed("FAILED a.py::b[x - y] - assert 1 == 2\n", names) == "a.py::b[x - y]"
    assert find_failed("ERROR a.py::b\n", names) == "a.py::b"
    assert find_failed("3 passed\n", names) == ""
