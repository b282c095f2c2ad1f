"""This node, and the other nodes on its journal. These classes serve a gateway without other nodes.

The classes for a gateway with other nodes are in `cluster/`.
"""

import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec

from gateway.config.node_settings import NODE_ROLES, NodeRole
from gateway.daemon.parts import Part, ServeFunction

BOT = "bot."  # starts the leases of bots
TENDING = "tending"  # the lease for maintenance that all nodes share
SCHEDULE = "schedule"  # the lease for scheduled hooks, which must not be called by every node


class NodeFiles(NamedTuple):
    """The files of a node: digests of its settings and hooks, and the loaded skills that the node does not have."""

    settings: str = ""
    hooks: str = ""
    missing_skills: tuple[str, ...] = ()


FindFiles: TypeAlias = Callable[[], NodeFiles | None]


class NodeFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node's announcement about itself. `run` changes with each start.

    `holds` maps each lease of the node to the time since which the node has it; `works` are the leases whose work
    succeeds, `waits` those that the node waits for. `settings`, `hooks` and `missing_skills` are the fields of
    `NodeFiles`. `roles` are the node's parts of the work; a node of an earlier version does not send `roles`, and does
    all work. `clock` is the node's wall clock at the announcement.
    """

    name: str
    run: str
    since: float
    holds: dict[str, float]
    works: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    is_gone: bool = False
    settings: str = ""
    hooks: str = ""
    roles: tuple[str, ...] = NODE_ROLES
    clock: float = 0.0
    missing_skills: tuple[str, ...] = ()

    @property
    def bots(self) -> int:
        return sum(key.startswith(BOT) for key in self.holds)


class OtherNodes:
    """The other nodes of a gateway without other nodes: none. `HeardNodes` knows the other nodes of a cluster."""

    def list_living(self) -> list[NodeFacts]:
        return []

    def find_holder(self, key: str) -> str:
        """Return the name of the other node that holds the lease `key`; "" if no such node is known."""
        return next((one.name for one in self.list_living() if key in one.holds), "")

    def has_role(self, role: NodeRole) -> bool:
        """Return True if another node does this part of the work."""
        return any(role in one.roles for one in self.list_living())


class Nodes:
    """This node, which does the work of its `roles`, and the `others`. A node alone holds all leases."""

    def __init__(self, name: str, roles: tuple[NodeRole, ...], others: OtherNodes | None = None) -> None:
        self.name, self.roles = name, roles
        self.others = others or OtherNodes()
        self._since = time.time()
        self._parts = list[tuple[str, Part]]()

    async def run(
        self,
        find_files: FindFiles = NodeFiles,  # noqa: ARG002 - no node is notified
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Announce this node to the other nodes; do nothing if it is alone.

        `find_files` returns this node's files for the announcements.
        """
        task_status.started()

    def make_part(
        self,
        name: str,
        serve: ServeFunction,
        key: str,
        rest: Callable[[str], None] = lambda _why: None,  # noqa: ARG002 - the part is never on standby
        prepare: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,  # noqa: ARG002 - as above
    ) -> Part:
        """Make a part that only the node with the lease `key` runs; several parts may share a lease.

        Other nodes are on standby, and `rest` gets the reason for each standby. `prepare` does slow work in advance, so
        that the part works as soon as the node has the lease.
        """
        part = Part(name, serve)
        self._parts.append((key, part))
        return part

    def certain_for(self, key: str) -> float:  # noqa: ARG002 - no other node has a lease
        """Return for how many seconds no other node can have the lease: uninterruptible work may take that long."""
        return math.inf

    def describe(self) -> NodeFacts:
        """Describe this node."""
        here = [(key, part.facts) for key, part in self._parts if part.facts.state != "standby"]
        works = {key for key, facts in here if facts.state == "up"}
        return NodeFacts(
            self.name, "", self._since, {key: facts.since for key, facts in here}, tuple(works), roles=self.roles
        )


class ForwardedEvent(msgspec.Struct, frozen=True):
    """An event of another node, for the watchers of the events in `names`."""

    names: tuple[str, ...]
    node: str
    event: str
    fields: dict[str, Any]


NoteEvent: TypeAlias = Callable[[ForwardedEvent], None]


class EventRelay:
    """The relay of a gateway without other nodes; `SharedEventRelay` forwards events between the nodes of a cluster."""

    @contextmanager
    def watching(self, names: Sequence[str], note: NoteEvent) -> Iterator[None]:  # noqa: ARG002 - no other nodes
        """Call `note` inside the block with each event of these names from another node."""
        yield

    async def is_running(self, run_id: str) -> bool:  # noqa: ARG002 - there is no other gateway
        """Return True if another gateway is running with this `run_id`."""
        return False

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Send and receive events until cancelled."""
        task_status.started()
        await anyio.sleep_forever()
