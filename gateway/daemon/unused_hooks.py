"""Hooks of skills that do not run, since another hook has their name: a guard may be among them, so it is said."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gateway.agent.skills import Skill
from gateway.daemon.skill_hooks import HOOKS_FOLDER
from gateway.hermes.sources import HermesFolderSource
from gateway.hooks.folders.sources import Source
from gateway.yaml_source import Finding, SourceLocation


def list_unused_hooks(skills: Iterable[Skill], sources: Sequence[Source]) -> Iterator[Finding]:
    """Any hook of these places stands in for one of a skill; of two skills' hooks the one whose folder comes last."""
    brought: dict[str, tuple[Skill, Path]] = {}
    for skill in sorted(skills, key=lambda one: one.folder, reverse=True):
        for name, folder in list_skill_hooks(skill.folder):
            place = SourceLocation(str(folder))
            what, remedy = f"the hook {name} of the skill {skill.name} does not run", "rename one of the two"
            if other := find_other(name, sources):
                yield Finding(place, f"{what}: {other} stands in for it", remedy, "warning")
                continue
            last, other = brought.setdefault(name, (skill, folder))
            if last is not skill:
                where = f"where somebody has the skill {last.name}, too, whose {other} stands in for it"
                yield Finding(place, f"{what} {where}", remedy, "warning")


def list_skill_hooks(folder: Path) -> Iterator[tuple[str, Path]]:
    """Those of the skill in this folder: how each is called, and where it lies."""
    for version in HermesFolderSource(folder / HOOKS_FOLDER, "").list():
        yield version.name, version.path


def find_other(name: str, sources: Sequence[Source]) -> Path | None:
    """Where the hook of this name lies that runs: a later place counts."""
    found = (source.find(name) for source in reversed(sources))
    return next((version.path for version in found if version), None)
