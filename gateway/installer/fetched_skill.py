"""A skill before its installation: its files, read and not run, and the hooks that it brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.agent import Skill
from gateway.agent.skills import FILE, NAME, read_skill, read_skill_name
from gateway.errors import HookError
from gateway.hooks.manifests.manifest import MANIFEST_FILE
from gateway.hooks.places.dialect import Dialect
from gateway.hooks.places.hook_files import is_ignored_entry
from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.installer.fetched_hook import NAME as HOOK_NAME
from gateway.installer.fetched_hook import FetchedEntry, FetchedHook, cut_digest, read_hook
from gateway.installer.source import HookSource, fetch
from gateway.logs.text import to_one_line
from gateway.yaml_source.tree import Finding

BROUGHT_FOLDER = "hooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSkill(FetchedEntry):
    """A fetched skill, with the hooks that it brings."""

    description: str
    hooks: tuple[FetchedHook, ...]

    @property
    def folder_name(self) -> str:
        """The path of its folder beside other versions of it; the last part is its name, as for every skill."""
        return f"{self.name}@{cut_digest(self.digest)}/{self.name}"


def fetch_skill(
    source: HookSource, work: Path, environ: Mapping[str, str], dialects: tuple[Dialect, ...], said: str = ""
) -> FetchedSkill:
    """Fetch a skill and read it. `said`: the source as it was written.

    Raises:
        HookError: it is not available, is not a skill, or brings a hook that would not run.
    """
    files = fetch(source, work, environ)
    if not (files.folder / FILE).is_file():
        remedy = "\nit is a hook: hermes-gateway hooks install" if (files.folder / MANIFEST_FILE).is_file() else ""
        raise HookError(f"{to_one_line(files.name)} is not a skill: it has no {FILE}{remedy}")
    skill = _read(files.folder, files.name, work)
    whole = read_whole_folder(skill.folder)
    return FetchedSkill(
        name=skill.name,
        own_version=skill.version,
        description=skill.description,
        folder=skill.folder,
        source=said or str(source),
        commit=files.commit,
        digest=whole.digest,
        size=sum(len(data) for _, data in whole.files.values()),
        files=len(whole.files),
        hooks=tuple(_read_brought(skill.folder / BROUGHT_FOLDER, dialects)),
    )


def _read(folder: Path, offered: str, work: Path) -> Skill:
    """Move the skill to a folder of its own name: the one in its text, or else that of its source."""
    name = read_skill_name(folder) or offered.lower()
    if not NAME.match(name):
        raise HookError(f"{to_one_line(name)!r} is not a valid skill name\nwrite `name:` at the top of its {FILE}")
    target = work / "skill" / name
    target.parent.mkdir(mode=0o700)
    findings: list[Finding] = []
    skill = read_skill(folder.rename(target), findings)
    if skill is None:
        raise HookError("\n".join((f"{name} could not be loaded:", *map(str, findings))))
    return skill


def _read_brought(folder: Path, dialects: tuple[Dialect, ...]) -> list[FetchedHook]:
    found = sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    for one in found:
        if not HOOK_NAME.match(one.name) or is_ignored_entry(folder, one.name):
            what = f"{to_one_line(one.name)!r} is not a valid name for a hook that a skill brings"
            remedy = "at most 61 of them; and no name of what is none of a skill, as venv"
            raise HookError(f"{what}\nit takes lower-case letters, digits, '-' and '_', {remedy}")
    hooks = [read_hook(one, dialects) for one in found]
    for hook in hooks:
        if hook.manifest.requires.python:
            what = f"its hook {hook.name} needs packages, which come with hooks alone"
            raise HookError(f"{what}\noffer it as a hook: hermes-gateway hooks install")
    return hooks
