"""The path of the program for a service: it stays the same when the program is upgraded."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from gateway.cli.program import PROGRAM
from gateway.errors import ConfigError


def find_program(environ: Mapping[str, str], called: str, python: str) -> Path:
    """Return the program on the PATH, if it is ours (uv and pipx keep a link there), or else the one that was called.

    Raises:
        ConfigError: it was started in another way, and no program was found.
    """
    own = Path(python).parent / PROGRAM
    on_path = shutil.which(PROGRAM, path=environ.get("PATH", ""))
    if on_path and own.exists() and own.samefile(on_path):
        return Path(on_path).absolute()
    for found in (own, Path(called).absolute()):
        if found.name == PROGRAM and os.access(found, os.X_OK):
            return found
    raise ConfigError(f"program {PROGRAM} not found beside {python}\ninstall it as README.md says: uv tool install .")


def check_reach(program: Path, whose: str) -> None:
    """Check that the service's own user can start the program.

    Raises:
        ConfigError: a folder on the way is closed for others.
    """
    for place in (program.parent, program.resolve().parent):
        for folder in (place, *place.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                raise ConfigError(
                    f"{program} cannot be reached by the user {whose}: {folder} is closed for others\n"
                    "install it where all can read it, for instance: "
                    "UV_TOOL_DIR=/opt/uv-tools UV_TOOL_BIN_DIR=/usr/local/bin uv tool install ."
                )
