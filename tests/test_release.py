"""The demands of `./x release` on a commit. CI runs it whole; here are the ways in which it says no."""

import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.release import CARRIED, ROOT, Build, Failed, find_pythons, list_lost, make_bill, version_of

PROJECT = '[project]\nversion = "1.2.3"\n'
LOCK = (ROOT / "requirements.lock").read_text("utf-8")


@pytest.mark.parametrize("tags", ["", "v1.2.3", "kept\nv1.2.3"])
def test_the_version_is_the_projects(tags: str) -> None:
    assert version_of(tags, PROJECT) == "1.2.3"


def test_a_tag_that_names_another_version_stops_it() -> None:
    with pytest.raises(Failed, match=r"the tag v1\.2\.4, and pyproject\.toml the version 1\.2\.3"):
        version_of("v1.2.4", PROJECT)


def test_what_is_not_in_an_archive_is_named(tmp_path: Path) -> None:
    made = Build(tmp_path / "a.whl", tmp_path / "a.tar.gz")
    with zipfile.ZipFile(made.wheel, "w") as wheel, tarfile.open(made.sources, "w:gz") as sources:
        for path in CARRIED[1:]:
            wheel.writestr(path, "")
            sources.addfile(tarfile.TarInfo(f"hermes_gateway-1.2.3/{path}"))
    assert list_lost(made) == [
        f"a.whl has no {CARRIED[0]}",
        *(f"a.tar.gz has no {path}" for path in (CARRIED[0], "x", "requirements.lock")),
    ]


def test_all_that_is_carried_is_in_the_repository() -> None:
    assert [path for path in CARRIED if not (ROOT / path).is_file()] == []


def test_the_bill_names_all_that_the_lock_does_with_its_hashes() -> None:
    bill = json.loads(make_bill(LOCK, "1.2.3", {"a.whl": "0" * 64}, "1700000000"))
    pinned = re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)
    assert [(one["name"], one["version"]) for one in bill["components"]] == pinned
    assert sum(len(one["hashes"]) for one in bill["components"]) == LOCK.count("--hash=sha256:")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_the_bill_is_the_same_for_the_same_commit() -> None:
    first, again = (make_bill(LOCK, "1.2.3", {"a.whl": "0" * 64}, "1700000000") for _ in range(2))
    assert first == again
    assert make_bill(LOCK, "1.2.3", {"a.whl": "1" * 64}, "1700000000") != first


def test_this_python_is_at_hand() -> None:
    assert find_pythons()["{}.{}".format(*sys.version_info)] == Path(sys.executable)
