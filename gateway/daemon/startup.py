"""`open_gateway` starts all parts, in the order of its lines; the stop has the opposite order."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio
import anyio.abc

from gateway.access.access_control import INTERNAL
from gateway.adapters.page.transport import PageTransport
from gateway.adapters.terminal import PLATFORM
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.control.server import ControlServer, JudgeCaller, VerbAnswer
from gateway.daemon.alerts import send_alert
from gateway.daemon.callers import FindProgram
from gateway.daemon.cluster_table import find_files, open_journal
from gateway.daemon.control_verbs import FindPart
from gateway.daemon.desk import DeskSocket
from gateway.daemon.dialects import create_folders
from gateway.daemon.gateway import Gateway, build_gateway
from gateway.daemon.groups.hooks import Hooks, list_all_sources, reload_places
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, BindGroups, CurrentConfiguration, NodePresence, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns, find_agent
from gateway.daemon.groups.work import Work
from gateway.daemon.hooks import check_hooks, list_scheduled
from gateway.daemon.job_programs import run_job_program
from gateway.daemon.journal import ReportWaiting
from gateway.daemon.nodes import SCHEDULE, TENDING
from gateway.daemon.notices import (
    FEWER,
    OTHER_FOLDERS,
    VOICE_NETWORK,
    has_changed_tools,
    has_voice_network,
    is_new_home,
    is_new_journal,
    needs_word_of_folders,
    needs_word_of_voice,
)
from gateway.daemon.part_settings import mcp_specs_from
from gateway.daemon.parts import Part
from gateway.daemon.received_files import move_received_files
from gateway.daemon.reload import ConfigurationReloader, ReloadConfiguration, apply_configuration, report_unknown_names
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.status import format_status_line
from gateway.daemon.tool_servers import report_trust
from gateway.daemon.verb_activity import write_refusal
from gateway.daemon.web import GatewayWeb
from gateway.engine.interface import Engine
from gateway.hermes.plugin_host import PluginGrants
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.jobs.ping import call_ping, run_ping
from gateway.jobs.runner import JobPorts, JobRunner
from gateway.jobs.schedule import Scheduler
from gateway.jobs.timer import clocks_of
from gateway.lanes.lanes import open_turns_consumer
from gateway.logs.lines import bind_context
from gateway.outbox.interface import JournalTransport
from gateway.records.follower import JournalFollower, RecordCopy
from gateway.records.records import KnownName
from gateway.sessions.retention import FileRetention
from gateway.web.openai.calls import CallTransport
from gateway.worker.process_marks import mark_of
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.tool_names import TOOL_SERVERS

log = logging.getLogger(__name__)

OUTBOX_DRAIN_SECONDS = 3.0  # for pending replies, after the turns have had their time
REACH = 30.0  # seconds in which an approval request must reach a person

BuildVerbs: TypeAlias = Callable[[FindPart], Mapping[str, VerbAnswer]]
BuildCallerCheck: TypeAlias = Callable[[FolderHooks, FindProgram], JudgeCaller]


@asynccontextmanager
async def open_gateway(
    home: Home,
    configuration: Configuration,
    shutdown: Shutdown,
    build_verbs: BuildVerbs,
    caller_check: BuildCallerCheck | None = None,
    report_waiting: ReportWaiting | None = None,
) -> AsyncIterator[Gateway]:
    """Open a gateway that serves inside the block; at the end of the block, running work may finish within a limit.

    `caller_check` makes the check of callers on the control socket. None accepts every caller: in tests, all callers
    are children of the gateway's process. `report_waiting` receives the reasons for a delayed start.
    """
    async with (
        open_journal(home, configuration, report_waiting) as engine,
        open_gateway_on(engine, home, configuration, shutdown, build_verbs, caller_check) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def open_gateway_on(
    engine: Engine,
    home: Home,
    configuration: Configuration,
    shutdown: Shutdown,
    build_verbs: BuildVerbs,
    caller_check: BuildCallerCheck | None = None,
) -> AsyncIterator[Gateway]:
    """Open a gateway on an open journal."""
    create_folders(home)
    current = CurrentConfiguration(configuration)
    TOOL_SERVERS.set(lambda: current.settings.mcp_servers)  # before any task starts, since each task copies the value
    async with (
        HookRegistry() as registry,
        ForkServerClient(
            ForkServerSettings(processes=configuration.settings.hooks.processes, mark=mark_of(home.lock)),
            configuration.redactor.clean,
        ) as fork_server,
        anyio.create_task_group() as tasks,
    ):
        base = Base(home, engine, registry, fork_server, tasks, shutdown, current, configuration.redactor)
        groups = build_gateway(base)
        run, presence, people = groups.run, groups.presence, groups.people
        registry.withheld.kinds = (people.access.pairings.code_kind, people.logins.code_kind)
        list_files = partial(find_files, hooks=groups.hooks.folder_hooks, skills=groups.hooks.skill_hooks)
        # A node that starts says nothing about its files.
        await tasks.start(presence.nodes.run, lambda: None if run.state == "starting" else list_files(base.settings))
        await tasks.start(presence.steering.run, groups.networks.platforms)
        facts = JournalFollower(engine, *list_copies(groups))
        await facts.load()  # before this line, only the rules of access count
        await groups.bind(find_owners)()
        await groups.storage.memory.take_along()
        await move_received_files(engine, home.files)
        await groups.bind(load_tool_servers)()
        await open_turns_consumer(engine)
        async with groups.bind(run_hooks)():
            desk = groups.bind(DeskSocket)()
            judge = caller_check(groups.hooks.folder_hooks, desk.find_program) if caller_check else None
            refused = partial(write_refusal, groups.storage.activity)
            control = ControlServer(home.socket, build_verbs(groups.find), base.redactor.clean, judge, refused)
            run.web = groups.bind(GatewayWeb)(groups.bind, control.verbs, desk) if has_port(base, presence) else None
            for part in (Part("facts", facts.run), *build_parts(groups, control, desk)):
                run.start(part, tasks)
                await part.wait_first_try()  # a part that fails starts again later, and the others go on
            begin_platforms(base, run, presence, groups.networks)
            run.state = "ready"
            if "lanes" in presence.nodes.roles:
                tasks.start_soon(groups.work.agents.now.warm_models)
            registry.emit("gateway:startup", platforms=[PLATFORM, *(one.name for one in groups.networks.platforms)])
            try:
                yield groups
            finally:
                with anyio.CancelScope(shield=True):
                    await groups.bind(stop_turns)()
                    tasks.cancel_scope.cancel()
                    await wait_for_parts(base, run)


def bind_reload(bind: BindGroups, reloader: ConfigurationReloader) -> ReloadConfiguration:
    """Return the function that reads the configuration of this gateway again."""
    return partial(bind(reloader.reload), bind(apply_configuration), bind(format_status_line))


async def find_owners(base: Base, run: Run, people: People, work: Work) -> None:
    """Find the owners of this home in the journal and the rules, and log what people lost by an upgrade."""
    access, configuration = people.access, base.current.configuration
    is_empty = await is_new_journal(base.engine)
    run.is_new = await is_new_home(base.engine, is_empty)
    is_changed = await needs_word_of_folders(base.engine, is_empty)
    await access.apply_rules(access.rules)
    for one in access.pairings.people:  # an earlier version noted their names nowhere else
        if not people.names.people.find(who := f"{one.platform}:{one.user_id}"):
            people.names.learn(KnownName(of=who, name=one.user_name))
    if has_changed_tools(access, configuration, run.is_new):
        log.warning("%s", FEWER)
    if is_changed and access.has_others():
        log.warning("%s", OTHER_FOLDERS)
    work.voice_programs.has_network = await has_voice_network(base.engine, is_empty)
    if needs_word_of_voice(configuration, work.voice_programs.has_network):
        log.warning("%s", VOICE_NETWORK)


async def load_tool_servers(base: Base, run: Run, hooks: Hooks, work: Work) -> None:
    """Load the facts about tool servers that the journal keeps, and apply them."""
    report_unknown_names(base, hooks, work)
    await work.tool_journal.load(base.settings.mcp_servers, is_new=run.is_new)
    if inherited := work.tool_journal.inherited:
        work.tool_servers.update(mcp_specs_from(base.settings, base.home, hooks.parser, inherited))
        work.agents.now = work.agents.build(base.current.configuration)
        report_trust(work.tool_servers.specs)


@asynccontextmanager
async def run_hooks(
    base: Base, presence: NodePresence, storage: Storage, people: People, hooks: Hooks, work: Work, turns: Turns
) -> AsyncIterator[None]:
    """Run the hooks of folders inside the block."""
    folder_hooks, find = hooks.folder_hooks, partial(reload_places, base, hooks)
    grants = PluginGrants(
        turns.hook_requests,
        partial(find_agent, people, hooks, work),
        base.registry,
        storage.sessions,
        people.access.fit_tool,
        people.usage,
        folder_hooks.find_limits,
    )
    check, is_told = partial(check_hooks, base.home, folder_hooks), "hooks" in presence.nodes.roles
    async with folder_hooks.running(list_all_sources(base, hooks), grants, check, find, is_told=is_told):
        hooks.skill_hooks.attend(base.registry, find)
        yield


def has_port(base: Base, presence: NodePresence) -> bool:
    return base.settings.web.enabled and "web" in presence.nodes.roles


def begin_platforms(base: Base, run: Run, presence: NodePresence, networks: Networks) -> None:
    """Start the networks, if this node serves networks; otherwise, list the networks as left to other nodes."""
    for platform in networks.platforms:
        if "ingress" in presence.nodes.roles:
            with bind_context(platform=platform.name):
                run.start(platform.part, base.tasks)
        else:
            platform.leave()
            run.parts.append(platform.part)


async def stop_turns(base: Base, run: Run, turns: Turns) -> None:
    """Give running work some time: first turns, then pending replies."""
    limit = base.shutdown.limit
    run.state = "stopping"
    base.registry.emit("gateway:shutdown", reason=base.shutdown.reason)
    for part in run.parts:
        part.stop_restarting()
    turns.hook_requests.waiting.give_up()
    await turns.lanes.drain(limit)
    await turns.outbox.drain(min(limit, OUTBOX_DRAIN_SECONDS))


async def wait_for_parts(base: Base, run: Run) -> None:
    """Wait for the parts, which end after the last events of the stop, such as the events of a running delivery."""
    with anyio.move_on_after(base.shutdown.limit):
        for part in run.parts:
            await part.wait_until_ended()


async def count_figures(base: Base, turns: Turns, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Count turns, and write the figures of each half hour, until cancelled."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(turns.times.run, base.engine)
        await turns.half_hours.run(task_status=task_status)


async def keep_files(base: Base, storage: Storage, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Share files that other gateways lack, and remove old files, until cancelled."""
    task_status.started()
    home = base.home
    await storage.files.put_earlier(home.journal, home.shared_files)
    await storage.folders.sync_all()
    await FileRetention(base.engine, (home.files, home.unreadable), base.engine.clock.read).run()


def list_copies(gateway: Gateway) -> Iterator[RecordCopy]:
    """Yield the copies of records in memory that follow the journal."""
    people, folder_hooks = gateway.people, gateway.hooks.folder_hooks
    yield from (people.access.pairings.last, people.chats.kept, people.keys.last, people.logins.last)
    if folder_hooks.shared_switches:
        yield folder_hooks.shared_switches.last
    yield from folder_hooks.others.copies
    yield from (people.names, people.heard, people.usage, gateway.hooks.skill_hooks, gateway.storage.memory)
    yield from people.removals


def build_job_runner(gateway: Gateway) -> JobRunner:
    base, turns = gateway.base, gateway.turns
    ports = JobPorts(
        turns.lanes.accept,
        turns.lanes.interrupt,
        gateway.people.access.find_role,
        base.registry.emit,
        gateway.bind(run_job_program),
        partial(call_ping, environ=base.current.configuration.environ),
        partial(send_alert, turns.outbox, turns.context.places.list_homes),
    )
    return JobRunner(base.engine, turns.dispatcher.jobs, ports, clocks_of(base.engine.clock))


def build_callers(base: Base, hooks: Hooks) -> Iterator[Part]:
    """Yield the parts that call a service elsewhere, if the settings name one."""
    if hooks.traces:
        yield Part("traces", hooks.traces.run)
    if url := base.settings.gateway.ping:
        yield Part("ping", partial(run_ping, url, base.current.configuration.environ))


def build_parts(gateway: Gateway, control: ControlServer, desk: DeskSocket) -> Iterator[Part]:
    """Yield the parts that the node's roles need, except the chat networks, in the order of the start."""
    base, people, storage, turns = gateway.base, gateway.people, gateway.storage, gateway.turns
    approvers = turns.context.places.find_approvers(REACH)
    nodes, hooks, networks = gateway.presence.nodes, gateway.hooks, gateway.networks
    if "lanes" in nodes.roles:
        yield Part("lanes", turns.lanes.run)
        yield Part("signs of turns", turns.signs.run)
    yield nodes.make_part("jobs", build_job_runner(gateway).run, TENDING)
    yield Part("events of others", gateway.presence.event_relay.run)
    yield nodes.make_part("approvals", partial(turns.dispatcher.approvals.run, approvers), TENDING)
    yield nodes.make_part("voice", turns.dispatcher.voice_answers.run, TENDING)
    for name, run in (
        ("proposals", turns.proposals.run),
        ("quiet chats", people.heard.run),
        ("names", people.names.run),
        ("desk", desk.serve),
    ):
        yield Part(name, run)
    yield Part("journal alerts", networks.journal_alerts.run)
    for name, platform in (("terminal", PLATFORM), ("internal", INTERNAL)):
        yield Part(name, partial(turns.outbox.serve_platform, JournalTransport(platform)))
    yield Part("api", partial(turns.outbox.serve_platform, CallTransport(base.engine)))
    if base.settings.web.enabled:  # the page is on this node or another
        yield Part("chat", partial(turns.outbox.serve_platform, PageTransport(base.engine)))
    yield Part("search", storage.search.run)
    yield Part("state.db", partial(hooks.state_follower.run, hooks.folder_hooks.settled))
    if hooks.session_list.is_ours():
        yield Part("session list", hooks.session_list.run)
    yield Part("alerts", partial(networks.alerts.run, base.registry))
    if "lanes" in nodes.roles:
        yield Part("tool servers", gateway.work.tool_servers.run)
    yield nodes.make_part("retention", storage.retention.run, TENDING)
    yield Part("files", gateway.bind(keep_files))
    yield nodes.make_part("backups", storage.backups.run, TENDING)
    yield nodes.make_part("usage", people.usage.run, TENDING)
    yield Part("figures", gateway.bind(count_figures))
    yield from build_callers(base, hooks)
    yield Part("control", control.serve)
    if "hooks" in nodes.roles:
        scheduler = Scheduler(
            base.engine, base.registry, partial(list_scheduled, hooks.folder_hooks), clocks_of(base.engine.clock)
        )
        yield nodes.make_part("schedule", scheduler.run, SCHEDULE)
    if gateway.run.web:
        yield Part("web", gateway.run.web.serve)
