"""The tests of what an engine must do, on one server and on three: how many of them pass."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tests.proof_table import ROOT, Row, Trial, make_row

FILES = [
    *sorted((ROOT / "tests" / "engine").glob("test_contract_*.py")),
    ROOT / "tests" / "engine" / "test_nats_model.py",
]
ON_THREE = ("[nats-3", "[nats_servers")  # what is told of it in a test's name


def prove(trial: Trial) -> Iterator[Row]:
    if trial.is_short:
        remark = "the contract suite is not in the short run: its tests are run by themselves"
        yield make_row("contract suite", "-", "-", remarks=(remark,))
        return
    trial.tell("contract: its tests run")
    ends = run_tests(trial.folder / "contract.xml")
    for engine in ("NATS R1", "NATS R3"):
        of_it = {name: is_passed for name, is_passed in ends.items() if engine == find_engine(name)}
        passed, failed = sum(of_it.values()), [name for name, is_passed in of_it.items() if not is_passed]
        row = make_row(f"contract suite on {engine}", "100 %", f"{passed} of {len(of_it)}", bool(of_it))
        yield Row(row.cells, (*row.faults, *(f"{engine}: {name} does not pass" for name in failed)))


def run_tests(report: Path) -> dict[str, bool]:
    """Run the tests, and return True for each that passed; those impossible on this machine are left out."""
    command = [sys.executable, "-m", "pytest", *map(str, FILES), "-q", "-k", "nats", "--junitxml", str(report)]
    subprocess.run(command, cwd=ROOT, capture_output=True)
    cases = [one for one in ElementTree.parse(report).iter("testcase") if one.find("skipped") is None]
    return {
        f"{one.attrib['classname']}.{one.attrib['name']}": one.find("failure") is None and one.find("error") is None
        for one in cases
    }


def find_engine(name: str) -> str:
    return "NATS R3" if any(one in name for one in ON_THREE) else "NATS R1"
