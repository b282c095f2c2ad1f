"""Fixtures for every test, and the record of the run: the rows of the capability table that each test proves.

In CI (the variable `CI` is set) a skipped test is a failed one, so that a missing program cannot hide behind green.
Only a test that carries the mark `machine` when it skips is excused: the kernel or the rights of the machine, which
no installation can mend.
"""

import os
import tomllib
from collections.abc import Generator
from pathlib import Path

import pytest

LAST_RUN = "gateway/rows"
pytest_plugins = ["gateway.testing.networks.plugin", "tests.whole_run", "tests.timeouts"]


def pytest_configure(config: pytest.Config) -> None:
    cache: pytest.Cache | None = getattr(config, "cache", None)  # there is none with `-p no:cacheprovider`
    if cache and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ledger(cache), "ledger")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test says which rows it proves; a row that the table lacks is a slip of the pen."""
    table = tomllib.loads((Path(__file__).parent / "rows.toml").read_text("utf-8"))
    known = {row for system in table["systems"].values() for row in system["rows"]}
    for item in items:
        rows = [row for mark in item.iter_markers("row") for row in mark.args]
        if unknown := set(rows) - known:
            raise pytest.UsageError(f"{item.nodeid}: tests/rows.toml has no row {', '.join(sorted(unknown))}")
        item.user_properties += [("row", row) for row in rows]
        item.user_properties += [("wants", program) for mark in item.iter_markers("wants") for program in mark.args]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not item.get_closest_marker("machine"):
        refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_skip(report)
    return report


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"A skip is a failure in CI. {reason}"


class Ledger:
    """Remembers, beyond the run, how each test that proves a row ended; `./x rows` reads it."""

    def __init__(self, cache: pytest.Cache) -> None:
        self._cache = cache
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if any(name == "row" for name, _ in report.user_properties) and (report.when == "call" or not report.passed):
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        if self._outcomes:
            self._cache.set(LAST_RUN, {**self._cache.get(LAST_RUN, {}), **self._outcomes})
