"""The requirement to install: from the present source or a chosen one, with the extras that are in use."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from gateway.installation import PACKAGE
from gateway.upgrade.plan import UpgradeError

ADDED = re.compile(r"^ [+~] ([\w.-]+)(?:==(\S+)| @ \S+)", re.MULTILINE)


def list_extras(found: Distribution) -> tuple[str, ...]:
    """List the extras whose packages are all installed: the choice at the installation is not recorded."""
    wanted = [Requirement(one) for one in found.requires or ()]
    extras = []
    for extra in found.metadata.get_all("Provides-Extra") or ():
        names = {one.name for one in wanted if one.marker and is_needed_by(one, extra)} - {PACKAGE}
        if names and all(map(is_installed, names)):
            extras.append(extra)
    return tuple(extras)


def is_needed_by(requirement: Requirement, extra: str) -> bool:
    assert requirement.marker
    return requirement.marker.evaluate({"extra": extra}) and not requirement.marker.evaluate({"extra": ""})


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def find_requirement(chosen: str, found: Distribution, folder: Path) -> str:
    """Return the requirement for pip and uv.

    `chosen`: a file, a folder (relative to `folder`), a URL; "": the present source.

    Raises:
        UpgradeError: it was not found, or the present source is not known.
    """
    extras = list_extras(found)
    name = f"{PACKAGE}[{','.join(extras)}]" if extras else PACKAGE
    source = chosen or find_origin(found)
    if not source:
        return name
    if "://" in source:
        requirement = f"{name} @ {source}"
    elif (folder / source).exists():
        requirement = f"{name} @ {(folder / source).resolve().as_uri()}"
    else:
        raise UpgradeError(
            f"{folder / source} not found\nname a wheel, a folder, or an address such as git+https://..."
        )
    try:
        Requirement(requirement)
    except InvalidRequirement as error:
        raise UpgradeError(f"{source} is nothing that can be installed: {error}".replace("\n", " ")) from None
    return requirement


def find_origin(found: Distribution) -> str:
    """Return the folder or repository of the installation; "": an index of packages.

    Raises:
        UpgradeError: it was a file, and the same one again would be no other version.
    """
    origin: Mapping[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        wanted = f"@{vcs['requested_revision']}" if vcs.get("requested_revision") else ""
        return f"{vcs['vcs']}+{origin['url']}{wanted}"
    if "archive_info" in origin:
        raise UpgradeError(f"it was installed from the file {origin['url']}\nsay where the new one is, with --from")
    return str(origin.get("url", ""))


def parse_changes(printed: str) -> dict[str, str]:
    """Return the packages that an installer would bring, by its own report.

    This is pip's report, or uv's list, which has no version of a package from a URL.
    """
    if printed.lstrip().startswith("{"):
        report = json.JSONDecoder().raw_decode(printed.lstrip())[0]
        return {str(one["metadata"]["name"]): str(one["metadata"]["version"]) for one in report["install"]}
    return dict(ADDED.findall(printed))


def read_version(folder: Path) -> str:
    """Return the version of the program in a folder. Raises UpgradeError if it has none."""
    found = next((one for one in distributions(path=[str(folder)]) if one.metadata["Name"] == PACKAGE), None)
    if found is None:
        raise UpgradeError(f"the package there is not {PACKAGE}; nothing was changed")
    return found.version


def list_trial_options(command: Sequence[str]) -> tuple[str, ...]:
    """Return the options with which an installer only reports what it would do."""
    return ("--dry-run", "--report", "-") if "-m" in command else ("--dry-run",)
