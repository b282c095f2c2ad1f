"""What a hook needs before it can work, and whether it is there: programs, environment, Python packages, platforms."""

import functools
import importlib
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gateway.hooks.folders.manifest import Manifest

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


def find_missing_needs(
    manifest: Manifest,
    environ: Mapping[str, str],
    platforms: Collection[str],
    packages: Sequence[str],
) -> Iterator[str]:
    """Yields what is not there, each as a sentence with its remedy.

    `environ` is what the hook would see, `packages` the folders in which its interpreter looks for packages.
    """
    for name in manifest.needs_bins:
        if shutil.which(name, path=environ.get("PATH")) is None:
            yield f"the program {name} is not on the PATH; install it"
    wanted = (*manifest.needs_env, *((manifest.secret_env,) if manifest.secret_env else ()))
    for name in dict.fromkeys(wanted):
        if not environ.get(name):
            yield f"the environment variable {name} is not set; put it into .env"
    for text in manifest.needs_python:
        if reason := _describe_missing_package(text, packages):
            yield f"the Python package {reason}; run: hermes-gateway hooks deps {manifest.folder}"
    if manifest.needs_platforms and not set(manifest.needs_platforms) & set(platforms):
        names = " or ".join(manifest.needs_platforms)
        yield f"no platform {names} is configured; run: hermes-gateway setup"


def list_missing_packages(manifest: Manifest, packages: Sequence[str]) -> list[str]:
    """Returns the packages of `requires.python`, as written there, that are in none of these folders."""
    return [text for text in manifest.needs_python if _describe_missing_package(text, packages)]


def _describe_missing_package(text: str, packages: Sequence[str]) -> str:
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
