"""Which Python packages a hook requires, and whether they are there."""

import functools
import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# Imported when the first hook needs a Python package: it costs as much of the start as a hundred hooks.
REQUIREMENT_LIBRARY = "packaging.requirements"


@functools.cache
def _load_packaging() -> ModuleType:
    return importlib.import_module(REQUIREMENT_LIBRARY)


def parse_requirement(text: str) -> "Requirement":
    """Reads a package and the versions of it that will do, as PEP 440 writes them.

    Raises ValueError with the reason, also for a condition and for an address: those are refused, never guessed.
    """
    try:
        requirement: Requirement = _load_packaging().Requirement(text)
    except ValueError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    if requirement.marker or requirement.url:
        raise ValueError("conditions and addresses are not read here")
    return requirement


def describe_missing_package(text: str, packages: Sequence[str]) -> str:
    requirement = parse_requirement(text)
    version = next(
        (found for place in packages if (found := _find_installed_version(requirement.name, Path(place)))), ""
    )
    if not version:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} is there in version {version}, and {requirement.specifier} is wanted"


def _find_installed_version(name: str, place: Path) -> str:
    """Reads the version of a package off its metadata folder's name; importlib.metadata costs 10 ms."""
    wanted = _normalize_name(name)
    try:
        entries = sorted(entry.name for entry in place.iterdir() if entry.suffix == ".dist-info")
    except OSError:
        return ""
    for entry in entries:
        package, _, version = entry.removesuffix(".dist-info").partition("-")
        if _normalize_name(package) == wanted:
            return version
    return ""


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
