"""Skills that were installed: as long as they lie there as they were, they are skills like those that were placed."""

from collections.abc import Iterable
from pathlib import Path

from gateway.agent.skills import FILE, Skill, find_skills, read_skill
from gateway.config.home import Home
from gateway.hooks.folders.installed import HooksLock
from gateway.hooks.folders.trusted_copy import has_digest
from gateway.yaml_source import Finding, SourceLocation

CHANGED = "is not what was installed"
PLACED = "the skill in {place} stands in for it"


def find_installed_skills(home: Home, placed: Iterable[Skill]) -> tuple[tuple[Skill, ...], tuple[Finding, ...]]:
    """Those for which no placed one stands in, and what is wrong with those that were left out."""
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
    """All that can be learnt."""
    placed, _ = find_skills([home.skills])
    return (*placed, *find_installed_skills(home, placed)[0])


def find_skill_folder(home: Home, folder: Path) -> Path:
    """Where the skill lies now that lay there: an installed one lies elsewhere since each update."""
    if not folder.is_relative_to(home.installed_skills):
        return folder
    entry = dict(HooksLock(home.hooks_lock).list_skills()).get(folder.name)
    return home.own_folder / entry.path if entry else folder
