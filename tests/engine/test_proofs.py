"""The page about the journal says of each failure which test proves that it is borne; the tests must be there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<case>[^|]+) \| `(?P<test>tests/[^`]+)` \|$", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    return [
        (found["case"], found["test"])
        for found in ROW.finditer((ROOT / "docs/proofs/guarantees.md").read_text("utf-8"))
    ]


def names_in(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)}


@pytest.mark.parametrize(("case", "test"), rows())
def test_what_is_said_to_be_proved_has_its_test(case: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert (ROOT / file).is_file(), f"{case}: there is no {file}"
    assert not name or name in names_in(ROOT / file), f"{case}: {file} has no {name}"


def test_each_failure_stands_there_once() -> None:
    cases = [case for case, _ in rows()]
    assert len(cases) == len(set(cases)) >= 30
