"""What a hook needs before it can work, and whether it is there: programs, environment, Python packages, platforms.

Package requirements are read as PEP 440 writes them, as far as people write them in a manifest: a name, extras, and
versions compared by `== != >= <= > < ~= ===`. What lies beyond (markers, URLs) is refused, never guessed.
"""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path

from gateway.hooks.folders.manifest import Manifest

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)\Z", re.DOTALL)
_CLAUSE = re.compile(r"\s*(===|==|!=|>=|<=|~=|>|<)\s*([^\s,]+)\s*\Z")
_VERSION = re.compile(
    r"v?(?:(\d{1,9})!)?(\d{1,9}(?:\.\d{1,9})*)"
    r"(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d{0,9}))?"
    r"(?:-(\d{1,9})|[-_.]?(post|rev|r)[-_.]?(\d{0,9}))?"
    r"(?:[-_.]?(dev)[-_.]?(\d{0,9}))?"
    r"(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?\Z",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_HIGHEST = 10**9


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class PackageVersion:
    """A version that compares as PEP 440 orders them: 1.0.dev1 < 1.0a1 < 1.0 == 1.0.0 < 1.0.post1."""

    release: tuple[int, ...]
    key: tuple[object, ...]
    is_early: bool

    @classmethod
    def parse(cls, text: str) -> "PackageVersion":
        if not (found := _VERSION.match(text.strip())):
            raise ValueError(f"`{text[:60]}` is no version")
        epoch, release, stage, number, implicit, post, post_number, dev, dev_number, _ = found.groups()
        parts = tuple(int(part) for part in release.split("."))
        while len(parts) > 1 and parts[-1] == 0:
            parts = parts[:-1]
        after = int(implicit or post_number or 0) if implicit or post else -1
        until = int(dev_number or 0) if dev else _HIGHEST
        early = (_STAGES[stage.lower()], int(number or 0)) if stage else (_HIGHEST, 0)
        if dev and not stage and after < 0:
            early = (-1, 0)
        plain = tuple(int(part) for part in release.split("."))
        return cls(plain, (int(epoch or 0), parts, early, after, until), bool(stage or dev))

    def __lt__(self, other: "PackageVersion") -> bool:
        return self.key < other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackageVersion) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def begins_with(self, release: Sequence[int]) -> bool:
        return (self.release + (0,) * len(release))[: len(release)] == tuple(release)


@dataclass(frozen=True, slots=True)
class PackageRequirement:
    """One package, and the versions of it that will do."""

    name: str
    clauses: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "PackageRequirement":
        """Raises ValueError with the reason."""
        if not (found := _REQUIREMENT.match(text)):
            raise ValueError("this is no package's name")
        name, rest = found.groups()
        if ";" in rest or "@" in rest:
            raise ValueError("conditions and addresses are not read here")
        clauses = []
        for part in rest.strip().removeprefix("(").removesuffix(")").split(",") if rest.strip() else ():
            if not (clause := _CLAUSE.match(part)):
                raise ValueError(f"`{part.strip()}` compares nothing")
            _check_clause(*clause.groups())
            clauses.append((clause[1], clause[2]))
        return cls(name, tuple(clauses))

    def accepts(self, version: str) -> bool:
        try:
            given = PackageVersion.parse(version)
        except ValueError:
            return not self.clauses or (("===", version) in self.clauses)
        return all(_is_met(given, version, operator, wanted) for operator, wanted in self.clauses)


def _check_clause(operator: str, wanted: str) -> None:
    if operator == "===":
        return
    if wanted.endswith(".*"):
        if operator not in ("==", "!="):
            raise ValueError(f"`{operator}{wanted}`: `.*` goes with == and != alone")
        wanted = wanted[:-2]
    if operator == "~=" and len(PackageVersion.parse(wanted).release) < 2:
        raise ValueError(f"`~={wanted}` needs two numbers, as in ~=1.4")
    PackageVersion.parse(wanted)


def _is_met(given: PackageVersion, text: str, operator: str, wanted: str) -> bool:
    if operator == "===":
        return text == wanted
    if wanted.endswith(".*"):
        return given.begins_with(PackageVersion.parse(wanted[:-2]).release) is (operator == "==")
    bound = PackageVersion.parse(wanted)
    match operator:
        case "==":
            return given == bound or (
                "+" in text and "+" not in wanted and PackageVersion.parse(text.split("+")[0]) == bound
            )
        case "!=":
            return not _is_met(given, text, "==", wanted)
        case ">=":
            return given >= bound
        case "<=":
            return given <= bound
        case ">":
            return given > bound and not (given.begins_with(bound.release) and "post" in text and "post" not in wanted)
        case "<":
            return given < bound and not (given.is_early and not bound.is_early and given.begins_with(bound.release))
    return given >= bound and given.begins_with(bound.release[:-1])


def find_missing_needs(
    manifest: Manifest,
    environ: Mapping[str, str],
    platforms: Collection[str],
    packages: Sequence[str],
) -> Iterator[str]:
    """What is not there, each as a sentence with its remedy.

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
        if reason := _describe_missing_package(PackageRequirement.parse(text), packages):
            yield f"the Python package {reason}; run: hermes-gateway hooks deps {manifest.folder}"
    if manifest.needs_platforms and not set(manifest.needs_platforms) & set(platforms):
        names = " or ".join(manifest.needs_platforms)
        yield f"no platform {names} is configured; run: hermes-gateway setup"


def list_missing_packages(manifest: Manifest, packages: Sequence[str]) -> list[str]:
    """Which packages of `requires.python`, as written there, are in none of these folders."""
    return [
        text for text in manifest.needs_python if _describe_missing_package(PackageRequirement.parse(text), packages)
    ]


def _describe_missing_package(requirement: PackageRequirement, packages: Sequence[str]) -> str:
    version = next(
        (found for place in packages if (found := _find_installed_version(requirement.name, Path(place)))), ""
    )
    if not version:
        return f"{requirement.name} is not installed"
    if requirement.accepts(version):
        return ""
    wanted = ",".join(f"{operator}{bound}" for operator, bound in requirement.clauses)
    return f"{requirement.name} is there in version {version}, and {wanted} is wanted"


def _find_installed_version(name: str, place: Path) -> str:
    """The version of a package in this folder, read off its metadata folder's name; importlib.metadata costs 10 ms."""
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
