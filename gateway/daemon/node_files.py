"""What each node has in files: digests of its settings and of its hooks, by which nodes see that they differ.

What is a machine's own (its port, its logs, its copies, its name) may differ, and so does a hook that is still read.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from gateway.config.settings import Settings
from gateway.daemon.other_nodes import NodeFacts
from gateway.hooks.folders.folder_hooks import FolderHooks

OF_A_MACHINE = ("engine", "node", "web", "logs", "backup")
DIGEST_LENGTH = 16
OTHER_SETTINGS = "the configuration of {name} is another one than here: make config.yaml and .env alike on both"
OTHER_HOOKS = (
    "the hooks of {name} are others than here, and one that it lacks is told nothing of what happens there: "
    "make the folders of hooks, and what is switched off, alike on both; `hermes-gateway hooks list` shows them, "
    "and `hermes-gateway hooks info NAME` the digest of one"
)


def find_digests(settings: Settings, hooks: FolderHooks) -> tuple[str, str]:
    """Of what this node has."""
    return digest_of_settings(settings), digest_of_hooks(hooks.digests)


def digest_of_settings(settings: Settings) -> str:
    said = {name: value for name, value in msgspec.structs.asdict(settings).items() if name not in OF_A_MACHINE}
    return _digest_of(msgspec.json.encode(said, enc_hook=str, order="deterministic"))


def digest_of_hooks(digests: Mapping[str, str]) -> str:
    """Nothing while one of them is still to be read."""
    return _digest_of(msgspec.json.encode(digests, order="deterministic")) if all(digests.values()) else ""


def list_differences(own: NodeFacts, others: list[NodeFacts]) -> list[str]:
    """For whoever looks after them. A node that says nothing of it differs in nothing."""
    found = []
    for other in others:
        for here, there, words in (
            (own.settings, other.settings, OTHER_SETTINGS),
            (own.hooks, other.hooks, OTHER_HOOKS),
        ):
            if here and there and here != there:
                found.append(words.format(name=other.name))
    return found


def _digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]
