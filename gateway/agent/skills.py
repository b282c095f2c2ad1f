"""Skills: folders with a SKILL.md, disclosed in three steps.

The model always sees a skill's name and description; it loads the text when the task wants it; and the files beside
it are read by the text's own advice. Finding skills reads their front matter alone, and runs nothing.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gateway.errors import AgentError
from gateway.files.folders import read_plain_file
from gateway.yaml_source.parser import parse_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlMapping, YamlScalar

FILE = "SKILL.md"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
LONGEST_FILE = 200_000
FENCE = b"---"


class Skill(msgspec.Struct, frozen=True):
    """A skill before it is loaded: its front matter, and where it is."""

    name: str
    description: str
    folder: Path
    version: str = ""


def find_skills(roots: Iterable[Path]) -> tuple[tuple[Skill, ...], tuple[Finding, ...]]:
    """Find the skills below these folders, and the faults of those that were left out.

    If two have one name, the first root's counts. A missing root is empty.
    """
    skills: dict[str, Skill] = {}
    findings: list[Finding] = []
    for root in roots:
        for folder in _folders(root):
            skill = read_skill(folder, findings)
            if skill is None:
                continue
            if skill.name in skills and skills[skill.name].folder != folder:
                place = SourceLocation(str(folder / FILE), 1, 1)
                what = f"the skill {skill.name!r} is there already: {skills[skill.name].folder}"
                findings.append(Finding(place, what, "rename one of the two", "warning"))
            skills.setdefault(skill.name, skill)
    return tuple(skills.values()), tuple(findings)


def read_skill(folder: Path, findings: list[Finding]) -> Skill | None:
    """Read the skill in a folder, or return None; its faults join the findings."""
    path = folder / FILE
    try:
        head, _ = _split_front_matter(path)
    except AgentError as error:
        findings.append(
            Finding(SourceLocation(str(path), 1, 1), str(error), "begin the file with --- name and description ---")
        )
        return None
    tree = parse_yaml(b"\n" + head, str(path))  # its first line is the fence: lines count as in the file
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(SourceLocation(str(path), 1, 1))
    faults = [*tree.findings, *_check_front_matter(root, folder)]
    findings += faults
    if any(fault.severity == "error" for fault in faults):
        return None
    return Skill(folder.name, _text(root, "description"), folder, _version(root))


def read_skill_name(folder: Path) -> str:
    """Return the name in a skill's own file; "" if it has none."""
    try:
        head, _ = _split_front_matter(folder / FILE)
    except AgentError:
        return ""
    root = parse_yaml(head, FILE).root
    return _text(root, "name") if isinstance(root, YamlMapping) else ""


def read_skill_text(skill: Skill) -> str:
    """Return the text of a skill for the model: without the front matter, with the place of its files.

    Raises:
        AgentError: it cannot be read any more.
    """
    _, body = _split_front_matter(skill.folder / FILE)
    files = sorted(_files(skill.folder))[:100]
    beside = f"\n\nFiles of this skill, in {skill.folder}: {', '.join(files)}" if files else ""
    return body.decode("utf-8", "replace").strip() + beside


def render_skills_prompt(skills: Sequence[Skill]) -> str:
    """Return the part of the instructions that lists the skills which the model can load."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {skill.description}" for skill in skills]
    return "\n".join(["Skills that you can load with load_skill when they fit the task:", *lines])


def _folders(root: Path) -> list[Path]:
    try:
        found = sorted(root.iterdir())
    except OSError:
        return []
    hidden = (".", "_")
    return [folder for folder in found if not folder.name.startswith(hidden) and (folder / FILE).is_file()]


def _files(folder: Path) -> Iterable[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in files:
            if name != FILE and not name.startswith("."):
                yield str((Path(place) / name).relative_to(folder))


def _split_front_matter(path: Path) -> tuple[bytes, bytes]:
    """Split a file into front matter and body."""
    try:
        data = read_plain_file(path, LONGEST_FILE + 1)
    except OSError as error:
        raise AgentError(f"the skill cannot be read: {error.strerror}") from None
    if len(data) > LONGEST_FILE:
        raise AgentError(f"the skill is longer than {LONGEST_FILE:,} bytes")
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise AgentError("the skill has no front matter")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise AgentError("the front matter has no end")
    return b"\n".join(lines[1:end]), b"\n".join(lines[end + 1 :])


def _check_front_matter(root: YamlMapping, folder: Path) -> Iterable[Finding]:
    name, description = root.get("name"), _text(root, "description")
    place = name.place if name else root.place
    if _text(root, "name") != folder.name:
        yield Finding(place, f"the skill's name is not that of its folder, {folder.name!r}", "give both one name")
    if not NAME.match(folder.name) or len(folder.name) > LONGEST_NAME:
        remedy = f"use lower-case letters, digits and single hyphens, at most {LONGEST_NAME} characters"
        yield Finding(place, "this is not a valid skill name", remedy)
    if not description or len(description) > LONGEST_DESCRIPTION:
        node = root.get("description")
        remedy = f"say what the skill does and when to use it, in at most {LONGEST_DESCRIPTION} characters"
        yield Finding(node.place if node else root.place, "the skill has no usable description", remedy)


def _text(root: YamlMapping, key: str) -> str:
    node = root.get(key)
    return node.text.strip() if isinstance(node, YamlScalar) else ""


def _version(root: YamlMapping) -> str:
    metadata = root.get("metadata")
    return _text(root, "version") or (_text(metadata, "version") if isinstance(metadata, YamlMapping) else "")
