"""The installation of this program: its environment shows how it was made.

The module imports little on purpose: the daemon uses it too, for the line that installs a missing package.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Way: TypeAlias = Literal["uv tool", "pipx", "container", "clone", "environment", "system"]

PACKAGE = PROGRAM = "hermes-gateway"
CALLED = "HERMES_GATEWAY_CALLED"  # set by `./x`
UV_RECEIPT, PIPX_RECEIPT = "uv-receipt.toml", "pipx_metadata.json"
IMAGE_RECEIPT = "hermes-gateway-image"  # written by our Dockerfile


class Installation(NamedTuple):
    """The environment that holds the program.

    `container`: it came with our image; `clone`: `./x` made it beside the sources; `environment`: a person made it;
    `system`: it is none, but the machine's own packages.
    """

    way: Way
    prefix: Path

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def find_uv(self) -> str:
        """Return the command that calls uv; `./x` keeps one of its own."""
        own = self.prefix.parent / ".uv" / "bin" / "uv"
        return str(own) if self.way == "clone" and own.exists() else "uv"

    def describe_addition(self, packages: Sequence[str]) -> str:
        """Return the command that installs these packages beside the program."""
        names = " ".join(packages)
        if self.way == "pipx":
            return f"pipx inject {self.prefix.name} {names}"
        if self.way == "uv tool":
            return f"uv pip install --python {self.python} {names}"
        if self.way == "container":
            return f"in an image of your own, FROM hermes-gateway: uv pip install --python {self.python} {names}"
        if find_spec("pip") is not None:
            return f"{sys.executable} -m pip install {names}"
        return f"{self.find_uv()} pip install --python {sys.executable} {names}"

    def describe_upgrade(self) -> str:
        """Return the command that upgrades the program in place, by the way it was installed."""
        if self.way == "uv tool":
            return f"UV_TOOL_DIR={self.prefix.parent} uv tool upgrade --compile-bytecode {self.prefix.name}"
        if self.way == "pipx":
            return f"PIPX_HOME={self.prefix.parent.parent} pipx upgrade {self.prefix.name}"
        if find_spec("pip") is not None:
            return f"{self.python} -m pip install --upgrade {PACKAGE}"
        return f"uv pip install --compile-bytecode --python {self.python} --upgrade {PACKAGE}"


def find_packages_to_compile(prefix: Path) -> list[Path]:
    """Find the packages, ours or below `prefix`, of which a module was imported that has no byte code on the disk."""
    specs = [one for module in tuple(sys.modules.values()) if (one := getattr(module, "__spec__", None))]
    missing = {one.name.partition(".")[0] for one in specs if one.cached and not Path(one.cached).exists()}
    places = {Path(one.origin).parent for one in specs if one.name in missing and one.origin}
    return sorted(place for place in places if place.name == "gateway" or place.is_relative_to(prefix))


def find_installation(prefix: Path, base: Path) -> Installation:
    """Find the installation of `sys.prefix` and `sys.base_prefix`: the tools that make environments mark them."""
    if (prefix / UV_RECEIPT).exists():
        return Installation("uv tool", prefix)
    if (prefix / PIPX_RECEIPT).exists():
        return Installation("pipx", prefix)
    if (prefix / IMAGE_RECEIPT).exists():
        return Installation("container", prefix)
    if (prefix.parent / "x").exists() and (prefix.parent / "gateway").is_dir():
        return Installation("clone", prefix)
    return Installation("system" if prefix == base else "environment", prefix)


def find_program_name(environ: Mapping[str, str]) -> str:
    """Return what a person types to call the program; its whole path if nothing shorter leads to it."""
    if called := environ.get(CALLED):
        return called
    own = Path(sys.argv[0])
    is_on_path = any(os.access(f"{folder}/{PROGRAM}", os.X_OK) for folder in os.get_exec_path(environ))
    return PROGRAM if is_on_path or own.name != PROGRAM else str(own)
