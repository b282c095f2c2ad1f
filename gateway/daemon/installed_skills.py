"""Installed skills. As long as its files are unchanged, an installed skill is like a skill that you placed yourself.

A skill may contain hooks. If another hook has the same name, the hook of the skill does not run. The gateway reports
this, since the hook may be a guard.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gateway.agent.skills import FILE, Skill, find_skills, read_skill
from gateway.config.home import Home
from gateway.daemon.dialects import make_folder_source
from gateway.hooks.manifests.installed import HooksLock
from gateway.hooks.places.sources import Source
from gateway.hooks.places.trusted_copy import has_digest
from gateway.yaml_source.tree import Finding, SourceLocation

HOOKS_FOLDER = "hooks"  # in the folder of a skill
CHANGED = "is not what was installed"
PLACED = "the skill in {place} replaces it"


def find_installed_skills(home: Home, placed: Iterable[Skill]) -> tuple[tuple[Skill, ...], tuple[Finding, ...]]:
    """Find the installed skills that no placed skill replaces, and the problems of the other installed skills."""
    lock, findings = HooksLock(home.hooks_lock), list[Finding]()
    names = {skill.name: skill.folder for skill in placed}
    found = []
    for name, entry in lock.list_skills():
        folder = home.own_folder / entry.path
        place = SourceLocation(str(folder / FILE), 1, 1)
        if name in names:
            words, remedy = PLACED.format(place=names[name]), "remove one of the two"
            findings.append(Finding(place, words, remedy, "warning"))
        elif not has_digest(folder, entry.digest):
            remedy = f"install it again, or: hermes-gateway skills remove {name}"
            findings.append(Finding(place, f"the skill {name} {CHANGED}", remedy))
        elif skill := read_skill(folder, findings):
            found.append(skill)
    return tuple(found), tuple(findings)


def list_skills(home: Home) -> tuple[Skill, ...]:
    """List all skills that an agent can load."""
    placed, _ = find_skills([home.skills])
    return (*placed, *find_installed_skills(home, placed)[0])


def find_skill_folder(home: Home, folder: Path) -> Path:
    """Return the current folder of a skill; each update moves an installed skill to a new folder."""
    if not folder.is_relative_to(home.installed_skills):
        return folder
    entry = dict(HooksLock(home.hooks_lock).list_skills()).get(folder.name)
    return home.own_folder / entry.path if entry else folder


def list_unused_hooks(skills: Iterable[Skill], sources: Sequence[Source]) -> Iterator[Finding]:
    """List the skills' hooks that do not run, because a hook of these places or of a later skill replaces them."""
    brought: dict[str, tuple[Skill, Path]] = {}
    for skill in sorted(skills, key=lambda one: one.folder, reverse=True):
        for name, folder in list_skill_hooks(skill.folder):
            place = SourceLocation(str(folder))
            what, remedy = f"the hook {name} of the skill {skill.name} does not run", "rename one of the two"
            if other := find_other(name, sources):
                yield Finding(place, f"{what}: {other} replaces it", remedy, "warning")
                continue
            last, other = brought.setdefault(name, (skill, folder))
            if last is not skill:
                where = f"for people who have the skill {last.name}, too, whose {other} replaces it"
                yield Finding(place, f"{what} {where}", remedy, "warning")


def list_skill_hooks(folder: Path) -> Iterator[tuple[str, Path]]:
    """List the names and folders of the hooks in the folder of a skill."""
    for version in make_folder_source(folder / HOOKS_FOLDER, "").list():
        yield version.name, version.path


def find_other(name: str, sources: Sequence[Source]) -> Path | None:
    """Return the folder of the hook with this name that runs: the hook in the last of these places."""
    found = (source.find(name) for source in reversed(sources))
    return next((version.path for version in found if version), None)
