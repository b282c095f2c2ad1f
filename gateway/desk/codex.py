"""Codex alone has patches of several files, and hooks that run only if a person trusts them.

A patch is a call of ours for each of its files, since hooks know no patches. Codex keeps its trust beside its settings,
as a checksum of each hook at its place; a hook that was changed or moved is not trusted any more.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

SHELL = "Bash"
TOOLS = ("apply_patch", SHELL)  # a command may contain a patch, too
MARK = "*** Begin Patch"
_FILE = re.compile(r"^[ \t]*\*\*\* (Add|Delete|Update) File:(.+)$", re.MULTILINE)
_MOVED = re.compile(r"^[ \t]*\*\*\* Move to:(.+)$", re.MULTILINE)


class HookEntry(NamedTuple):
    """A hook in the settings: its event, its place in the list of groups and in its group, and its fields."""

    event: str
    group: int
    at: int
    fields: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The event under the name that Codex writes beside its trust."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.event).lower()

    @property
    def checksum(self) -> str:
        """Codex's own checksum of a hook for all calls of its event."""
        hook = {"type": "command", "async": False, **self.fields}
        written = json.dumps({"event_name": self.label, "hooks": [hook]}, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(written.encode()).hexdigest()}"


def check_trust(settings: Path, hooks: Iterable[HookEntry]) -> list[str]:
    """Return the events of those of these hooks that Codex does not run."""
    try:
        kept = tomllib.loads((settings.parent / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        kept = {}
    states = {}
    for key, state in kept.get("hooks", {}).get("state", {}).items():
        path, *place = key.rsplit(":", 3)
        if Path(path).resolve() == settings and state.get("enabled") is not False:
            states[tuple(place)] = state.get("trusted_hash")
    is_off = kept.get("features", {}).get("hooks") is False
    return [
        one.event for one in hooks if is_off or states.get((one.label, str(one.group), str(one.at))) != one.checksum
    ]


def read_patch(tool: str, args: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a call for each file, behind the command around them; none for another tool, or without a patch."""
    text = str(args.get("command"))
    if tool not in TOOLS or MARK not in text:
        return []
    _, *parts = _FILE.split(text)
    calls: list[tuple[str, dict[str, Any]]] = [("shell", dict(args))] if tool == SHELL else []
    for kind, name, lines in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        path = name.strip()
        old, new = _select(lines, " -"), _select(lines, " +")
        if kind == "Add":
            calls.append(("write_file", {"path": path, "content": new}))
        else:
            calls.append(("edit_file", {"path": path, "old": old, "new": new}))
        calls += [("write_file", {"path": moved.strip(), "content": new}) for moved in _MOVED.findall(lines)]
    return calls


def _select(lines: str, marks: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines.splitlines() if line[:1] in marks and line)
