"""A virtual environment like the one of the tests, without some of its packages."""

import subprocess
import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path


def make_lean_environment(place: Path, left_out: Collection[str]) -> Path:
    """The interpreter of it; all that is not left out is linked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python*/site-packages"))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.partition("-")[0].removesuffix(".py") not in left_out and path.name != "__pycache__":
            (site / path.name).symlink_to(path)
    return place / "bin" / "python"
