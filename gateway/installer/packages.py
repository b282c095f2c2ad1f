"""The Python packages of a hook: chosen with all their requirements, pinned by hash, and unpacked from wheels only.

A wheel is unpacked, never run; a package with only source code would have to be run, and is refused. The installer is
pip of this environment, or of the Python that it was made from; else uv. Each package comes from the registry that pip
uses: URLs in hooks or packages do not count.
"""

import configparser
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from gateway.errors import HookError
from gateway.hooks.manifests.manifest import HANDLER_FILE, MANIFEST_FILE
from gateway.hooks.manifests.requirement import parse_requirement
from gateway.logs.text import to_one_line

ENTRY_POINTS = "hermes_gateway.hooks"
WHEELS_ALONE = "--only-binary=:all:"
REMEDY = "packages of hooks are wheels, from where pip looks for them"
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# A version by PEP 440. The part behind its + is free text: if it ended like a file name, pip would open that file.
_VERSION = (
    r"v?([0-9]+!)?[0-9]+(\.[0-9]+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?"
    r"(-[0-9]+|[-_.]?(post|rev|r)[-_.]?[0-9]*)?([-_.]?dev[-_.]?[0-9]*)?"
    r"(\+(?!\S*\.(whl|zip|tar|gz|tgz|bz2|tbz|xz|txz|lz|tlz|lzma)\b)[a-z0-9]+([-_.][a-z0-9]+)*)?"
)
_LOCKED = re.compile(
    rf"[a-z0-9]([a-z0-9._-]*[a-z0-9])?=={_VERSION}( --hash=sha256:[0-9a-f]{{64}})+", re.ASCII | re.IGNORECASE
)
_OWN_FILE = re.compile(r" @ file:\S*/[^/\s-]+-([^/\s-]+)-[^/\s]+\.whl(?= )")
_MODULE_WORDS = ("-P", "-m", "pip")  # -P: nothing is imported from the current folder
_PACKAGE_INSTALLER = Path(__file__).with_name("package_installer.py")


class PackageTool(NamedTuple):
    """The beginning of a command that installs packages for this interpreter."""

    words: tuple[str, ...]
    is_uv: bool = False

    @property
    def bounded_words(self) -> tuple[str, ...]:
        """The same first words, for an installation that runs no code of a package. uv builds nothing if it may not.

        Its cache has unpacked wheels, whose hashes it does not check again: a process that can write there chooses what
        runs.
        """
        if self.is_uv:
            return (*self.words, "--no-cache")
        return (self.words[0], "-P", str(_PACKAGE_INSTALLER), *self.words[1 + len(_MODULE_WORDS) :])


def find_package_tool() -> PackageTool:
    """Find pip or uv. Raises HookError if both are missing."""
    if importlib.util.find_spec("pip"):
        return PackageTool((sys.executable, *_MODULE_WORDS, "install", "--disable-pip-version-check"))
    if uv := shutil.which("uv"):
        own_files = ("--link-mode", "copy")  # not those of its cache, which others may change
        return PackageTool((uv, "pip", "install", "--no-config", *own_files, "--python", sys.executable), is_uv=True)
    python = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    asked = subprocess.run([python, *_MODULE_WORDS, "--version"], capture_output=True, check=False)
    if asked.returncode:
        raise HookError("neither pip nor uv is there to install packages\ninstall uv, or pip into this environment")
    quiet = ("--disable-pip-version-check", "--no-warn-script-location")
    return PackageTool((python, *_MODULE_WORDS, "install", *quiet))


def lock_packages(wanted: Sequence[str]) -> tuple[str, ...]:
    """Pin these packages and their requirements, each with one version and the hashes of its wheels.

    Raises:
        HookError: one is not a name with versions, is not available, or only as source code.
    """
    for text in wanted:
        try:
            parse_requirement(text)
        except ValueError as error:
            raise HookError(f"{to_one_line(text, 200)!r} is not a package: {error}") from None
    return _lock(wanted) if wanted else ()


def lock_package(wheel: Path) -> tuple[str, ...]:
    """Pin this wheel and its requirements, whatever a registry has under its name.

    Raises HookError as `lock_packages`.
    """
    return _lock([f"{wheel.name.partition('-')[0]} @ {wheel.as_uri()}"])


def _lock(wanted: Sequence[str]) -> tuple[str, ...]:
    tool = find_package_tool()
    locked = (_lock_with_uv if tool.is_uv else _lock_with_pip)(tool, wanted)
    if not all(map(is_lock_line, locked)):
        raise HookError(f"{', '.join(wanted)}: not all of it has a version and a hash, so it cannot be pinned")
    return tuple(sorted(locked))


def _lock_with_pip(tool: PackageTool, wanted: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ("-q", "--dry-run", "--ignore-installed", "--report", str(report), WHEELS_ALONE, *wanted)
        _run((*tool.bounded_words, *words), wanted)
        found = json.loads(report.read_bytes())["install"]
    if named := next((one["metadata"]["name"] for one in found if one["is_direct"] and not one["requested"]), ""):
        raise HookError(f"{', '.join(wanted)}: {named} would come from an address that a package names\n{REMEDY}")
    return [_line_of(one) for one in found]


def _line_of(found: dict[str, dict[str, dict[str, object]]]) -> str:
    name, version = found["metadata"]["name"], found["metadata"]["version"]
    archive = found["download_info"].get("archive_info", {})
    hashes = archive.get("hashes")
    known = hashes.get("sha256", "") if isinstance(hashes, dict) else ""
    return f"{name}=={version} --hash=sha256:{known}"


def _lock_with_uv(tool: PackageTool, wanted: Sequence[str]) -> list[str]:
    uv, python = tool.words[0], tool.words[-1]
    quiet = ("-q", "--no-config", "--no-cache", "--no-header", "--no-annotate", "--no-emit-find-links")
    words = (uv, "pip", "compile", *quiet, "--generate-hashes", "--python", python, WHEELS_ALONE, "-")
    said = _run(words, wanted, "\n".join(wanted))
    lines = (" ".join(line.split()) for line in said.replace("\\\n", " ").splitlines())
    packages = (line for line in lines if line and not line.startswith(("#", "-")))
    return [_OWN_FILE.sub(lambda found: f"=={unquote(found[1])}", line) for line in packages]


def is_lock_line(line: str) -> bool:
    """Return True for a line with one package, its version and hashes, and nothing else: no URL, file or option."""
    return bool(_LOCKED.fullmatch(line))


def install_packages(locked: Sequence[str], place: Path, wheel: Path | None = None) -> None:
    """Install exactly these packages into a new folder; one may be this wheel.

    Raises:
        HookError: a line is invalid, a hash differs, or a package is no longer available.
    """
    for line in locked:
        if not is_lock_line(line):
            raise HookError(f"{to_one_line(line, 200)!r} is not a package with its version and hashes\n{REMEDY}")
    tool = find_package_tool()
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in locked))
        file.flush()
        beside = ("--find-links", str(wheel.parent if tool.is_uv else _write_page(wheel))) if wheel else ()
        options = ("-q", WHEELS_ALONE, "--no-deps", "--require-hashes", *(() if tool.is_uv else ("--no-compile",)))
        names = [line.partition(" ")[0] for line in locked]
        _run((*tool.bounded_words, *options, *beside, "--target", str(place), "-r", file.name), names)
    for made in [*place.rglob("__pycache__")]:  # Python makes them again, and backups leave them out
        shutil.rmtree(made, ignore_errors=True)


def _write_page(wheel: Path) -> Path:
    """Write a page with only this file. Its hash makes pip ignore a registry's package of the same name."""
    page, digest = wheel.with_name("index.html"), hashlib.sha256(wheel.read_bytes()).hexdigest()
    page.write_text(f'<a href="{quote(wheel.name)}#sha256={digest}">{quote(wheel.name)}</a>')
    return page


def _run(words: Sequence[str], wanted: Iterable[str], given: str = "") -> str:
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.lower().startswith("error:")), (lines or ["failed"])[-1])
        what = f"{', '.join(wanted)}: {to_one_line(said, 300)}"
        raise HookError(f"{what}\n{REMEDY}")
    return done.stdout


def find_package_hooks(place: Path) -> dict[str, Path]:
    """Find the folders of hooks that the packages in this place offer, by name; nothing is imported."""
    found: dict[str, Path] = {}
    for points in sorted(place.glob("*.dist-info/entry_points.txt")):
        table = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        table.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
        try:
            table.read_string(points.read_text("utf-8"))
        except (configparser.Error, UnicodeDecodeError):
            continue
        for name, value in table.items(ENTRY_POINTS) if table.has_section(ENTRY_POINTS) else ():
            module = value.partition(":")[0].strip()
            folder = place.joinpath(*module.split("."))
            if _MODULE.fullmatch(module) and any((folder / file).is_file() for file in (MANIFEST_FILE, HANDLER_FILE)):
                found[name] = folder
    return found
