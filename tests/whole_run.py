"""A plugin for pytest: what is left to a run of everything, which file comes first, and what failed, for another try.

- A test with the mark `thorough` is left to `./x test --all`. A file sets the mark, or the list of folders here does;
  and of parameters beyond the twentieth of one function four of five have it, chosen by their ids: the same each time.
- A run without `thorough` tests does not import the files that have no others: each worker would.
- Dear files come first, so that no worker is left alone with one at the end.
- The output of what failed is kept, for `tests/test.py` runs it once more.
"""

import gc
import re
import signal
import zlib
from collections import Counter, defaultdict
from functools import _lru_cache_wrapper
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
THOROUGH_FOLDERS = {ROOT / name for name in ("browser", "chaos", "cluster", "siege", "systemd")}
MOST_PARAMETERS = 20  # of one function, in a run that is not of everything
ONE_OF = 5  # of those beyond that
PROCESS_COST = 4  # a test with processes, beside one without
FAILURES = "gateway/failures"
WITHOUT_THOROUGH = "not thorough"  # as `tests/test.py` says it after -m
HAS_THE_MARK = re.compile(r"^pytestmark = .*\bthorough\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("markexpr") != WITHOUT_THOROUGH:
        return None
    if collection_path in THOROUGH_FOLDERS:
        return True
    is_left_out = collection_path.suffix == ".py" and HAS_THE_MARK.search(collection_path.read_text("utf-8"))
    return True if is_left_out else None


def pytest_collection_finish() -> None:
    gc.freeze()  # ten thousand tests stay: each collection of garbage would walk them


@pytest.hookimpl(tryfirst=True)  # before pytest itself chooses by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    costs: defaultdict[Path, float] = defaultdict(float)
    for item in items:
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        is_rest = seen[function] > MOST_PARAMETERS and zlib.crc32(item.nodeid.encode()) % ONE_OF != 0
        if is_rest or not THOROUGH_FOLDERS.isdisjoint(item.path.parents):
            item.add_marker("thorough")
        costs[item.path] += estimate_cost(item)
    if hasattr(config, "workerinput"):  # one of several, to which files are handed out in this order
        items.sort(key=lambda item: -costs[item.path])


def estimate_cost(item: pytest.Item) -> float:
    """Take a test that may last longer than others for one that does."""
    limit = item.get_closest_marker("timeout")
    longer = limit.args[0] / float(item.config.getini("timeout")) if limit else 1
    return longer * (PROCESS_COST if item.get_closest_marker("process") else 1)


def pytest_configure(config: pytest.Config) -> None:
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # begun in the background of a shell; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config, "cache", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config), "failures")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Drop the caches of a file after its last test: the parsed sources of the house take a gigabyte."""
    if nextitem is None or nextitem.path != item.path:
        for value in vars(getattr(item, "module", None) or object).values():
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()


class Failures:
    """Names each test that fails, and each file that cannot be read, as it does, and keeps what it said."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._said: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self._said:
            self._said[report.nodeid] = report.longreprtext
            if terminal := self._config.pluginmanager.get_plugin("terminalreporter"):
                terminal.ensure_newline()
                terminal.write_line(f"failed: {report.nodeid}")

    def pytest_sessionfinish(self) -> None:
        assert self._config.cache
        self._config.cache.set(FAILURES, self._said)
