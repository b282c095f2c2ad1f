"""The groups of the process, which all other groups use: its base, its changing state, and its place in a cluster."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import anyio.abc
import msgspec

from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.settings import Settings
from gateway.daemon.cluster_table import build_nodes
from gateway.daemon.disk_configuration import DiskConfiguration
from gateway.daemon.journal import find_node
from gateway.daemon.nodes import EventRelay, Nodes
from gateway.daemon.parts import Part
from gateway.daemon.platform_steering import PlatformSteering
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.webhooks import WebhookStatus
from gateway.engine.interface import Engine
from gateway.hooks import HookRegistry
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.logs.redaction import Redactor
from gateway.web.port import WebPort
from gateway.web.webhooks.receiver import Webhook

BindGroups: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives a function the groups that its first parameters name; see `Gateway.bind`."""
GatewayState: TypeAlias = Literal["starting", "ready", "stopping"]


class CurrentConfiguration(msgspec.Struct, eq=False):
    """The configuration in effect; a reload replaces the value of `configuration`."""

    configuration: Configuration

    @property
    def settings(self) -> Settings:
        return self.configuration.settings


class Base(msgspec.Struct, frozen=True):
    """The home, the journal, and the parts that run processes and tasks. Each process has a `run_id` of its own."""

    home: Home
    engine: Engine
    registry: HookRegistry
    fork_server: ForkServerClient
    tasks: anyio.abc.TaskGroup
    shutdown: Shutdown
    current: CurrentConfiguration
    redactor: Redactor
    run_id: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def settings(self) -> Settings:
        """The settings in effect."""
        return self.current.configuration.settings


class OwnPort(Protocol):
    """The port for programs and people over HTTP; see `GatewayWeb`."""

    port: WebPort

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = ...) -> None: ...
    def describe(self) -> dict[str, str]: ...
    def list_webhooks(self, webhooks: Mapping[str, Webhook], public_url: str) -> Iterator[WebhookStatus]: ...
    def count_calls(self) -> dict[str, int]: ...


class Run(msgspec.Struct):
    """The state of this run, which startup and reload write, and status reads.

    `disk` is set if the configuration was read from files, and `web` if the settings want a port. `is_new`: this home
    began after tools depended on roles. `parts` are the started parts, in the order of the start.
    """

    state: GatewayState = "starting"
    since: float = msgspec.field(default_factory=time.time)
    trouble: str = ""
    disk: DiskConfiguration | None = None
    web: OwnPort | None = None
    is_new: bool = True
    parts: list[Part] = []

    def start(self, part: Part, tasks: anyio.abc.TaskGroup) -> None:
        """Start a part without waiting for its servers, which may be far away."""
        self.parts.append(part)
        tasks.start_soon(part.run, name=part.name)


class NodePresence(msgspec.Struct, frozen=True):
    """The name and leases of this node, the events of other nodes, and the steering of networks on all nodes."""

    nodes: Nodes
    event_relay: EventRelay
    steering: PlatformSteering


def build_presence(base: Base) -> NodePresence:
    name, roles = find_node(base.home, base.current.configuration), base.settings.node.roles
    return NodePresence(*build_nodes(base.engine, name, roles, base.registry, base.run_id))
