"""`open_gateway` starts all parts: read from top to bottom it is the start, from bottom to top the stop."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeAlias

import anyio
import anyio.abc

from gateway.access.access_control import INTERNAL
from gateway.adapters.page.transport import PageTransport
from gateway.adapters.terminal import PLATFORM
from gateway.cluster.files import RemovalFollower, SharedFiles
from gateway.cluster.folders import list_chat_folders
from gateway.cluster.journal_lock import ReportWaiting
from gateway.cluster.lease_part import LeasePart
from gateway.cluster.node_files import find_files
from gateway.cluster.nodes import SCHEDULE, TENDING
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.control.server import ControlServer, JudgeCaller, Verb
from gateway.daemon import hooks
from gateway.daemon.gateway import Gateway
from gateway.daemon.journal import open_journal
from gateway.daemon.parts import Part
from gateway.daemon.received_files import move_received_files
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.verb_activity import write_refusal
from gateway.daemon.web import GatewayWeb
from gateway.engine.interface import Engine
from gateway.hermes.sources import create_hermes_folders
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.lanes.lanes import open_turns_consumer
from gateway.logs.lines import bind_context
from gateway.outbox.interface import JournalTransport
from gateway.records.follower import JournalFollower, RecordCopy
from gateway.schedule import Scheduler
from gateway.sessions.retention import FileRetention
from gateway.threads import run_in_thread
from gateway.web.openai.calls import CallTransport
from gateway.worker.process_marks import mark_of
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.tool_names import TOOL_SERVERS
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)

BuildVerbs: TypeAlias = Callable[[Gateway], Mapping[str, Verb]]
BuildCallerCheck: TypeAlias = Callable[[FolderHooks], JudgeCaller]


@asynccontextmanager
async def open_gateway(
    home: Home,
    configuration: Configuration,
    shutdown: Shutdown,
    build_verbs: BuildVerbs,
    caller_check: BuildCallerCheck | None = None,
    report_waiting: ReportWaiting | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway that serves while inside; on the way out it lets end what it has begun, within the stop's limit.

    `caller_check` makes what says whom the control socket answers; in a test's own process everybody is our child.
    `report_waiting` hears what it waits for before it begins.
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
    """The same on a journal that is open."""
    create_hermes_folders(home)
    TOOL_SERVERS.set(lambda: gateway.settings.mcp_servers)  # before anything begins: whatever does takes it along
    async with (
        HookRegistry() as registry,
        ForkServerClient(
            ForkServerSettings(processes=configuration.settings.hooks.processes, mark=mark_of(home.lock)),
            configuration.redactor.clean,
        ) as fork_server,
        anyio.create_task_group() as tasks,
    ):
        gateway = Gateway(home, configuration, shutdown, engine, registry, fork_server, tasks)
        registry.withheld.kinds = (gateway.access.pairings.code_kind, gateway.logins.code_kind)
        # While it starts a node says nothing of its files.
        list_files = partial(find_files, hooks=gateway.folder_hooks, skills=gateway.skill_hooks)
        await tasks.start(
            gateway.nodes.run, lambda: None if gateway.state == "starting" else list_files(gateway.settings)
        )
        await tasks.start(gateway.steering.run, gateway.platforms)
        facts = JournalFollower(engine, *list_copies(gateway))
        await facts.load()  # until then only the rules count
        await gateway.find_owners()
        await gateway.memory.take_along()
        await move_received_files(engine, home.files)
        await gateway.load_tool_servers()
        await open_turns_consumer(engine)
        async with gateway.serving_hooks():
            judge = caller_check(gateway.folder_hooks) if caller_check else None
            refused = partial(write_refusal, gateway.activity)
            control = ControlServer(home.socket, build_verbs(gateway), configuration.redactor.clean, judge, refused)
            gateway.web = GatewayWeb(gateway, control.verbs) if has_port(gateway) else None
            for part in (Part("facts", facts.run), *build_parts(gateway, control)):
                gateway.start(part)
                await part.wait_first_try()  # a part that fails at first is tried again while the others go on
            begin_platforms(gateway)
            gateway.state = "ready"
            if "lanes" in gateway.nodes.roles:
                tasks.start_soon(gateway.agents.warm_models)
            registry.emit("gateway:startup", platforms=[PLATFORM, *(one.name for one in gateway.platforms)])
            try:
                yield gateway
            finally:
                with anyio.CancelScope(shield=True):
                    await gateway.drain()
                    tasks.cancel_scope.cancel()
                    await wait_for_parts(gateway)


def has_port(gateway: Gateway) -> bool:
    return gateway.settings.web.enabled and "web" in gateway.nodes.roles


def begin_platforms(gateway: Gateway) -> None:
    """Those that other nodes alone serve are shown, and not begun."""
    for platform in gateway.platforms:
        if "ingress" in gateway.nodes.roles:
            with bind_context(platform=platform.name):
                gateway.start(platform.part)
        else:
            platform.leave()
            gateway.parts.append(platform.part)


async def wait_for_parts(gateway: Gateway) -> None:
    """Of what was begun at the very end, such as a call that sends, hooks are told too, so they end after it."""
    with anyio.move_on_after(gateway.shutdown.limit):
        for part in gateway.parts:
            await part.wait_until_ended()


async def keep_files(gateway: Gateway, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Until cancelled: others get those that they cannot have yet, and what is too old goes."""
    task_status.started()
    await put_received_files(gateway.shared_files, gateway.home)
    if gateway.shared_folders.is_shared:
        found = await run_in_thread(list_chat_folders, gateway.home.files)
        await gateway.shared_folders.sync(*gateway.agents.shared_roots, *found)
    await FileRetention(gateway.engine, (gateway.home.files, gateway.home.unreadable)).run()


async def put_received_files(files: SharedFiles, home: Home) -> None:
    """Share the files of this home with other gateways, once, if gateways share files.

    It passes over files that others have, so the next start goes on with one that was cut off. If the journal of a home
    was not taken along, its files stay here alone.

    Raises:
        EngineError: the files are not all stored.
    """
    if not files.is_shared or await run_in_thread(home.shared_files.exists):
        return
    since = 0.0
    with suppress(OSError):
        since = home.journal.stat().st_mtime
    if count := await files.put_all(since):
        log.info("other gateways can have what people had sent here before: %s", format_count(count, "file"))
    await run_in_thread(home.shared_files.touch)


def list_copies(gateway: Gateway) -> Iterator[RecordCopy]:
    """What is known of the journal in memory, and follows it."""
    yield from (gateway.access.pairings.last, gateway.chats.kept, gateway.keys.last, gateway.logins.last)
    if gateway.folder_hooks.shared_switches:
        yield gateway.folder_hooks.shared_switches.last
    if gateway.folder_hooks.others:
        yield gateway.folder_hooks.others
    yield from (gateway.heard, gateway.usage, gateway.skill_hooks, gateway.forgotten, gateway.memory)
    yield RemovalFollower(gateway.engine, gateway.home.files)


def build_parts(gateway: Gateway, control: ControlServer) -> Iterator[Part]:
    """What runs beside the chat networks, in the order of the start; what the node's roles leave out is not there."""
    if "lanes" in gateway.nodes.roles:
        yield Part("lanes", gateway.lanes.run)
        yield Part("signs of turns", gateway.signs.run)
    yield LeasePart("reminders", gateway.dispatcher.reminders.run, gateway.nodes, TENDING)
    yield Part("events of others", gateway.event_relay.run)
    yield Part("hooks that wait", gateway.hook_requests.waiting.run)
    yield LeasePart("approvals", gateway.dispatcher.approvals.run, gateway.nodes, TENDING)
    yield LeasePart("voice", gateway.dispatcher.voice_answers.run, gateway.nodes, TENDING)
    yield Part("quiet chats", gateway.heard.run)
    yield Part("journal alerts", gateway.journal_alerts.run)
    for name, platform in (("terminal", PLATFORM), ("internal", INTERNAL)):
        yield Part(name, partial(gateway.outbox.serve_platform, JournalTransport(platform)))
    yield Part("api", partial(gateway.outbox.serve_platform, CallTransport(gateway.engine)))
    if gateway.settings.web.enabled:  # here or on another node
        yield Part("chat", partial(gateway.outbox.serve_platform, PageTransport(gateway.engine)))
    yield Part("search", gateway.search.run)
    yield Part("state.db", partial(gateway.state_follower.run, gateway.folder_hooks.settled))
    if gateway.session_list.is_ours():
        yield Part("session list", gateway.session_list.run)
    yield Part("alerts", partial(gateway.alerts.run, gateway.registry))
    if "lanes" in gateway.nodes.roles:
        yield Part("tool servers", gateway.tool_servers.run)
    yield LeasePart("retention", gateway.retention.run, gateway.nodes, TENDING)
    yield Part("files", partial(keep_files, gateway))
    yield LeasePart("backups", gateway.backups.run, gateway.nodes, TENDING)
    yield LeasePart("usage", gateway.usage.run, gateway.nodes, TENDING)
    if gateway.traces:
        yield Part("traces", gateway.traces.run)
    yield Part("control", control.serve)
    if "hooks" in gateway.nodes.roles:
        scheduler = Scheduler(gateway.engine, gateway.registry, partial(hooks.list_scheduled, gateway.folder_hooks))
        yield LeasePart("schedule", scheduler.run, gateway.nodes, SCHEDULE)
    if gateway.web:
        yield Part("web", gateway.web.serve)
