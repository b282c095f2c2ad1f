"""The parts that gateways on one journal share, and their counterparts for a gateway with a journal of its own.

Only this module imports from `cluster/`, and it loads no module that the gateway does not use.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gateway.backup.shared_journal import find_servers
from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.node_settings import NodeRole
from gateway.config.settings import Settings
from gateway.daemon.journal import ReportWaiting, open_home_journal
from gateway.daemon.nodes import EventRelay, NodeFiles, Nodes
from gateway.daemon.platform_steering import PlatformSteering
from gateway.daemon.skill_hooks import SkillHooks
from gateway.engine.interface import Engine
from gateway.files.agent_folders import HomeFolders
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.places.other_hooks import OtherHooks
from gateway.messages.files import HomeFiles
from gateway.records.follower import RecordCopy
from gateway.records.names import KnownNames
from gateway.usage.totals import RunningTotals

TellForgotten: TypeAlias = Callable[[str], Awaitable[None]]

# ruff: noqa: PLC0415 - a gateway with a journal of its own loads nothing of `cluster/`


def open_journal(
    home: Home, configuration: Configuration, report_waiting: ReportWaiting | None
) -> AbstractAsyncContextManager[Engine]:
    """Open the journal for this gateway; while the opening waits, `report_waiting` repeatedly gets the reason.

    Raises:
        ConfigError: the client of NATS is not installed, or another home has a node of this name.
        EngineError: the journal cannot be opened.
    """
    if (servers := find_servers(configuration)) is None:
        return open_home_journal(home, configuration)
    from gateway.cluster.journal import open_shared_journal

    return open_shared_journal(servers, home, configuration, report_waiting)


def build_nodes(
    engine: Engine, name: str, roles: tuple[NodeRole, ...], registry: HookRegistry, run_id: str
) -> tuple[Nodes, EventRelay, PlatformSteering]:
    """Build this node's leases, the relay of events from other nodes, and the steering of networks."""
    if engine.files is None:
        nodes = Nodes(name, roles)
        return nodes, EventRelay(), PlatformSteering(nodes)
    from gateway.cluster.event_relay import SharedEventRelay
    from gateway.cluster.nodes import SharedNodes
    from gateway.cluster.platform_steering import SharedSteering

    shared = SharedNodes(engine, name, roles)
    return shared, SharedEventRelay(engine, registry, run_id, name), SharedSteering(engine, shared)


def find_files(settings: Settings, hooks: FolderHooks, skills: SkillHooks) -> NodeFiles:
    """Return the digests of this node's files, for other nodes."""
    from gateway.cluster import node_files

    return node_files.find_files(settings, hooks, skills)


def list_differences(nodes: Nodes, hooks: FolderHooks) -> list[str]:
    """Describe for an operator how other nodes differ from this node."""
    if not nodes.others.list_living():
        return []
    from gateway.cluster.node_files import list_node_differences
    from gateway.cluster.nodes import SharedNodes

    assert isinstance(nodes, SharedNodes), "one that has others beside it"
    return list_node_differences(nodes, hooks)


def build_files(
    engine: Engine, home: Home, node: str, get_settings: Callable[[], Settings]
) -> tuple[HomeFiles, HomeFolders]:
    """Build the files of conversations, and the folders in which agents write."""
    if (store := engine.files) is None:
        return HomeFiles(home.files), HomeFolders()
    from gateway.cluster.files import SharedFiles
    from gateway.cluster.folders import SharedFolders
    from gateway.cluster.roots import SharedRoots

    roots = SharedRoots(home, get_settings)
    return SharedFiles(store, home.files), SharedFolders(engine, home.files, node, roots.list)


def build_other_hooks(engine: Engine, home: Home, configuration: Configuration, node: str) -> OtherHooks:
    """Build the hooks of other gateways."""
    if engine.files is None:
        return OtherHooks()
    from gateway.cluster.journal import forget_last_name
    from gateway.cluster.other_hooks import SharedHooks

    return SharedHooks(engine, node, partial(forget_last_name, home, configuration, engine))


def build_removals(
    engine: Engine, files: Path, totals: RunningTotals, heard: HeardMessages, chats: ChatJournal, names: KnownNames
) -> tuple[TellForgotten, Sequence[RecordCopy]]:
    """Build the function that notifies other gateways of a forgotten person, and the copies that follow removals."""
    if engine.files is None:
        return ignore_notice, ()
    from gateway.cluster.removals import ForgottenPeople, RemovalFollower

    people = ForgottenPeople(engine, totals, heard, chats, names, files)
    return people.tell, (people, RemovalFollower(engine, files))


async def ignore_notice(_pseudonym: str) -> None:
    """Ignore the notice: this gateway has a journal of its own."""
