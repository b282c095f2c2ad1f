"""`./x faults`: do the tests find faults that are put into the lines that they execute, each alone?

`--record` runs the tests (what else is given goes to pytest) and writes down, in `build/faults`, which lines of
`gateway/` and `hooks_builtin/` each of them executes, in its own process and in all that it starts. After that
`./x faults` draws lines by the seed, turns a comparison there, leaves the statement out or changes a constant, and runs
tests that execute the line: at most forty, the cheapest, from as many files as there are, more of them from the files
of the same room. A fault is found when one of them fails twice with it and passes without it, or when they do not come
to an end. The same seed and record give the same faults.

Tests of the mark `thorough` come after the others have found nothing; `--tests quick` leaves them out. All of it
happens in clones of a commit, with environments of their own, and what a fault kills is nothing of ours: the tests
see only their own processes. That needs Linux, and the right to make a namespace.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import line_hits
from tests.line_probes import list_sources, put_probes
from tests.line_records import LineRecords, RecordedTest, choose, find_tests_folder
from tests.source_faults import Fault, draw, find_faults

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "faults"
ALONE = ("unshare", "--pid", "--mount-proc", "--fork", "--kill-child")
BOUNDED = ("sh", "-c", 'ulimit -d 8000000; "$@"; exit $?', "sh")  # it reaps what nobody waits for
PATIENCE = 120.0  # seconds for tests to come to an end, and
LONGER = 5.0  # times what they took when they were recorded
GREEN, RED = 0, 1  # exit codes of pytest
LINES, TESTS = "lines.json", "tests.jsonl.gz"


@dataclass(frozen=True)
class RunEnd:
    """How a run of tests ended: with which code, or none when they did not, and at which of them."""

    code: int | None
    failed: str = ""


class Clone:
    """A clone of a commit, with an environment of its own."""

    def __init__(self, name: str, commit: str) -> None:
        self.tree = FOLDER / name  # it is short: some tests show where they are, in boxes
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(self.tree)], check=True)
        subprocess.run(["git", "checkout", "-q", commit], cwd=self.tree, check=True)
        subprocess.run(["./x", "test", "--version"], cwd=self.tree, check=True, capture_output=True)
        self.pytest = (str(self.tree / ".venv" / "bin" / "python"), "-m", "pytest")

    def run(self, tests: Sequence[RecordedTest]) -> RunEnd:
        names = [test.name for test in tests]
        limit = PATIENCE + LONGER * sum(test.seconds for test in tests)
        command = [*ALONE, *BOUNDED, *self.pytest, "-q", "-x", "-rfE", "--tb=no", *names]
        try:
            done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return RunEnd(None)
        return RunEnd(done.returncode, find_failed(done.stdout, names))

    @contextmanager
    def having(self, fault: Fault) -> Iterator[None]:
        file = self.tree / fault.path
        source = file.read_bytes()
        file.write_bytes(fault.put_into(source))
        try:
            yield
        finally:
            file.write_bytes(source)

    def find(self, fault: Fault, tests: Sequence[RecordedTest]) -> str:
        """What finds it; "" when nothing does."""
        left = list(tests)
        while left:
            with self.having(fault):
                end = self.run(left)
                if end.code is None:
                    return "no end"
                if end.code == GREEN:
                    return ""
                witness = next((test for test in left if test.name == end.failed), left[0])
                is_sure = self.run([witness]).code != GREEN
            if is_sure and self.run([witness]).code == GREEN:
                return witness.name if end.code == RED else f"{witness.name} cannot begin"
            left.remove(witness)
        return ""


def find_failed(output: str, names: Sequence[str]) -> str:
    """A name may begin with another one, and hold whatever stands between names and reasons."""
    lines = [line.partition(" ")[2] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    found = (name for name in names for line in lines if line == name or line.startswith(f"{name} - "))
    return max(found, key=len, default="")


def full_name(commit: str) -> str:
    command = ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or sys.exit(f"x faults: there is no commit {commit}")


def record(commit: str, kept: Path, words: Sequence[str]) -> int:
    clone = Clone("r", commit)
    put_probes(clone.tree)
    probed = ("--assert=plain", "-p", "line_hits")  # pytest would compile our sources again, for their asserts
    done = subprocess.run([*clone.pytest, *probed, *words], cwd=clone.tree)
    told = clone.tree / ".venv" / line_hits.FOLDER.name
    kept.mkdir(exist_ok=True)
    shutil.copy(told / line_hits.LINES.name, kept / LINES)
    with (kept / TESTS).open("wb") as file:
        for part in sorted(told.glob("*.jsonl.gz")):
            file.write(part.read_bytes())
    records = LineRecords.load(kept / LINES, kept / TESTS)
    print(f"recorded: {len(records.tests)} tests have passed, and execute {len(records.find_covered())} lines")
    return done.returncode


def draw_covered(tree: Path, records: LineRecords, seed: int, count: int) -> list[Fault]:
    covered = records.find_covered()
    faults = (fault for path in list_sources(tree) for fault in find_faults(path, (tree / path).read_bytes()))
    return draw((fault for fault in faults if (fault.path, fault.line) in covered), seed, count)


def print_row(fault: Fault, found: str) -> None:
    place, what = f"{fault.path}:{fault.line}", str(fault)
    print(f"{place:<48} {what if len(what) <= 60 else f'{what[:57]}...':<60} {found or 'NOT FOUND'}", flush=True)


def run(options: argparse.Namespace, commit: str, kept: Path) -> int:
    if not shutil.which(ALONE[0]) or subprocess.run([*ALONE, "true"], capture_output=True).returncode:
        sys.exit("x faults: faults may kill what is not ours, and here no namespace of processes can be made")
    records = LineRecords.load(kept / LINES, kept / TESTS)
    clones = SimpleQueue[Clone]()
    for number in range(options.workers):
        clones.put(Clone(str(number), commit))
    faults = draw_covered(FOLDER / "0", records, options.seed, options.count)

    def find(fault: Fault) -> tuple[str, str]:
        """By which test, and by which of the thorough ones where no other did."""
        clone = clones.get()
        tests, near = records.list_tests((fault.path, fault.line)), find_tests_folder(fault.path)
        try:
            quick = clone.find(fault, choose((test for test in tests if not test.is_thorough), near))
            if quick or options.tests == "quick":
                return quick, ""
            return "", clone.find(fault, choose((test for test in tests if test.is_thorough), near))
        finally:
            clones.put(clone)

    quick = thorough = 0
    with ThreadPoolExecutor(options.workers) as pool:
        for fault, (by_quick, by_thorough) in zip(faults, pool.map(find, faults), strict=True):
            print_row(fault, by_quick or by_thorough)
            quick, thorough = quick + bool(by_quick), thorough + bool(by_thorough)
    print(f"found {quick + thorough} of {len(faults)}, {thorough} of them by thorough tests alone")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./x faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # what is not ours is for pytest
    )
    parser.add_argument("--record", action="store_true", help="run the tests, and keep which lines each executes")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other faults")
    parser.add_argument("--count", type=int, default=60, metavar="N", help="of faults (60)")
    parser.add_argument("--tests", choices=["all", "quick"], default="all", help="quick: without the thorough ones")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="faults that are tried at a time")
    parser.add_argument("--commit", default="HEAD", help="of which they are, and its tests (HEAD)")
    options, words = parser.parse_known_args()
    commit = full_name(options.commit)
    kept = FOLDER / commit[:12]
    if options.record:
        return record(commit, kept, words)
    if words:
        parser.error(f"what is {' '.join(words)}? pytest is given something with --record alone")
    if not (kept / TESTS).exists():
        parser.error(f"nothing is recorded of {commit[:12]} yet: ./x faults --record")
    return run(options, commit, kept)


if __name__ == "__main__":
    sys.exit(main())
