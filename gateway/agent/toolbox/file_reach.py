"""The files that an agent reaches, by person.

Owners and admins have `tools.roots`; a conversation has a folder of its own, which also holds its people's files. Alone
with an owner or admin, the agent starts in the roots; in a group, for any author, in the chat's folder, and reaches the
roots by whole paths. For everyone else that folder is all there is. No one reaches another conversation's folder, even
inside a root.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gateway.agent.toolbox.workspace import Workspace, make_workspace
from gateway.messages.roles import is_admin

FOLDER = "folder"  # among the facts of a turn: the folder of the conversation's own files
READABLE = "readable"  # among them, too: what a restricted hook reads that began the turn

FindWorkspace: TypeAlias = Callable[[Mapping[str, Any]], Workspace]
"""Returns the files that may be touched in a turn, by its facts: the person and the chat."""


class FileReach(msgspec.Struct, frozen=True):
    """The places that turns may reach.

    `files` holds the folders of all conversations, `unclaimed` files without an owner, and `forbidden` is out of reach.
    `inner` are the roots within forbidden places that are open all the same. `guarded` needs an approval.
    """

    roots: tuple[Path, ...]
    files: Path
    unclaimed: Path
    forbidden: tuple[Path, ...] = ()
    instructions: tuple[Path, ...] = ()
    inner: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()

    def find_workspace(self, facts: Mapping[str, Any]) -> Workspace:
        """Return the files of the turn with these facts; missing folders are made."""
        role, folder = facts.get("role", "guest"), facts.get(FOLDER)
        own = (folder,) if isinstance(folder, Path) else ()
        roots = self.roots if is_admin(role) else ()
        is_alone = facts.get("chat_type", "dm") == "dm"
        opened = (*own, self.unclaimed) if role == "owner" and self.unclaimed.is_dir() else own
        ordered = (*roots, *opened) if is_alone else (*own, *roots, *opened[len(own) :])
        inner = self.inner if is_admin(role) else ()
        forbidden, readable = (*self.forbidden, self.files), facts.get(READABLE, ())
        return make_workspace(ordered, forbidden, self.instructions, (*opened, *inner), readable, self.guarded)
