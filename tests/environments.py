"""Virtual environments for tests: one like our own without some of its packages, and those of programs of others."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-gateway-tests"


def make_lean_environment(place: Path, left_out: Collection[str]) -> Path:
    """The interpreter of it; all that is not left out is linked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python*/site-packages"))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.partition("-")[0].removesuffix(".py") not in left_out and path.name != "__pycache__":
            (site / path.name).symlink_to(path)
    return place / "bin" / "python"


def find_uv() -> str:
    """The one that `./x` has taken, which installs in a tenth of the time that pip takes."""
    beside = ROOT / ".uv" / "bin" / "uv"
    return str(beside) if beside.exists() else shutil.which("uv") or pytest.fail("there is no uv; ./x test brings it")


def install(package: str, locks: Path) -> Path:
    """The interpreter of an environment with this package, as its lock says; made once on a machine, for all clones."""
    lock = locks / f"{package}.lock"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    place = CACHE / f"{package}-{digest}"
    place.mkdir(parents=True, exist_ok=True)
    python = place / "bin" / "python"
    with (CACHE / f"{package}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # another clone may be at it
        if not (place / "ready").exists():
            fill(place, ["--require-hashes", "-r", str(lock)])
            (place / "ready").touch()
    return python


def fill(place: Path, wanted: Collection[str]) -> None:
    """Make an environment with these packages, in place of what is there."""
    uv, trusting = find_uv(), {"UV_SYSTEM_CERTS": "1", **os.environ}
    for words in (
        ["venv", "--clear", "--no-project", "--python", sys.executable, str(place)],
        ["pip", "install", "--no-config", "--python", str(place / "bin" / "python"), *wanted],
    ):
        done = subprocess.run([uv, *words, "-q"], capture_output=True, text=True, env=trusting, cwd="/", check=False)
        if done.returncode:
            pytest.fail(f"{place.name} cannot be installed here: {done.stderr[-300:]}")
