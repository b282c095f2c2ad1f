"""The workshop keeps its own rules: in CI a skip fails, a row needs a passing test, the script says what is wrong."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tests.rows import TABLE, Collector, is_promised, state

ROOT = Path(__file__).parent.parent
PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|MPL)\b")
pytestmark = pytest.mark.process


def run_tests(place: Path, source: str, ci: str) -> str:
    """What pytest says about a file of tests under our rules."""
    (place / "test_it.py").write_text(f"import pytest\n\n{source}\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(place),
        "test_it.py",
    ]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    return done.stderr + done.stdout


@pytest.mark.parametrize(
    "source",
    [
        'def test_it():\n    pytest.skip("no chromium")',
        '@pytest.mark.skip(reason="no chromium")\ndef test_it(): ...',
        'pytest.skip("no chromium", allow_module_level=True)',
    ],
    ids=["inside", "mark", "module"],
)
def test_in_ci_a_skip_is_a_failure_with_its_reason(source: str, tmp_path: Path) -> None:
    elsewhere, in_ci = (run_tests(tmp_path, source, ci) for ci in ("", "1"))
    assert "1 skipped" in elsewhere
    assert "A skip is a failure in CI." in in_ci
    assert "no chromium" in in_ci
    assert "skipped" not in in_ci.splitlines()[-1]


def test_what_the_machine_cannot_do_is_excused(tmp_path: Path) -> None:
    source = '@pytest.mark.machine\ndef test_it():\n    pytest.skip("no namespaces")'
    assert "1 skipped" in run_tests(tmp_path, source, "1")


def test_a_row_that_does_not_exist_stops_the_run(tmp_path: Path) -> None:
    assert "has no row STR-999" in run_tests(tmp_path, '@pytest.mark.row("STR-999")\ndef test_it(): ...', "")


@pytest.mark.parametrize(
    ("ends", "expected"),
    [([], "no test"), (["passed"], "passed"), (["passed", "failed"], "failed"), (["passed", None], "not run")],
)
def test_a_row_is_as_good_as_the_worst_of_its_tests(ends: list[str | None], expected: str) -> None:
    tests = {f"test_{number}": end for number, end in enumerate(ends)}
    seen = Collector({"STR-1": list(tests)}, {name: end for name, end in tests.items() if end})
    assert state("STR-1", seen) == expected


def test_every_promise_and_every_excuse_names_a_row() -> None:
    table = tomllib.loads(TABLE.read_text("utf-8"))
    rows = {row for system in table["systems"].values() for row in system["rows"]}
    assert {*table["left_out"], *table["narrowed"]} <= rows
    for key, system in table["systems"].items():
        promised = [row for row in system["rows"] if is_promised(row, system)]
        assert len(promised) == len(system.get("promised", system["rows"])), key


def test_the_notice_tells_the_licenses_as_they_are() -> None:
    """All that is installed for people, as the lock has it: permissive, but for the one package that NOTICE names."""
    names = re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    installed = {name.lower().replace("_", "-"): name for name in installed_packages()}
    odd = [name for name in names if name in installed and not PERMISSIVE.search(license_of(name))]
    assert odd == ["python-telegram-bot"]
    assert "LGPL-3.0-only" in license_of("python-telegram-bot")
    assert "python-telegram-bot" in (ROOT / "NOTICE").read_text()


def installed_packages() -> list[str]:
    return [str(package.metadata["Name"]) for package in metadata.distributions()]


def license_of(name: str) -> str:
    said = metadata.metadata(name)
    classifiers = [line for line in said.get_all("Classifier") or [] if line.startswith("License")]
    named = [text[:100] for key in ("License-Expression", "License") for text in said.get_all(key) or []]
    return " ".join([*named, *classifiers] or titles_of_license_files(name))


def titles_of_license_files(name: str) -> list[str]:
    """For the package whose metadata only say in which files its license stands: their first lines."""
    package = metadata.distribution(name)
    texts = [package.read_text(f"licenses/{file}") for file in package.metadata.get_all("License-File") or []]
    return [text.lstrip().partition("\n")[0] for text in texts if text]


PIPLESS = "python3 has no pip, and uv is not on the PATH: apt install python3-pip, or install uv"


def test_the_script_shows_what_went_wrong_and_nothing_else(tmp_path: Path) -> None:
    """A clean clone on a machine whose Python has no pip: one clear failure, and no half-made environment."""
    (tmp_path / "bin").mkdir()
    for name in ("cmp", "dirname", "grep", "sh"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\necho No module named pip >&2\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    (tmp_path / "x").write_text((ROOT / "x").read_text())
    command = ["/bin/sh", str(tmp_path / "x"), "run"]
    done = subprocess.run(command, env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"x: {PIPLESS}\n")
    assert not (tmp_path / ".venv").exists()
