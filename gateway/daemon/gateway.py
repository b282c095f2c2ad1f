"""The one place where the parts meet: built and started in order, stopped in reverse.

Whoever reads `open_gateway` from top to bottom has read the start; from bottom to top, the stop.
"""

import logging
import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, TypeAlias

import anyio
import anyio.abc

from gateway.access import INTERNAL, AccessControl, Pairings
from gateway.adapters.shared import AdapterContext
from gateway.adapters.terminal import PLATFORM, JournalTransport, Terminal
from gateway.agent import Agent
from gateway.agent.mcp import McpServers
from gateway.commands import CommandTable
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.settings import Settings
from gateway.control.server import ControlServer, Verb
from gateway.daemon import hooks
from gateway.daemon.access_rules import access_rules_from
from gateway.daemon.agent_hooks import add_agent_hooks
from gateway.daemon.agents import Agents
from gateway.daemon.alerts import Alerts
from gateway.daemon.mcp_specs import mcp_specs_from
from gateway.daemon.parts import Part, serve_from
from gateway.daemon.platforms import PlatformPart, build_platforms, list_enabled, steer_platform
from gateway.daemon.setup_info import build_setup_info
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.skill_hooks import SkillHooks
from gateway.dispatcher import Dispatcher, DispatcherContext, GatewayReports, HookRequests, ReplyHooks
from gateway.engine import Engine, open_sqlite
from gateway.errors import AdapterError, ExitCode
from gateway.hermes.plugin_host import PluginGrants, Plugins
from gateway.hermes.session_list import SessionList
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.sources import Source
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.lanes import Lanes, LaneSettings, RunTurn, interrupt_on_text
from gateway.messages import Message
from gateway.outbox import Outbox
from gateway.schedule import Scheduler
from gateway.sessions import KeyRules, ResetPolicy, Session, SessionRepository
from gateway.sessions.retention import Retention, RetentionLimits
from gateway.sessions.search import SessionSearch

log = logging.getLogger(__name__)

GatewayState: TypeAlias = Literal["starting", "ready", "stopping"]
BuildVerbs: TypeAlias = Callable[["Gateway", Terminal], Mapping[str, Verb]]

NODE_NAME = "gateway"  # one process serves a home, so after a crash the next one goes on with the same turns
LANES_DRAIN_SHARE, OUTBOX_DRAIN_SHARE = 0.5, 0.2  # of the time that there is for the stop


class Gateway:
    """What runs, while it runs: the parts, for those who show and steer them."""

    def __init__(self, home: Home, configuration: Configuration, stop: Shutdown, engine: Engine) -> None:
        self.home = home
        self.configuration = configuration
        self.stop = stop
        self.engine = engine
        self.registry = HookRegistry()
        self.sessions = SessionRepository(engine)
        self.search = SessionSearch(engine, home.search)
        self.retention = Retention(engine, self.sessions, self.search, self._limits, home.files)
        self.access = AccessControl(
            access_rules_from(self.settings.access, self.settings.platforms), pairings=Pairings(engine)
        )
        self.tool_servers = McpServers(mcp_specs_from(self.settings, home))
        self.agents = self._agents(configuration)
        deliveries = ReplyHooks(self.registry, lambda: self.agents.workspace)
        self.outbox = Outbox(engine, prepare=deliveries.prepare, on_sent=deliveries.sent, on_failed=deliveries.failed)
        self.dispatcher: Dispatcher | None = None
        self.grants: HookRequests | None = None
        self.folder_hooks: FolderHooks | None = None
        self.skill_hooks = SkillHooks(engine, self._follow_skills)
        self.parts: list[Part] = []
        self.networks: list[PlatformPart] = []
        self.alerts = Alerts(lambda: self.networks, self.outbox)
        self.state: GatewayState = "starting"
        self.since = time.time()
        self.run_id = uuid.uuid4().hex
        self.trouble = ""

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def lanes(self) -> Lanes:
        """There once the dispatcher is built."""
        assert self.dispatcher
        return self.dispatcher.lanes

    def _limits(self) -> RetentionLimits:
        journal = self.settings.journal
        return RetentionLimits(journal.retention, journal.max_size)

    def _agents(self, configuration: Configuration) -> Agents:
        settings, tools = configuration.settings, tuple(self.tool_servers.servers.values())
        return Agents(settings, self.home, configuration.environ, self.registry, self.describe_hooks, tools)

    def choose(self, message: Message, session: Session) -> Agent:
        """The agent that answers, by the configuration and the plugins as they are now."""
        return self.plugins.extend_agent(self.agents.choose(message, session))

    @property
    def plugins(self) -> Plugins:
        return Plugins(self.hooks.plugin_tools)

    @property
    def hooks(self) -> FolderHooks:
        """There once they are found."""
        assert self.folder_hooks
        return self.folder_hooks

    async def _follow_skills(self, places: Sequence[Source]) -> None:
        await self.hooks.follow((*places, *hooks.list_sources(self.home, self.configuration)))

    async def describe_hooks(self) -> str:
        return await hooks.describe_hooks(self.hooks)

    async def start(self, tasks: anyio.abc.TaskGroup, *parts: Part) -> None:
        """One after the other; a part that fails at first is tried again while the others go on."""
        for part in parts:
            self.parts.append(part)
            tasks.start_soon(part.keep, name=part.name)
            await part.wait_first_try()

    def start_soon(self, tasks: anyio.abc.TaskGroup, *parts: Part) -> None:
        """Those for which nobody waits, because what they need is far away."""
        for part in parts:
            self.parts.append(part)
            tasks.start_soon(part.keep, name=part.name)

    async def take(self, configuration: Configuration) -> None:
        """Go on with another configuration, as far as that is possible without a restart."""
        self.tool_servers.follow(mcp_specs_from(configuration.settings, self.home))
        self.agents = self._agents(configuration)
        settings = configuration.settings
        self.access.rules = access_rules_from(settings.access, settings.platforms)
        self.configuration = configuration
        places = (*self.skill_hooks.sources, *hooks.list_sources(self.home, configuration))
        await self.hooks.follow(places, add_agent_hooks(settings))


@asynccontextmanager
async def open_gateway(
    home: Home, configuration: Configuration, stop: Shutdown, make_verbs: BuildVerbs
) -> AsyncIterator[Gateway]:
    """A gateway that serves while inside; on the way out it lets end what it has begun, within the stop's limit."""
    limit = configuration.settings.gateway.shutdown_timeout
    async with await open_sqlite(home.journal, max_bytes=configuration.settings.journal.max_size or None) as engine:
        gateway = Gateway(home, configuration, stop, engine)
        hooks.create_hermes_folders(home)
        async with (
            gateway.registry,
            ForkServerClient(hooks.build_fork_server_options(configuration)) as fork_server,
            anyio.create_task_group() as tasks,
        ):
            await gateway.access.load()
            await gateway.skill_hooks.load()
            below = build_dispatcher_context(gateway)
            dispatcher = gateway.dispatcher = Dispatcher(below, partial(build_lanes, gateway), tasks)
            gateway.grants = HookRequests(below, dispatcher.lanes)
            async with build_folder_hooks(gateway, fork_server, gateway.grants) as gateway.folder_hooks:
                gateway.skill_hooks.attend(gateway.registry)
                terminal = Terminal(engine, dispatcher.receive)
                clock = Scheduler(engine, gateway.registry, partial(hooks.list_scheduled, gateway.hooks))
                listed = SessionList(home, engine, gateway.sessions)
                control = ControlServer(home.socket, make_verbs(gateway, terminal))
                await gateway.start(
                    tasks,
                    Part("lanes", serve_from(dispatcher.lanes.run)),
                    Part("reminders", serve_from(dispatcher.reminders.run)),
                    Part("terminal", serve_from(partial(gateway.outbox.serve_platform, JournalTransport(PLATFORM)))),
                    Part("internal", serve_from(partial(gateway.outbox.serve_platform, JournalTransport(INTERNAL)))),
                    Part("search", serve_from(gateway.search.run)),
                    *([Part("session list", serve_from(listed.run))] if listed.is_ours() else ()),
                    Part("alerts", serve_from(partial(gateway.alerts.run, gateway.registry))),
                    Part("tool servers", serve_from(gateway.tool_servers.run)),
                    Part("retention", serve_from(gateway.retention.run)),
                    Part("control", serve_from(control.serve)),
                    Part("schedule", serve_from(clock.run)),
                )
                gateway.networks = build_platforms(
                    configuration.settings.platforms, build_adapter_context(gateway, below, dispatcher)
                )
                gateway.start_soon(tasks, *(network.part for network in gateway.networks))
                gateway.state = "ready"
                names = [PLATFORM, *(network.name for network in gateway.networks)]
                gateway.registry.emit("gateway:startup", platforms=names)
                try:
                    yield gateway
                finally:
                    with anyio.CancelScope(shield=True):
                        await drain_gateway(gateway, limit)
                    tasks.cancel_scope.cancel()


async def drain_gateway(gateway: Gateway, limit: float) -> None:
    """What has begun may go on a while: first the turns, then what is owed to people."""
    gateway.state = "stopping"
    gateway.registry.emit("gateway:shutdown", reason=gateway.stop.reason)
    for part in gateway.parts:
        part.stop_restarting()
    if gateway.grants:
        gateway.grants.waiting.give_up()
    await gateway.lanes.drain(limit * LANES_DRAIN_SHARE)
    await gateway.outbox.drain(limit * OUTBOX_DRAIN_SHARE)


def build_folder_hooks(gateway: Gateway, fork_server: ForkServerClient, grants: HookRequests) -> FolderHooks:
    # Those of skills come first: whatever else is called as one of them stands in for it, and never it for something.
    return FolderHooks(
        (*gateway.skill_hooks.sources, *hooks.list_sources(gateway.home, gateway.configuration)),
        gateway.registry,
        fork_server,
        gateway.engine,
        add_agent_hooks(gateway.settings),
        hooks.build_hook_environment(
            gateway.home, gateway.configuration, (PLATFORM, *list_enabled(gateway.settings.platforms))
        ),
        PluginGrants(grants, lambda: gateway.plugins.extend_agent(gateway.agents.main), gateway.registry),
    )


def build_dispatcher_context(gateway: Gateway) -> DispatcherContext:
    """What the dispatcher works with."""
    sessions = gateway.settings.sessions
    return DispatcherContext(
        engine=gateway.engine,
        registry=gateway.registry,
        sessions=gateway.sessions,
        outbox=gateway.outbox,
        access=gateway.access,
        commands=CommandTable(further=lambda: gateway.plugins.commands()),  # noqa: PLW0108 - no hooks are there yet
        choose=gateway.choose,
        reports=GatewayReports(
            status=lambda: f"hermes-gateway is {gateway.state}; model {gateway.agents.model_description}",
            hooks=gateway.describe_hooks,
            platforms=lambda: describe_parts(gateway),
            models=lambda: gateway.agents.models,
            restart=partial(request_restart, gateway.stop),
            steer=partial(steer_from_chat, gateway),
            about=lambda: build_setup_info(gateway.home, gateway.settings),
        ),
        run_id=gateway.run_id,
        keys=KeyRules(per_user_in_groups=sessions.per_user_in_groups, per_user_in_threads=sessions.per_user_in_threads),
        on_skill=gateway.skill_hooks.changed,
        too_old=sessions.too_old or math.inf,
    )


def build_adapter_context(gateway: Gateway, below: DispatcherContext, dispatcher: Dispatcher) -> AdapterContext:
    """What the chat networks stand on."""
    return AdapterContext(
        receive=dispatcher.receive,
        engine=gateway.engine,
        outbox=gateway.outbox,
        registry=gateway.registry,
        access=gateway.access,
        commands=below.commands,
        keys=below.keys,
        files=gateway.home.files,
    )


def build_lanes(gateway: Gateway, work: RunTurn) -> Lanes:
    sessions = gateway.settings.sessions
    limits = LaneSettings(
        turns=sessions.turns,
        turns_per_person=sessions.turns_per_person,
        reset=ResetPolicy(sessions.reset, round(sessions.idle / 60), sessions.daily_at),
        interrupts=lambda session, message: (
            gateway.settings.sessions.busy == "interrupt" and interrupt_on_text(session, message)
        ),
    )
    return Lanes(gateway.engine, gateway.sessions, work, limits, node=NODE_NAME)


def describe_parts(gateway: Gateway) -> str:
    return "\n".join(f"{part.facts.name}: {part.facts.state} {part.facts.detail}".rstrip() for part in gateway.parts)


async def steer_from_chat(gateway: Gateway, verb: str, name: str) -> str:
    try:
        return steer_platform(gateway.networks, verb, name)
    except AdapterError as error:
        return f"{str(error)[:1].upper()}{str(error)[1:]}."


async def request_restart(stop: Shutdown) -> None:
    stop.ask("a restart was asked for", ExitCode.RESTART)
