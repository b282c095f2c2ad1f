"""An environment beside the one that the program lies in: a copy of it, with the new program in it.

Whatever else was installed there is there too. What is made beside is made for the place where it will be, and comes
there in one step: the kernel exchanges the two folders, so at no moment there is none, and a program that runs from
the old one never sees half of the new one.
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
from gateway.installation import Installation
from gateway.logs.text import to_one_line
from gateway.upgrade.plan import MARK, UpgradeError
from gateway.upgrade.program import PACKAGE
from gateway.worker.kernel import call_kernel

AT_FDCWD, RENAME_EXCHANGE = -100, 2
RENAME_SWAP = 2  # macOS
SPARE_ROOM = 256 << 20  # bytes that stay free when an environment is copied
LONGEST_SCRIPT = 64 << 10
LONGEST_INSTALLATION = 1800.0  # seconds
READABLE = 0o022  # the umask: whoever could read the program before can do so after
UV_CHOICE = ("--upgrade-package", PACKAGE, "--reinstall-package", PACKAGE)
IMPOSSIBLE = {errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.ENOTSUP}


def find_other_place(prefix: Path) -> Path:
    return prefix.with_name(f".{prefix.name}.upgrade")


def check_place(installation: Installation) -> None:
    """Whether a program can be put beside this one.

    Raises:
        UpgradeError: it cannot, and what to do instead.
    """
    prefix = installation.prefix
    if installation.way == "clone":
        raise UpgradeError(
            f"the program is the clone {prefix.parent}, where only you know what is to be kept of your changes\n"
            f"copy the home with `./x backup create`, stop the gateway, run `git pull` in {prefix.parent}, and start it"
        )
    if installation.way == "system":
        raise UpgradeError(
            f"the program lies among the machine's own packages, in {prefix}: nothing can be put beside it\n"
            "install it into an environment of its own: uv tool install, or pipx install"
        )
    if not (os.access(prefix, os.W_OK) and os.access(prefix.parent, os.W_OK)):
        raise UpgradeError(
            f"{prefix} cannot be changed by you\n"
            "in a container, start the newer image on the same volume; else run it as whoever installed the program"
        )
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".exchange-") as tried:
        first, second = Path(tried, "first"), Path(tried, "second")
        first.mkdir()
        second.mkdir()
        exchange_folders(first, second)


def make_environment(prefix: Path, beside: Path) -> None:
    """UpgradeError: there is no room."""
    shutil.rmtree(beside, ignore_errors=True)
    needed = sum(Path(at, name).lstat().st_size for at, _, names in os.walk(prefix) for name in names)
    free = shutil.disk_usage(prefix.parent).free
    if free < needed + SPARE_ROOM:
        raise UpgradeError(f"there is no room beside {prefix}: {needed >> 20} MB are needed, {free >> 20} MB are free")
    shutil.copytree(prefix, beside, symlinks=True)


def make_install_command(installation: Installation, python: Path, environ: Mapping[str, str]) -> list[str]:
    """What installs into the environment of this interpreter; what is to be installed comes behind it.

    Raises:
        UpgradeError: neither pip nor uv is here.
    """
    if installation.way != "uv tool" and find_spec("pip") is not None:
        return [str(python), "-m", "pip", "install", "--upgrade", "--disable-pip-version-check", "--quiet"]
    uv = shutil.which(installation.find_uv(), path=environ.get("PATH", os.defpath))
    if uv is None:
        raise UpgradeError(f"neither pip nor uv is here that could install into {installation.prefix}\ninstall uv")
    return [uv, "pip", "install", "--no-progress", *UV_CHOICE, "--python", str(python)]


def run_installer(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> str:
    """What it prints, on both channels. UpgradeError: it failed."""
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
    """The programs in it name the interpreter of the place where they will be."""
    for script in (beside / "bin").iterdir():
        if script.is_symlink() or not script.is_file() or script.stat().st_size > LONGEST_SCRIPT:
            continue
        text = script.read_bytes()
        if text.startswith(b"#!"):
            script.write_bytes(text.replace(os.fsencode(beside) + b"/", os.fsencode(prefix) + b"/"))


def write_mark(beside: Path, name: str) -> None:
    """All of it is on the disk for good then, before the other one may go."""
    (beside / MARK).write_text(name, "utf-8")
    os.sync()


def exchange_folders(first: Path, second: Path) -> None:
    """Each has the name of the other, from one moment to the next.

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
