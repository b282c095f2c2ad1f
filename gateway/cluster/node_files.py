"""Compare the settings, hooks and loaded skills of the nodes.

Settings that belong to a host (its port, logs, backups, name) may differ, and so may hooks while a folder is still
read.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import msgspec

from gateway.cluster.nodes import SharedNodes, describe_all
from gateway.config.settings import Settings
from gateway.daemon.nodes import NodeFacts, NodeFiles
from gateway.daemon.skill_hooks import SkillHooks
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.records.records import HookFolder

OF_A_MACHINE = ("engine", "node", "web", "logs", "backup")
DIGEST_LENGTH = 16
OTHER_SETTINGS = "the configuration of {name} is another one than here: make config.yaml and .env alike on both"
OTHER_HOOKS = (
    "the hooks of {name} differ from those here{which}; without its folder a hook decides nothing, what a guard "
    "guards is denied, and a hook gets the events there only if it is durable: make the folders alike on both"
)
MISSING_SKILLS = (
    "{where} lacks skills that conversations have loaded: {names}; in turns there, the hooks of these skills have no "
    "effect, and their files cannot be read: copy their folders there"
)
TWIN = "another gateway on this journal is called {!r} too: give each a `node.name` of its own, and start them again"
OTHER_CLOCK = "the clock of {name} is {minutes:.0f} min {way} the one here: let both set theirs by the network (NTP)"
MOST_APART = 60.0  # seconds between two clocks
SEE_HOOKS = " (`hermes-gateway hooks list` shows them)"
MOST_NAMED = 5
DIGEST_SHOWN = 12

ListFolders: TypeAlias = Callable[[str], list[str]]


def find_files(settings: Settings, hooks: FolderHooks, skills: SkillHooks) -> NodeFiles:
    """Return the digests of this node's files."""
    digests = {name: one.digest for name, one in hooks.folders.items()}
    return NodeFiles(digest_of_settings(settings), digest_of_hooks(digests), tuple(skills.list_missing()))


def digest_of_settings(settings: Settings) -> str:
    said = {name: value for name, value in msgspec.structs.asdict(settings).items() if name not in OF_A_MACHINE}
    return _digest_of(msgspec.json.encode(said, enc_hook=str, order="deterministic"))


def digest_of_hooks(digests: Mapping[str, str]) -> str:
    """Return a digest of all hooks; "" while a hook is still to be read."""
    return _digest_of(msgspec.json.encode(digests, order="deterministic")) if all(digests.values()) else ""


def list_node_differences(nodes: SharedNodes, hooks: FolderHooks) -> list[str]:
    """Describe how other nodes differ from this node: clocks and files, and whether another node has its name."""
    twin = [TWIN.format(nodes.name)] if nodes.others.has_twin else []
    files = list_differences(describe_all(nodes), nodes.others.list_living(), partial(list_other_folders, hooks))
    return [*twin, *list_clock_differences(nodes), *files]


def list_clock_differences(nodes: SharedNodes) -> list[str]:
    """List clocks that differ: schedules, daily budgets and links to the page depend on the clocks."""
    return [
        OTHER_CLOCK.format(name=name, minutes=abs(ahead) / 60, way="ahead of" if ahead > 0 else "behind")
        for name, ahead in sorted(nodes.others.list_clocks().items())
        if abs(ahead) > MOST_APART
    ]


def list_differences(own: NodeFacts, others: list[NodeFacts], list_folders: ListFolders) -> list[str]:
    """Describe the differences for an operator. A node that does not report its files counts as equal.

    `list_folders` returns the differing hooks of a node, or an empty list if they are unknown.
    """
    found = []
    for other in others:
        if own.settings and other.settings and own.settings != other.settings:
            found.append(OTHER_SETTINGS.format(name=other.name))
        if own.hooks and other.hooks and own.hooks != other.hooks:
            named = "; ".join(list_folders(other.name))
            which = f": {named}" if named else SEE_HOOKS
            found.append(OTHER_HOOKS.format(name=other.name, which=which))
    return [*found, *list_missing_skills(own, others)]


def list_missing_skills(own: NodeFacts, others: list[NodeFacts]) -> Iterator[str]:
    """Yield skills that some nodes lack. A skill that all nodes lack was removed everywhere, and is no difference."""
    places = [("this gateway", own), *((other.name, other) for other in others)]
    known = [{*facts.missing_skills} for _, facts in places]
    nowhere = set.intersection(*known)
    for (where, _), missing in zip(places, known, strict=True):
        if names := sorted(missing - nowhere):
            yield MISSING_SKILLS.format(where=where, names=", ".join(_shorten(names)))


def list_other_folders(hooks: FolderHooks, node: str) -> list[str]:
    """List up to MOST_NAMED differing hooks by name, with both versions, and the number of further hooks."""
    known = hooks.others.find(node)
    if known is None:
        return []
    here, there = hooks.folders, known.folders
    names = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
    named = [f"{name} is {_describe(there.get(name))} on {node} and {_describe(here.get(name))} here" for name in names]
    return _shorten(named)


def _shorten(names: list[str]) -> list[str]:
    more = len(names) - MOST_NAMED
    return [*names[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def _describe(folder: HookFolder | None) -> str:
    return f"{folder.version} ({folder.digest[:DIGEST_SHOWN]})".strip() if folder else "missing"


def _digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]
