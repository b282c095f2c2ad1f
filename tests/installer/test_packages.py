"""A hook's requirements are chosen, pinned and unpacked; none of their code runs, whatever paths they name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import HookError
from gateway.installer.packages import install_packages, is_lock_line, lock_package
from tests.cli.test_install import commit
from tests.installer.archives import make_tar, make_wheel, offer, put
from tests.installer.servers import serve_folder

pytestmark = [pytest.mark.process, pytest.mark.row("T25")]

ROOT = Path(__file__).parents[2]
SETTINGS = "[build-system]\nrequires = []\nbuild-backend = 'build'\nbackend-path = ['.']\n"
LOCK_IN_PLACE = "from gateway.installer.packages import lock_packages; print(lock_packages(['wordlist']))"


@pytest.fixture(autouse=True)
def no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def list_building_files(ran: Path) -> dict[str, str]:
    """A package with a backend of its own, which needs nothing to run."""
    return {"pyproject.toml": SETTINGS, "build.py": f"open({str(ran)!r}, 'w')\n", "PKG-INFO": "Name: evil\n"}


@pytest.mark.parametrize("way", ["file", "http", "git"])
def test_nothing_is_built_that_a_package_names_by_its_address(tmp_path: Path, way: str) -> None:
    ran, name = tmp_path / "ran", "evil-1.0.tar.gz"
    files = list_building_files(ran)
    commit(tmp_path / "repository", files)
    make_tar(tmp_path / name, {f"evil-1.0/{file}": text for file, text in files.items()})
    with serve_folder(tmp_path) as web:
        where = {
            "file": f"file://{tmp_path}/{name}",
            "http": f"{web}/{name}",
            "git": f"git+file://{tmp_path}/repository",
        }
        wheel = make_wheel(tmp_path / "near", "wordlist", {}, [f"evil @ {where[way]}"])
        with pytest.raises(HookError, match="packages of hooks are wheels"):
            lock_package(wheel)
    assert not ran.exists()


def test_a_wheel_that_a_package_names_by_its_address_is_refused(tmp_path: Path) -> None:
    elsewhere = make_wheel(tmp_path / "elsewhere", "verbs", {})
    wheel = make_wheel(tmp_path / "near", "wordlist", {}, [f"verbs @ {elsewhere.as_uri()}"])
    with pytest.raises(HookError, match="verbs would come from an address that a package names"):
        lock_package(wheel)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_wheel_is_pinned_with_what_it_needs_whatever_a_registry_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """There another file of the same name and version fits this system better, and would be preferred."""
    needed = make_wheel(tmp_path / "made", "verbs", {"verbs/__init__.py": ""}, version="1.0rc1+local")
    strange = make_wheel(tmp_path / "made", "words", {"words/__init__.py": "STRANGE = 1"}, ["strange"], "", "1+a")
    fitting = f"words-1+a-cp{sys.version_info.major}{sys.version_info.minor}-none-any.whl"
    offer(tmp_path / "registry", needed, strange.rename(strange.with_name(fitting)))
    wheel = make_wheel(tmp_path / "near by", "words", {"words/__init__.py": ""}, ["verbs>=1.0rc1"], "", "1+a")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PATH", f"{ROOT / '.uv' / 'bin'}:{os.environ['PATH']}" if tool == "uv" else "/usr/bin:/bin")
    with serve_folder(tmp_path / "registry") as web:
        for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
            monkeypatch.setenv(name, f"{web}/simple/")
        locked = lock_package(wheel)
        assert [line.partition(" ")[0] for line in locked] == ["verbs==1.0rc1+local", "words==1+a"]
        install_packages(locked, tmp_path / "place", wheel)
    assert (tmp_path / "place" / "verbs" / "__init__.py").exists()
    assert not (tmp_path / "place" / "words" / "__init__.py").read_text()


HASH = f"--hash=sha256:{'0' * 64}"
VERSIONS = ["1", "v2.0.0-beta.1", "1!1.0rc1.post2.dev3+ubuntu-1.4", "2024.04.01", "1.0+zip"]
ODD_LINES = [
    f"greet @ http://127.0.0.1:1/greet.whl {HASH}",
    f"http://127.0.0.1:1/greet.whl {HASH}",
    f"greet==1.0 --index-url=http://127.0.0.1:1 {HASH}",
    f"--index-url=http://127.0.0.1:1\ngreet==1.0 {HASH}",
    f"greet==1.0 {HASH}\n-r /etc/passwd",
    f"greet==1.0.tar.gz {HASH}",
    f"greet==1.0+a.zip {HASH}",
    f"greet==1.0+a.TAR.GZ {HASH}",
    f"./greet==1.0 {HASH}",
    f"greet>=1.0 {HASH}",
    f"greet==1.* {HASH}",
    f"greet==1.0 {HASH} ; python_version > '3'",
    "greet==1.0",
    "",
]


def test_each_version_that_a_package_may_have_can_be_pinned() -> None:
    assert [one for one in VERSIONS if not is_lock_line(f"greet.words==%s {HASH}" % one)] == []


@pytest.mark.parametrize("line", ODD_LINES)
def test_pip_is_given_names_with_versions_and_hashes_alone(tmp_path: Path, line: str) -> None:
    """A file for `hooks sync` may be a stranger's."""
    with pytest.raises(HookError, match="is not a package with its version and hashes"):
        install_packages([line], tmp_path / "place")


def test_nothing_is_imported_of_the_folder_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at a hook stands in its folder, which may have a `pip.py`."""
    make_wheel(tmp_path, "wordlist", {})
    put(tmp_path, {"pip.py": "open('ran', 'w')\n"})
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    done = subprocess.run([sys.executable, "-P", "-c", LOCK_IN_PLACE], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("('wordlist==1.0 --hash="), done.stderr
    assert not (tmp_path / "ran").exists()
