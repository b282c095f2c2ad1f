"""The folders of `tools.roots` that all gateways share: all roots in the home that hold no files of the gateway itself.

The operator copies all other folders to each host, and also every file that steers agents.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gateway.agent.toolbox.file_reach import FOLDER
from gateway.config.home import Home
from gateway.config.settings import Settings
from gateway.files.agent_folders import SharedFolder, is_steering, make_chat_folder
from gateway.messages.roles import is_admin

BEGIN = "root/"  # starts the names of shared roots; the path below the home follows


class SharedRoots:
    """The shared roots by the settings in effect."""

    def __init__(self, home: Home, get_settings: Callable[[], Settings]) -> None:
        self._home, self._get_settings = home, get_settings
        self._settings: Settings | None = None
        self._roots: list[SharedFolder] = []

    def list(self) -> list[SharedFolder]:
        settings = self._get_settings()
        if settings is not self._settings:
            self._settings, self._roots = settings, list_shared_roots(self._home, settings)
        return self._roots


def list_shared_roots(home: Home, settings: Settings) -> list[SharedFolder]:
    """List the shared roots; no shared root is inside another."""
    roots = [home.path(root) for root in settings.tools.roots]
    named = (settings.main, *settings.agents.values())
    instructions = {_find_real(roots[0] / one) for agent in named for one in agent.context_files if roots}
    dirs = [_find_real(home.path(one)) for one in (*settings.hooks.dirs, *settings.adapters.dirs)]
    found = list[SharedFolder]()
    for root in sorted({_find_real(root) for root in roots}, key=lambda one: len(one.parts)):
        is_alone = not any(one.root in root.parents for one in found)
        if is_alone and is_free(home, root) and not _touches(root, dirs):
            name = BEGIN + root.relative_to(_find_real(home.root)).as_posix()
            found.append(SharedFolder(name, root, lambda path: is_steering(path) or path in instructions))
    return found


def find_shared_root(home: Home, name: str) -> SharedFolder | None:
    """Return the shared root of this name, whether or not the settings have it; None if the name is no shared root."""
    root = _find_real(home.root / name.removeprefix(BEGIN))
    return SharedFolder(name, root, is_steering) if name.startswith(BEGIN) and is_free(home, root) else None


def is_free(home: Home, root: Path) -> bool:
    """Return True if the root is in the home, and apart from all files of the gateway and of Hermes."""
    theirs = (home.hooks, home.plugins, home.skills, home.env, home.hermes_logs, home.boot_md, home.heartbeat_md)
    state = (home.hermes_state, home.hermes_sessions, home.hermes_config)
    return _find_real(home.root) in root.parents and not _touches(
        root, map(_find_real, (*home.own_places, *theirs, *state))
    )


def find_turn_folders(roots: list[SharedFolder], facts: Mapping[str, Any]) -> list[SharedFolder]:
    """Return the shared folders that the turn with these facts may use, as `FileReach` decides."""
    folder = facts.get(FOLDER)
    own = [make_chat_folder(folder)] if isinstance(folder, Path) else []
    return [*(roots if is_admin(facts.get("role", "guest")) else ()), *own]


def _touches(root: Path, places: Iterable[Path]) -> bool:
    return any(root.is_relative_to(one) or one.is_relative_to(root) for one in places)


def _find_real(path: Path) -> Path:
    return Path(os.path.realpath(path))
