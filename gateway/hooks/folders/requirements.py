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
_LAST = 10**9


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version that compares as PEP 440 orders them: 1.0.dev1 < 1.0a1 < 1.0 == 1.0.0 < 1.0.post1."""

    release: tuple[int, ...]
    key: tuple[object, ...]
    is_early: bool

    @classmethod
    def parse(cls, text: str) -> "Version":
        if not (found := _VERSION.match(text.strip())):
            raise ValueError(f"`{text[:60]}` is no version")
        epoch, release, stage, number, implicit, post, post_number, dev, dev_number, _ = found.groups()
        parts = tuple(int(part) for part in release.split("."))
        while len(parts) > 1 and parts[-1] == 0:
            parts = parts[:-1]
        after = int(implicit or post_number or 0) if implicit or post else -1
        until = int(dev_number or 0) if dev else _LAST
        early = (_STAGES[stage.lower()], int(number or 0)) if stage else (_LAST, 0)
        if dev and not stage and after < 0:
            early = (-1, 0)
        plain = tuple(int(part) for part in release.split("."))
        return cls(plain, (int(epoch or 0), parts, early, after, until), bool(stage or dev))

    def __lt__(self, other: "Version") -> bool:
        return self.key < other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def begins_with(self, release: Sequence[int]) -> bool:
        return (self.release + (0,) * len(release))[: len(release)] == tuple(release)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One package, and the versions of it that will do."""

    name: str
    clauses: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Requirement":
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
            given = Version.parse(version)
        except ValueError:
            return not self.clauses or (("===", version) in self.clauses)
        return all(_holds(given, version, operator, wanted) for operator, wanted in self.clauses)


def _check_clause(operator: str, wanted: str) -> None:
    if operator == "===":
        return
    if wanted.endswith(".*"):
        if operator not in ("==", "!="):
            raise ValueError(f"`{operator}{wanted}`: `.*` goes with == and != alone")
        wanted = wanted[:-2]
    if operator == "~=" and len(Version.parse(wanted).release) < 2:
        raise ValueError(f"`~={wanted}` needs two numbers, as in ~=1.4")
    Version.parse(wanted)


def _holds(given: Version, text: str, operator: str, wanted: str) -> bool:
    if operator == "===":
        return text == wanted
    if wanted.endswith(".*"):
        return given.begins_with(Version.parse(wanted[:-2]).release) is (operator == "==")
    bound = Version.parse(wanted)
    match operator:
        case "==":
            return given == bound or ("+" in text and "+" not in wanted and Version.parse(text.split("+")[0]) == bound)
        case "!=":
            return not _holds(given, text, "==", wanted)
        case ">=":
            return given >= bound
        case "<=":
            return given <= bound
        case ">":
            return given > bound and not (given.begins_with(bound.release) and "post" in text and "post" not in wanted)
        case "<":
            return given < bound and not (given.is_early and not bound.is_early and given.begins_with(bound.release))
    return given >= bound and given.begins_with(bound.release[:-1])


def missing(
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
        if reason := _lack(Requirement.parse(text), packages):
            yield f"the Python package {reason}; run: hermes-gateway hooks deps {manifest.folder}"
    if manifest.needs_platforms and not set(manifest.needs_platforms) & set(platforms):
        names = " or ".join(manifest.needs_platforms)
        yield f"no platform {names} is configured; run: hermes-gateway setup"


def lacking(manifest: Manifest, packages: Sequence[str]) -> list[str]:
    """Which packages of `requires.python`, as written there, are in none of these folders."""
    return [text for text in manifest.needs_python if _lack(Requirement.parse(text), packages)]


def _lack(requirement: Requirement, packages: Sequence[str]) -> str:
    version = next((found for place in packages if (found := _installed(requirement.name, Path(place)))), "")
    if not version:
        return f"{requirement.name} is not installed"
    if requirement.accepts(version):
        return ""
    wanted = ",".join(f"{operator}{bound}" for operator, bound in requirement.clauses)
    return f"{requirement.name} is there in version {version}, and {wanted} is wanted"


def _installed(name: str, place: Path) -> str:
    """The version of a package in this folder, read off its metadata folder's name; importlib.metadata costs 10 ms."""
    wanted = _folded(name)
    try:
        entries = sorted(entry.name for entry in place.iterdir() if entry.suffix == ".dist-info")
    except OSError:
        return ""
    for entry in entries:
        package, _, version = entry.removesuffix(".dist-info").partition("-")
        if _folded(package) == wanted:
            return version
    return ""


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
