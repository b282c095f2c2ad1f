"""The environment shows how the program was installed, and so the command that adds to it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import installation
from gateway.installation import IMAGE_RECEIPT, PIPX_RECEIPT, UV_RECEIPT, Way, find_installation


@pytest.mark.parametrize(
    ("files", "way", "line"),
    [
        ((f"env/{UV_RECEIPT}",), "uv tool", "env/bin/python pillow pypdfium2"),
        ((f"env/{PIPX_RECEIPT}",), "pipx", "pipx inject env pillow pypdfium2"),
        ((f"env/{IMAGE_RECEIPT}",), "container", "FROM hermes-gateway: uv pip install"),
        (("x", "gateway/__init__.py"), "clone", "pip install"),
        ((), "environment", "pip install"),
    ],
)
def test_whoever_made_the_environment_adds_to_it(tmp_path: Path, files: tuple[str, ...], way: Way, line: str) -> None:
    (tmp_path / "env").mkdir()
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_installation(tmp_path / "env", tmp_path / "base")
    assert found.way == way
    assert line in found.describe_addition(("pillow", "pypdfium2"))


def test_a_clone_names_the_uv_that_it_has_itself(tmp_path: Path) -> None:
    for name in ("x", "gateway/__init__.py", ".uv/bin/uv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_installation(tmp_path / ".venv", tmp_path).find_uv() == str(tmp_path / ".uv/bin/uv")


def test_without_an_environment_it_is_the_machines() -> None:
    base = Path(sys.base_prefix)
    assert find_installation(base, base).way == "system"


def test_an_upgrade_goes_by_what_made_the_environment(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.mkdir()
    assert find_installation(env, tmp_path).describe_upgrade().endswith("--upgrade hermes-gateway")
    (env / PIPX_RECEIPT).touch()
    assert find_installation(env, tmp_path).describe_upgrade() == f"PIPX_HOME={tmp_path.parent} pipx upgrade env"
    (env / UV_RECEIPT).touch()
    line = f"UV_TOOL_DIR={tmp_path} uv tool upgrade --compile-bytecode env"
    assert find_installation(env, tmp_path).describe_upgrade() == line


def test_a_package_without_byte_code_is_found_and_one_that_could_be_compiled_is_not(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "__init__.py").touch()
    shutil.copy(installation.__file__, tmp_path / "gateway" / "installation.py")
    source = "import sys; from gateway.installation import *; print(*find_packages_to_compile(Path('/nowhere')))"
    found = [
        subprocess.run(
            [sys.executable, *options, "-c", source], cwd=tmp_path, env={}, capture_output=True, text=True
        ).stdout
        for options in (["-B"], [], ["-B"])
    ]
    assert found == [f"{tmp_path / 'gateway'}\n", "\n", "\n"]
