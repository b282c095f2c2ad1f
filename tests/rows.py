"""`./x rows`: the rows of the capability table with a passing test, and those without.

The tests are collected anew, so that a removed test proves nothing any more; how each of them ended is what the last
run of it said (`./x test --all` keeps it). `./x rows --run` runs them first. Exit 1 when a row that must be met is
open; rows that are not yet promised are counted, and wanted of nobody.
"""

import contextlib
import io
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).parent / "rows.toml"
LAST_RUN = "gateway/rows"
STATES = ("passed", "not run", "skipped", "failed")


@dataclass(slots=True)
class Collector:
    """A pytest plugin: the tests of each row, and how each test ended the last time."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    wants: dict[str, set[str]] = field(default_factory=dict)  # by row, what is not installed here for some of its tests

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        assert session.config.cache
        self.outcomes = session.config.cache.get(LAST_RUN, {})
        for item in session.items:
            rows = [str(row) for name, row in item.user_properties if name == "row"]
            wanted = {str(program) for name, program in item.user_properties if name == "wants"}
            for row in rows:
                if wanted:
                    self.wants.setdefault(row, set()).update(wanted)
                else:
                    self.tests.setdefault(row, []).append(item.nodeid)


def state(row: str, seen: Collector) -> str:
    """The worst of what its tests did: one failing test opens a row that ten others prove."""
    ends = [seen.outcomes.get(test, "not run") for test in seen.tests.get(row, [])]
    return max(ends, key=STATES.index) if ends else "no test"


def is_promised(row: str, system: Mapping[str, Any]) -> bool:
    """A system without the list wants all its rows."""
    return "promised" not in system or int("".join(filter(str.isdigit, row))) in system["promised"]


def collect() -> Collector:
    seen, said = Collector(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-q", "-m", "row"], plugins=[seen])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"{said.getvalue()}The tests cannot be collected; so says pytest, above.")
    return seen


def report(table: Mapping[str, Any], seen: Collector) -> bool:
    """Print it all; whether every row that must be met is."""
    left, waiting, complete = table["left_out"], table["not_yet"], True
    for key, system in table["systems"].items():
        states = {row: state(row, seen) for row in system["rows"] if row not in {*left, *waiting}}
        proved = sum(end == "passed" for end in states.values())
        print(f"\n{key} ({system['name']}): {proved} of {len(states)} proved")
        for row, end in states.items():
            if end != "passed":
                must = is_promised(row, system)
                complete &= not must
                print(f"  {row:<7} {end:<8} {'! ' if must else '  '}{system['rows'][row]}")
            for program in sorted(seen.wants.get(row, ())):
                print(f"  {row:<7} a part of it wants {program}, which is not installed here: those tests did not run")
    titles = (
        "Left out on purpose",
        "Met in part, on purpose",
        f"Not yet promised ({len(waiting)}), and what brings them",
    )
    for title, rows in zip(titles, (left, table["narrowed"], waiting), strict=True):
        print(f"\n{title}:")
        for row, reason in rows.items():
            print(f"  {row:<7} {reason}")
    print("\n! = promised by that system's documentation, or a security row: must be met.")
    return complete


def main() -> int:
    if "--run" in sys.argv[1:]:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "row"], check=False)
    os.chdir(TABLE.parent.parent)
    return 0 if report(tomllib.loads(TABLE.read_text("utf-8")), collect()) else 1


if __name__ == "__main__":
    sys.exit(main())
