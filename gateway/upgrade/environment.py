"""The environment beside the program's own: a copy of it, with the new program in it.

So it has all other packages too. It is made for its final place, and moves there in one step: the kernel exchanges the
two folders, so that one always exists, and a program that runs from the old one never sees half of the new one.
"""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from gateway.engine.sqlite.journal_file import sync
from gateway.installation import PACKAGE, Installation
from gateway.logs.text import to_one_line
from gateway.upgrade.plan import UpgradeError
from gateway.worker.kernel import call_kernel

AT_FDCWD, RENAME_EXCHANGE = -100, 2
RENAME_SWAP = 2  # the value on macOS
LONGEST_SCRIPT = 64 << 10
LONGEST_INSTALLATION = 1800.0  # seconds
READABLE = 0o022  # the umask: users who could read the program before can read the new one
UV_CHOICE = ("--upgrade-package", PACKAGE, "--reinstall-package", PACKAGE)
IMPOSSIBLE = {errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.ENOTSUP}


def check_place(installation: Installation) -> None:
    """Check that a program can be put beside this one.

    Raises:
        UpgradeError: it cannot, with the alternative.
    """
    prefix = installation.prefix
    if installation.way == "container":
        raise UpgradeError(
            "the program is part of an image, and comes with the next one; the home stays in the volume\n"
            "on the host copy it: docker compose exec gateway hermes-gateway backup create\n"
            "then, in a newer clone: docker compose up --detach --build\n"
            "or, where the image is built elsewhere: docker compose pull && docker compose up --detach"
        )
    if installation.way == "clone":
        raise UpgradeError(
            f"the program is the clone {prefix.parent}, where only you know what is to be kept of your changes\n"
            f"in {prefix.parent} run: ./x backup create && ./x stop && git pull && ./x run\n"
            "where a service runs it, not the last one: systemctl --user start chat-gateway"
        )
    if installation.way == "system":
        raise UpgradeError(
            f"the program is among the machine's own packages, in {prefix}: nothing can be installed beside it\n"
            "install it into an environment of its own: uv tool install, or pipx install"
        )
    if not all(os.access(place, os.W_OK, effective_ids=True) for place in (prefix, prefix.parent)):
        owner = describe_owner(prefix)
        raise UpgradeError(
            f"{prefix} cannot be changed by you: it belongs to {owner}\n"
            "copy the home, and stop the gateway: hermes-gateway backup create && hermes-gateway stop\n"
            f"then, as {owner}: {installation.describe_upgrade()}\n"
            "and start it: hermes-gateway run, or as what serves it here"
        )
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".exchange-") as tried:
        first, second = Path(tried, "first"), Path(tried, "second")
        first.mkdir()
        second.mkdir()
        exchange_folders(first, second)


def describe_owner(path: Path) -> str:
    """Return the owner's name, or the number of an unknown one."""
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"


def make_environment(prefix: Path, beside: Path) -> None:
    """Copy the environment, and replace an earlier copy."""
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(prefix, beside, symlinks=True)


def make_install_command(installation: Installation, python: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the command that installs into this interpreter's environment, without the package itself.

    Raises:
        UpgradeError: neither pip nor uv was found.
    """
    if installation.way != "uv tool" and find_spec("pip") is not None:
        return [str(python), "-m", "pip", "install", "--upgrade", "--disable-pip-version-check", "--quiet"]
    uv = shutil.which(installation.find_uv(), path=environ.get("PATH", os.defpath))
    if uv is None:
        raise UpgradeError(f"neither pip nor uv is here that could install into {installation.prefix}\ninstall uv")
    return [uv, "pip", "install", "--compile-bytecode", "--no-progress", *UV_CHOICE, "--python", str(python)]


def run_installer(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> str:
    """Run the installer, and return its output, from both channels. Raises UpgradeError if it failed."""
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_INSTALLATION,
            umask=READABLE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UpgradeError(f"{command[0]} cannot install it: {error}") from None
    if done.returncode:
        said = [to_one_line(line, 300) for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise UpgradeError("\n".join(["the new program cannot be installed; nothing was changed", *said[-8:]]))
    return done.stdout + done.stderr


def move_scripts(beside: Path, prefix: Path) -> None:
    """Change the interpreter that the scripts name to the one at their final place."""
    for script in (beside / "bin").iterdir():
        if script.is_symlink() or not script.is_file() or script.stat().st_size > LONGEST_SCRIPT:
            continue
        text = script.read_bytes()
        if text.startswith(b"#!"):
            script.write_bytes(text.replace(os.fsencode(beside) + b"/", os.fsencode(prefix) + b"/"))


def exchange_folders(first: Path, second: Path) -> None:
    """Exchange the names of two folders in one step.

    Raises:
        UpgradeError: this file system cannot do that.
    """
    names = os.fsencode(first), os.fsencode(second)
    try:
        if sys.platform == "darwin":
            call_kernel("renamex_np", *names, RENAME_SWAP)
        else:
            call_kernel("renameat2", AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in IMPOSSIBLE:
            raise
        raise UpgradeError(
            f"two folders cannot be exchanged at once in {first.parent} ({error.strerror})\n"
            "stop the gateway, install the new version the way you installed this one, and start it"
        ) from None
    sync(first.parent)
