"""The one place where the parts meet. `Gateway` holds them all, and is complete when it is built; nothing runs yet.

Three members change while it runs, when the configuration is read again (`apply_configuration`): the configuration
itself, the agents, and the rules of access. All others stay what they are. What lies below and must ask something
above (the dispatcher asks for an agent, a command for the state of the platforms) is given a bound method.
"""

import logging
import math
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import anyio
import anyio.abc
import msgspec

from gateway.access.access_control import API, AccessControl
from gateway.access.pairing import Pairings
from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.network_routes import NetworkRoutes
from gateway.adapters.terminal import PLATFORM, Terminal
from gateway.agent import Agent
from gateway.agent.context_files import ContextFiles
from gateway.agent.mcp.servers import McpServers
from gateway.agent.toolbox.file_reach import FOLDER
from gateway.agent.toolbox.workspace import Workspace
from gateway.backup.shared_journal import find_servers
from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.chats.rules import ChatRules
from gateway.cluster.event_relay import EventRelay
from gateway.cluster.files import SharedFiles, find_event_files
from gateway.cluster.folders import SharedFolder, SharedFolders
from gateway.cluster.nodes import Nodes
from gateway.cluster.platform_steering import PlatformSteering
from gateway.cluster.roots import find_turn_folders
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.platform_settings import list_accounts
from gateway.config.settings import MAIN, Settings
from gateway.daemon import hooks
from gateway.daemon.agents import SHELL_VARIABLES, Agents, ToolSurroundings, list_missing_libraries
from gateway.daemon.alerts import Alerts, JournalAlerts
from gateway.daemon.disk_configuration import DiskConfiguration
from gateway.daemon.journal import find_node, forget_last_name
from gateway.daemon.notices import (
    FEWER,
    OTHER_FOLDERS,
    VOICE_NETWORK,
    has_changed_tools,
    has_voice_network,
    is_new_home,
    is_new_journal,
    list_notices,
    needs_word_of_folders,
    needs_word_of_voice,
)
from gateway.daemon.part_settings import (
    access_rules_from,
    add_agent_hooks,
    build_setup_info,
    mcp_specs_from,
)
from gateway.daemon.parts import Part, describe_parts
from gateway.daemon.platforms import build_platforms, list_enabled, list_links
from gateway.daemon.scheduled_backups import ScheduledBackups
from gateway.daemon.shared_memory import SharedMemory
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.skill_hooks import SkillHooks
from gateway.daemon.tool_servers import ToolServerJournal, list_tool_notices, report_trust
from gateway.daemon.unknown_names import find_unknown_hooks, find_unknown_prices, find_unknown_tools
from gateway.daemon.web import GatewayWeb, make_page_link
from gateway.dispatcher.attachments import HookFiles, ReplyFiles
from gateway.dispatcher.audio_messages import AudioMessages
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.commands import CommandTable
from gateway.dispatcher.context import DispatcherContext, GatewayReports
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.hook_requests import HookRequests
from gateway.dispatcher.message_events import ReplyHooks
from gateway.dispatcher.terminal_questions import TerminalQuestions
from gateway.dispatcher.turn_signs import TurnSigns
from gateway.engine.interface import Engine
from gateway.engine.journal_clock import JournalClock
from gateway.errors import AccessError, ExitCode
from gateway.hermes.plugin_host import PluginGrants, Plugins
from gateway.hermes.session_list import SessionList
from gateway.hermes.state_follower import StateFollower
from gateway.hooks import HookRegistry
from gateway.hooks.folders.dead_letters import DeadLetters
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.reach import HookLimits
from gateway.hooks.folders.sources import Source
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.lanes.context import LaneSettings, interrupt_on_text
from gateway.lanes.lanes import Lanes, list_open_sessions
from gateway.lanes.turn import NoteClaim, RunTurn
from gateway.lanes.turn_claim import write_decisions
from gateway.messages.message import Address, Message
from gateway.messages.pieces import MessageName
from gateway.outbox.outbox import Outbox
from gateway.parser.media_process import MediaProcess
from gateway.parser.parser_process import ParserProcess
from gateway.people.forgotten import ForgottenPeople
from gateway.records.activity import Activity
from gateway.records.records import OwedReply
from gateway.roles import Role
from gateway.sessions.deleted_messages import DeletedMessages
from gateway.sessions.repository import SessionRepository
from gateway.sessions.retention import Retention
from gateway.sessions.search import SessionSearch
from gateway.sessions.session import SENDING, Session
from gateway.turn_marks import TurnMarks
from gateway.usage.totals import RunningTotals
from gateway.usage.usage_journal import UsageJournal
from gateway.voice.program import VoicePrograms
from gateway.voice.speaker import AnswerSpeaker
from gateway.voice.transcriber import Transcriber
from gateway.web.logins import Logins
from gateway.web.program_keys import ProgramKeys
from gateway.worker.process_marks import mark_of

if TYPE_CHECKING:
    from gateway.traces.trace_sender import TraceSender

log = logging.getLogger(__name__)

GatewayState: TypeAlias = Literal["starting", "ready", "stopping"]
ParamsT = TypeVar("ParamsT")
REACH = 30.0  # seconds in which somebody must have been asked for an approval
OUTBOX_DRAIN_SECONDS = 3.0  # for what is owed, after the turns have had their time


class GatewayVerb(msgspec.Struct, Generic[ParamsT], frozen=True):
    """A verb of the control socket that answers once, from parameters of this type."""

    params: type[ParamsT]
    answer: Callable[["Gateway", ParamsT], Awaitable[Any]]


class Gateway:
    """All parts of one gateway, for those who start, show and steer them."""

    disk: DiskConfiguration | None = None  # where the configuration was read from one
    web: GatewayWeb | None = None  # from the start on, where the settings want a port
    is_new = True  # whether nothing was done in this home before tools were given by role

    def __init__(
        self,
        home: Home,
        configuration: Configuration,
        shutdown: Shutdown,
        engine: Engine,
        registry: HookRegistry,
        fork_server: ForkServerClient,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self.home, self.configuration, self.shutdown = home, configuration, shutdown
        self.engine, self.activity, self.shared_files = engine, Activity(engine), SharedFiles(engine.files, home.files)
        self.nodes = Nodes(engine, find_node(home, configuration), configuration.settings.node.roles)
        self.steering, self.parts = PlatformSteering(engine, self.nodes), list[Part]()  # started, in that order
        self.registry, self.marks = registry, TurnMarks(home.turn_marks)
        self.state: GatewayState = "starting"
        self.since, self.trouble = time.time(), ""
        self.backups = ScheduledBackups(home, lambda: self.settings.backup, find_servers(configuration))
        self._tasks, self._run_command, self._media = tasks, fork_server.run, MediaProcess(fork_server, home.logs)
        settings, self.shared_folders = configuration.settings, SharedFolders(engine, home.files, self.nodes.name)
        self.usage = UsageJournal(engine, RunningTotals(partial(find_time, engine.clock), settings))
        self.sessions = SessionRepository(
            engine, clock=engine.clock.stamp, ahead=engine.clock.calculate_stamp_difference
        )
        self.search = SessionSearch(engine, home.search)
        self.retention = Retention(engine, self.sessions, self.search, lambda: self.settings.journal)
        self.keys, self.logins = ProgramKeys(engine), Logins(engine)
        rules, find_role = access_rules_from(configuration), partial(find_program_role, self)
        self.access = AccessControl(rules, Pairings(engine), find_program_role=find_role)
        self.skill_hooks, self.chats = (
            SkillHooks(engine, home),
            ChatRules(ChatJournal(engine), settings),
        )
        self.state_follower = StateFollower(home.hermes_state, engine, settings.sessions.state_db)
        self.session_list = SessionList(home, engine, self.sessions, self.state_follower.is_foreign)
        self.voice_programs = build_voice_programs(configuration.environ, home, fork_server)
        self.context_files, self.memory = ContextFiles(home.context_copies), SharedMemory(engine, home.memory)
        self.parser = ParserProcess(fork_server, home.logs / "parser.log")
        self.traces = build_traces(self) if settings.traces.endpoint else None
        self.folder_hooks = self._build_folder_hooks(registry, fork_server)
        self.plugins, self.tool_journal = Plugins(self.folder_hooks.plugin_tools), ToolServerJournal(engine)
        self.tool_servers = McpServers(mcp_specs_from(settings, home, self.parser, ()), self.tool_journal)
        self.agents, self.heard = self._build_agents(configuration), HeardMessages(engine, self.chats.is_heard)
        self.forgotten = ForgottenPeople(engine, self.usage.totals, self.heard, self.chats.kept, home.files)
        self.outbox, self.signs = Outbox(engine), TurnSigns(engine)

        self.context = self._build_dispatcher_context()
        self.dispatcher = Dispatcher(self.context, self._build_lanes, tasks, self.signs)
        self.lanes = self.dispatcher.lanes
        self.outbox.begin(build_reply_hooks(self))
        self.hook_requests, self.event_relay = HookRequests(self.context, self.lanes), build_event_relay(self)
        self.terminal = Terminal(engine, self.dispatcher.receive, TerminalQuestions(self.context), self.shared_files)
        self.adapter_context = build_adapter_context(self)
        self.platforms = build_platforms(configuration, self.adapter_context, self.nodes)
        self.alerts = Alerts(self.platforms, self.outbox)
        self.journal_alerts = JournalAlerts(engine, self.outbox, self.dispatcher.list_waiting, self.context.list_homes)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    def choose(self, message: Message, session: Session) -> Agent:
        """The agent that answers, by the configuration and the plugins as they are now."""
        at = message.address
        speaker = self.keys.find_speaker(at.chat_id) if at.platform == API else None
        rules, named = self.chats.find(at, message.user_id), speaker.agent if speaker else ""
        return self.plugins.extend_agent(self.agents.choose(message, session, rules, named))

    def list_sources(self) -> tuple[Source, ...]:
        """Where hooks lie. Those of skills come first: any other of the same name stands in for one of theirs."""
        others = self.folder_hooks.others
        return (*self.skill_hooks.sources, *hooks.list_sources(self.home, self.configuration, others))

    async def _find_hooks(self) -> None:
        """Other places of hooks count from now on."""
        await self.folder_hooks.follow(self.list_sources())

    async def find_owners(self) -> None:
        """Who owns this home, from the journal and the rules, and what its people lost by an upgrade: both are said."""
        is_empty = await is_new_journal(self.engine)
        self.is_new = await is_new_home(self.engine, is_empty)
        is_changed = await needs_word_of_folders(self.engine, is_empty)
        await self.access.apply_rules(self.access.rules)
        if has_changed_tools(self.access, self.configuration, self.is_new):
            log.warning("%s", FEWER)
        if is_changed and self.access.has_others():
            log.warning("%s", OTHER_FOLDERS)
        self.voice_programs.has_network = await has_voice_network(self.engine, is_empty)
        if needs_word_of_voice(self.configuration, self.voice_programs.has_network):
            log.warning("%s", VOICE_NETWORK)

    def notices(self) -> list[str]:
        """What somebody may want to know though nothing is wrong."""
        known = list_notices(self.access, self.configuration, self.is_new, self.voice_programs.has_network)
        held = [*map(self.context_files.describe, self.context_files.list_held())]
        folders = [*self.shared_folders.left_out.values(), *self.shared_folders.absent.values()]
        no_port = [self.web.port.trouble] if self.web and self.web.port.trouble else []
        skills = [str(finding) for finding in self.agents.findings]
        return [*known, *held, *list_tool_notices(self.tool_servers), *no_port, *skills, *folders]

    async def apply_configuration(self, configuration: Configuration) -> None:
        """Go on with another configuration, as far as that is possible without a restart.

        Raises:
            ConfigError: what it names cannot be used; then nothing has changed.
        """
        settings = configuration.settings
        self._build_agents(configuration)  # a trial, before anything changes: its servers are those of before
        await self.tool_journal.keep_only(settings.mcp_servers)
        self.tool_servers.update(mcp_specs_from(settings, self.home, self.parser, self.tool_journal.inherited))
        self.agents = self._build_agents(configuration)
        await self.access.apply_rules(access_rules_from(configuration))
        homes = {one.name: one.settings.home_channel for one in list_accounts(settings.platforms)}
        for platform in self.platforms:
            platform.home_channel = homes.get(platform.name, "")
        self.configuration = configuration
        self.chats.apply_settings(settings)
        self.usage.totals.apply_settings(settings)
        self._report_unknown_names()
        if "lanes" in self.nodes.roles:
            self._tasks.start_soon(self.agents.warm_models)
        await self.skill_hooks.replace_folders()
        await self.folder_hooks.follow(self.list_sources(), add_agent_hooks(settings))

    def _report_unknown_names(self) -> None:
        for finding in (
            *find_unknown_tools(self.configuration, self.agents.tool_names),
            *find_unknown_hooks(self.configuration, self.list_sources()),
            *find_unknown_prices(self.configuration),
        ):
            log.warning("%s: %s; %s", finding.place, finding.what, finding.remedy)
        for line in list_missing_libraries(self.settings):
            log.warning("%s", line)

    async def load_tool_servers(self) -> None:
        """Go by what is kept of the servers of tools."""
        self._report_unknown_names()
        await self.tool_journal.load(self.settings.mcp_servers, is_new=self.is_new)
        if self.tool_journal.inherited:
            inherited = self.tool_journal.inherited
            self.tool_servers.update(mcp_specs_from(self.settings, self.home, self.parser, inherited))
            self.agents = self._build_agents(self.configuration)
            report_trust(self.tool_servers.specs)

    @asynccontextmanager
    async def serving_hooks(self) -> AsyncIterator[None]:
        """The hooks of folders run while inside."""
        grants = PluginGrants(
            self.hook_requests,
            partial(find_agent, self),
            self.registry,
            self.sessions,
            self.access.fit_tool,
            self.usage,
            self.folder_hooks.find_limits,
        )
        check = partial(hooks.check_hooks, self.home, self.folder_hooks)
        is_told = "hooks" in self.nodes.roles
        serving = self.folder_hooks.running(self.list_sources(), grants, check, self._find_hooks, is_told=is_told)
        async with serving:
            self.skill_hooks.attend(self.registry, self._find_hooks)
            if others := self.folder_hooks.others:
                self._tasks.start_soon(forget_last_name, self.home, self.configuration, self.engine, others)
            yield

    def start(self, part: Part) -> None:
        """Nobody waits for it here: what it needs may be far away."""
        self.parts.append(part)
        self._tasks.start_soon(part.run, name=part.name)

    async def drain(self) -> None:
        """What has begun may go on a while: first the turns, then what is owed to people."""
        limit = self.shutdown.limit
        self.state = "stopping"
        self.registry.emit("gateway:shutdown", reason=self.shutdown.reason)
        for part in self.parts:
            part.stop_restarting()
        self.hook_requests.waiting.give_up()
        await self.lanes.drain(limit)
        await self.outbox.drain(min(limit, OUTBOX_DRAIN_SECONDS))

    def _build_folder_hooks(self, registry: HookRegistry, fork_server: ForkServerClient) -> FolderHooks:
        settings, files = self.settings, (self.state_follower, self.session_list)
        served = (PLATFORM, *{one.platform for one in list_enabled(settings.platforms)})
        around = hooks.build_hook_environment(
            self.home,
            self.configuration,
            served,
            *files,
            match=self.parser.match,
            follow_call=self.traces.note_call if self.traces else None,
            find_files=partial(find_event_files, self.shared_files),
        )
        around = msgspec.structs.replace(around, tools=self.marks.tools)
        return FolderHooks(registry, fork_server, self.engine, add_agent_hooks(settings), around, self.nodes.name)

    def _build_agents(self, configuration: Configuration) -> Agents:
        settings, tools = configuration.settings, tuple(self.tool_servers.servers.values())
        describe_hooks = partial(hooks.describe_hooks, self.folder_hooks, "owner")
        skills = self.skill_hooks.list_loaded
        around = ToolSurroundings(self._run_command, self.parser, self.context_files, skills, self.memory)
        return Agents(settings, self.home, configuration.environ, self.registry, describe_hooks, around, tools)

    def _build_dispatcher_context(self) -> DispatcherContext:
        sessions = self.settings.sessions
        return DispatcherContext(
            engine=self.engine,
            registry=self.registry,
            sessions=self.sessions,
            outbox=self.outbox,
            access=self.access,
            commands=CommandTable(BUILT_IN, self.plugins.commands, self.plugins.wait_for_command),
            choose=self.choose,
            reports=GatewayReports(
                status=lambda: f"hermes-gateway is {self.state}; model {self.agents.model_description}",
                hooks=partial(hooks.describe_hooks, self.folder_hooks),
                letters=partial(hooks.describe_letters, self.folder_hooks),
                dead_hooks=partial(hooks.list_dead_hooks, self.folder_hooks),
                retry=partial(hooks.settle_letters, DeadLetters.retry, self.folder_hooks),
                platforms=lambda role: describe_parts(self.parts, [one.name for one in self.steering.platforms], role),
                models=lambda: self.agents.models,
                restart=partial(restart_gateway, self),
                steer=self.steering.steer,
                about=lambda: build_setup_info(self.home, self.settings),
                open_page=lambda role, person: open_page_for(self, role, person),
                ways_in=lambda: list_links(self.steering.platforms),
            ),
            run_id=uuid.uuid4().hex,
            files=self.home.files,
            shared_files=self.shared_files,
            shared_folders=self.shared_folders,
            find_folders=partial(find_shared_folders, self),
            plugins=self.home.plugins,
            find_workspace=lambda facts: self.agents.reach.find_workspace(facts),  # noqa: PLW0108 - others come
            media=self._media,
            keys=sessions,
            on_skill=self.skill_hooks.changed,
            reach=REACH,
            unattended=lambda: self.settings.tools.unattended,
            too_old=sessions.too_old or math.inf,
            redact=self.configuration.redactor.clean,
            activity=self.activity,
            usage=self.usage,
            chats=self.chats,
            heard=self.heard,
            find_limits=lambda hook: self.folder_hooks.find_limits(hook),  # noqa: PLW0108 - none runs yet
            transcriber=Transcriber(lambda: self.settings, self.voice_programs, self.home.own_folder),
            speaker=AnswerSpeaker(lambda: self.settings, self.voice_programs, self.home.voice),
        )

    def _build_lanes(self, run_turn: RunTurn, note: NoteClaim) -> Lanes:
        limits = LaneSettings(
            self.settings.sessions,
            note=note,
            arrive=self.outbox.arrive,
            listener=AudioMessages(self.context, self.signs),
            find_role=self.access.find_role,
            interrupts=lambda message: self.settings.sessions.busy == "interrupt" and interrupt_on_text(message),
        )
        node = find_node(self.home, self.configuration)
        return Lanes(self.engine, self.sessions, run_turn, limits, node=node, marks=self.marks)


async def check_start(gateway: Gateway) -> None:
    """Raises ConfigError: with the configuration that is on disk now, it would not start."""
    if gateway.disk:
        await gateway.disk.check()


async def restart_gateway(gateway: Gateway) -> None:
    """Raises ConfigError, as above."""
    await check_start(gateway)
    gateway.shutdown.request("a restart was asked for", ExitCode.RESTART)


def build_adapter_context(gateway: Gateway) -> AdapterContext:
    """What the networks work with."""
    return AdapterContext(
        gateway.dispatcher.receive,
        gateway.context,
        gateway.home.files,
        gateway.home.unreadable,
        NetworkRoutes(gateway.settings.web),
        partial(delete_message, gateway),
    )


async def delete_message(gateway: Gateway, name: MessageName, by: str = "") -> bool:
    """Its author took it back; whether anything is done about it."""
    if gateway.settings.sessions.deletions == "keep":
        return False
    list_open = partial(list_open_sessions, gateway.engine)
    found = DeletedMessages(gateway.engine, gateway.sessions, gateway.search.find_message, list_open)
    was_heard = await gateway.heard.delete(name, by)
    return await found.delete(name, by) or was_heard


def find_time(clock: JournalClock) -> float:
    """The wall clock's, less what somebody has set it by lately."""
    return time.time() - clock.calculate_difference()


def find_program_role(gateway: Gateway, user_id: str) -> Role | None:
    """What a person of the platform `api` may: as their key, as long as the agent that it names is there."""
    key = gateway.keys.find_speaker(user_id)
    return key.role if key and key.agent in {MAIN, *gateway.settings.agents} else None


def build_voice_programs(environ: Mapping[str, str], home: Home, fork_server: ForkServerClient) -> VoicePrograms:
    """Programs that hear and speak get no secrets of ours."""
    env = {name: environ[name] for name in SHELL_VARIABLES if name in environ}
    return VoicePrograms(env, mark_of(home.lock), fork_server.start_program if fork_server.is_forking else None)


def build_event_relay(gateway: Gateway) -> EventRelay:
    """What is watched here is watched on all nodes."""
    return EventRelay(gateway.engine, gateway.registry, gateway.context.run_id, gateway.nodes.name)


def build_traces(gateway: Gateway) -> "TraceSender":
    """It knows a model by the name that its provider has for it."""
    from gateway.traces.trace_sender import TraceSender  # noqa: PLC0415 - only where a collector is named

    def find_provider(model: str) -> str:
        known = (gateway.settings.model, *gateway.settings.models.values())
        return next((one.provider for one in known if one.name == model), "")

    return TraceSender(gateway.engine, gateway.settings.traces.endpoint, find_provider, gateway.nodes.name)


def build_reply_hooks(gateway: Gateway) -> ReplyHooks:
    """What is asked before a reply goes out."""
    return ReplyHooks(
        gateway.registry,
        ReplyFiles(gateway.shared_files, partial(find_hook_files, gateway)),
        gateway.dispatcher.approvals.is_withdrawn,
        partial(write_decisions, gateway.engine, gateway.sessions),
        gateway.configuration.redactor.clean,
        gateway.dispatcher.refuse_unshown,
        gateway.dispatcher.voice_answers.owe,
    )


async def find_hook_files(gateway: Gateway, outbound: OwedReply, hook: str) -> HookFiles:
    """The files that this hook may put beside this reply; without a turn, those of the conversation."""
    reply, facts = outbound.reply, dict[str, Any]()
    if outbound.session_key:
        session = await gateway.sessions.open(outbound.session_key)
        facts[FOLDER] = reply.address.find_folder(gateway.home.files, session.user_id)
    if outbound.turn_id:
        facts["role"] = reply.role or "guest"
    is_ours = any(one.key == hook and one.owner is one for one in gateway.registry.at(SENDING))  # code, and no folder
    limits = HookLimits() if is_ours else gateway.folder_hooks.find_limits(hook)
    return HookFiles(gateway.agents.reach.find_workspace(facts), Workspace(limits.own), limits.reads)


def find_shared_folders(gateway: Gateway, facts: Mapping[str, Any]) -> list[SharedFolder]:
    """The folders of a turn that all gateways have; none where there is no other."""
    return find_turn_folders(gateway.agents.shared_roots, facts) if gateway.shared_folders.is_shared else []


def find_agent(gateway: Gateway, place: Mapping[str, str]) -> Agent:
    """The one that these fields of an event name, or that answers in this place."""
    at = Address(place.get("platform", ""), place.get("chat_id", ""), account=place.get("account", ""))
    rules = gateway.chats.find(at, place.get("user_id", ""))
    return gateway.plugins.extend_agent(gateway.agents.find(place.get("agent", ""), rules["agent"].value))


async def open_page_for(gateway: Gateway, role: Role, person: str) -> str:
    """A link that goes over a chat network, and so only one to what is encrypted. Raises AccessError."""
    web = gateway.settings.web
    if not web.url.lower().startswith("https:"):
        raise AccessError("the page has no https address that is known here (`web.url`)")
    if web.identity:
        raise AccessError(f"the proxy of the page says who you are; go to {web.url}")
    is_elsewhere = "web" not in gateway.nodes.roles and gateway.nodes.others.has_role("web")
    if not is_elsewhere and (gateway.web is None or not gateway.web.port.url):
        raise AccessError("the port is not open")
    return make_page_link(web.url, await gateway.logins.open_link(role, person))
