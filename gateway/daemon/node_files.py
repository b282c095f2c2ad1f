"""What each node has in files: digests of its settings and of its hooks, by which nodes see that they differ.

What is a machine's own (its port, its logs, its copies, its name) may differ, and so does a hook that is still read.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from gateway.config.settings import Settings
from gateway.daemon.other_nodes import NodeFacts
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.records import HookFolder

OF_A_MACHINE = ("engine", "node", "web", "logs", "backup")
DIGEST_LENGTH = 16
OTHER_SETTINGS = "the configuration of {name} is another one than here: make config.yaml and .env alike on both"
OTHER_HOOKS = (
    "the hooks of {name} are others than here{which}; where a folder is missing its hook decides nothing, and of what "
    "happens there it is told only if it is durable: make the folders alike on both"
)
SEE_HOOKS = " (`hermes-gateway hooks list` shows them)"
MOST_NAMED = 5
DIGEST_SHOWN = 12

ListFolders: TypeAlias = Callable[[str], list[str]]


def find_digests(settings: Settings, hooks: FolderHooks) -> tuple[str, str]:
    """Of what this node has."""
    return digest_of_settings(settings), digest_of_hooks({name: one.digest for name, one in hooks.folders.items()})


def digest_of_settings(settings: Settings) -> str:
    said = {name: value for name, value in msgspec.structs.asdict(settings).items() if name not in OF_A_MACHINE}
    return _digest_of(msgspec.json.encode(said, enc_hook=str, order="deterministic"))


def digest_of_hooks(digests: Mapping[str, str]) -> str:
    """Nothing while one of them is still to be read."""
    return _digest_of(msgspec.json.encode(digests, order="deterministic")) if all(digests.values()) else ""


def list_differences(own: NodeFacts, others: list[NodeFacts], list_folders: ListFolders) -> list[str]:
    """For whoever looks after them. A node that says nothing of it differs in nothing.

    `list_folders` says which hooks differ on the node of a name, where that is known.
    """
    found = []
    for other in others:
        if own.settings and other.settings and own.settings != other.settings:
            found.append(OTHER_SETTINGS.format(name=other.name))
        if own.hooks and other.hooks and own.hooks != other.hooks:
            named = "; ".join(list_folders(other.name))
            which = f": {named}" if named else SEE_HOOKS
            found.append(OTHER_HOOKS.format(name=other.name, which=which))
    return found


def list_other_folders(hooks: FolderHooks, node: str) -> list[str]:
    """Which hooks are not alike, each by its name, and what each of both has. Of many, how many more they are."""
    known = hooks.others.find(node) if hooks.others else None
    if known is None:
        return []
    here, there = hooks.folders, known.folders
    names = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
    named = [f"{name} is {_describe(there.get(name))} on {node} and {_describe(here.get(name))} here" for name in names]
    more = len(named) - MOST_NAMED
    return [*named[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def _describe(folder: HookFolder | None) -> str:
    return f"{folder.version} ({folder.digest[:DIGEST_SHOWN]})".strip() if folder else "missing"


def _digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]
