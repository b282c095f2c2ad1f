"""The group of turns: the dispatcher, its lanes, the outbox, requests of hooks, and the terminal."""

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from gateway.access.access_control import API
from gateway.adapters.terminal import Terminal
from gateway.agent.agent import Agent
from gateway.agent.toolbox.file_reach import FOLDER
from gateway.agent.toolbox.workspace import Workspace
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, NodePresence, Run
from gateway.daemon.groups.reports import build_reports
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.daemon.part_settings import build_setup_info, find_id_shapes, list_chats_in_settings
from gateway.dispatcher.attachments import FindHookFiles, HookFiles, ReplyFiles
from gateway.dispatcher.audio_messages import AudioMessages
from gateway.dispatcher.chat_commands import BUILT_IN, is_command
from gateway.dispatcher.chat_names import ChatNames
from gateway.dispatcher.commands import CommandTable
from gateway.dispatcher.context import (
    ChatPlaces,
    DispatcherContext,
    DispatcherSettings,
    SpokenWords,
    TurnAgents,
    TurnFiles,
)
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.hook_requests import HookRequests
from gateway.dispatcher.message_events import ReplyHooks
from gateway.dispatcher.turn_signs import TurnSigns
from gateway.engine.failure_watch import FailureWatch
from gateway.figures.half_hours import HalfHours
from gateway.hooks.manifests.reach import HookLimits
from gateway.lanes.context import LanePorts, LaneSettings, interrupt_on_text
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import NoteClaim, RunTurn
from gateway.lanes.turn_claim import write_decisions
from gateway.messages.message import Address, Message, Reply
from gateway.outbox.outbox import Outbox
from gateway.proposals.proposals import Proposals
from gateway.questions.terminal import TerminalQuestions
from gateway.records.figures import HalfHour, WorkTotal
from gateway.records.names import KnownNames
from gateway.records.records import OwedReply
from gateway.sessions.session import SENDING, Session
from gateway.voice.speaker import AnswerSpeaker
from gateway.voice.transcriber import Transcriber
from gateway.web.turn_times import TurnTimes

NO_TURNS = frozenset({"command", "forgotten", "shortened"})  # how a turn ends in which no agent worked

IsSettled: TypeAlias = Callable[[Reply], Awaitable[bool]]


class Turns(msgspec.Struct, frozen=True):
    """The parts that run turns. `hook_requests` answers hooks, `signs` shows running turns, `times` measures turns."""

    outbox: Outbox
    context: DispatcherContext
    dispatcher: Dispatcher
    lanes: Lanes
    hook_requests: HookRequests
    terminal: Terminal
    signs: TurnSigns
    times: TurnTimes
    half_hours: HalfHours
    proposals: Proposals


def build_turns(
    base: Base, run: Run, presence: NodePresence, storage: Storage, people: People, hooks: Hooks, work: Work
) -> Turns:
    engine, name = base.engine, presence.nodes.name
    outbox, signs, times = Outbox(engine), TurnSigns(engine), TurnTimes(name)
    named = ChatNames(
        people.names,
        lambda: find_id_shapes(base.current.configuration.schema),
        lambda: list_chats_in_settings(base.settings),
    )
    places = ChatPlaces(lambda: build_setup_info(base.home, base.settings), people.access, outbox, named)
    context = DispatcherContext(
        engine=engine,
        registry=base.registry,
        sessions=storage.sessions,
        outbox=outbox,
        access=people.access,
        chats=people.chats,
        usage=people.usage,
        activity=storage.activity,
        commands=CommandTable(BUILT_IN, hooks.offers.commands, hooks.offers.wait_for_command),
        reports=build_reports(base, run, presence, people, hooks, work),
        places=places,
        agents=TurnAgents(
            partial(choose_agent, people, hooks, work), hooks.skill_hooks.changed, hooks.folder_hooks.find_limits
        ),
        files=build_turn_files(base, storage, work),
        settings=build_settings(base, presence),
        voice=SpokenWords(
            Transcriber(lambda: base.settings, work.voice_programs, base.home.own_folder),
            AnswerSpeaker(lambda: base.settings, work.voice_programs, base.home.voice),
        ),
    )
    ports = build_lane_ports(base, people, context, signs)

    def make_lanes(run_turn: RunTurn, note: NoteClaim) -> Lanes:
        settings = LaneSettings(base.settings.sessions, ports=msgspec.structs.replace(ports, note=note))
        return Lanes(engine, storage.sessions, run_turn, settings, node=name, marks=storage.marks)

    dispatcher = Dispatcher(context, make_lanes, base.tasks, signs, people.heard, people.names)
    questions, watch = TerminalQuestions(engine, storage.sessions, people.access), FailureWatch(engine)
    proposals = build_proposals(base, presence, context, people.names)
    settled = partial(is_settled, dispatcher, proposals)
    outbox.begin(
        build_reply_hooks(base, storage, dispatcher, settled, partial(find_hook_files, base, storage, hooks, work))
    )
    return Turns(
        outbox,
        context,
        dispatcher,
        dispatcher.lanes,
        HookRequests(context, dispatcher.lanes),
        Terminal(engine, dispatcher.receive, questions, storage.files, partial(is_command, context), watch),
        signs,
        times,
        HalfHours(engine, name, partial(read_totals, people, hooks, times)),
        proposals,
    )


def build_proposals(base: Base, presence: NodePresence, context: DispatcherContext, names: KnownNames) -> Proposals:
    def list_owners() -> list[Address]:
        """List the direct chats of the approvers who are owners."""
        listed = context.places.list_direct_chats()
        return [at for at in listed if context.access.find_role(Message("", at, at.chat_id, "")) == "owner"]

    def describe_person(identity: str) -> str:
        return names.people.describe(identity)  # a new table comes with each start of the followers

    name = presence.nodes.name
    parts = (base.engine, base.registry, context.outbox, context.activity, base.tasks)
    return Proposals(*parts, list_owners, describe_person, presence.event_relay.is_running, name, base.run_id)


async def is_settled(dispatcher: Dispatcher, proposals: Proposals, reply: Reply) -> bool:
    """Return True if the reply is a question that needs no answer any more."""
    return await dispatcher.approvals.is_withdrawn(reply) or await proposals.is_settled(reply)


def build_turn_files(base: Base, storage: Storage, work: Work) -> TurnFiles:
    """Build the files of a turn."""
    return TurnFiles(
        base.home.files,
        storage.files,
        storage.folders,
        lambda facts: work.agents.now.reach.find_workspace(facts),  # noqa: PLW0108 - `now` changes
        base.home.plugins,
        work.media,
    )


def build_settings(base: Base, presence: NodePresence) -> DispatcherSettings:
    sessions, unattended = base.settings.sessions, lambda: base.settings.tools.unattended
    too_old, is_running = sessions.too_old or math.inf, presence.event_relay.is_running
    timezone, redact = lambda: base.settings.gateway.timezone, base.redactor.clean
    return DispatcherSettings(
        sessions, base.run_id, is_running, unattended, too_old, redact, timezone, lambda: base.settings.jobs
    )


def build_lane_ports(base: Base, people: People, context: DispatcherContext, signs: TurnSigns) -> LanePorts:
    return LanePorts(
        arrive=context.outbox.arrive,
        listener=AudioMessages(context, signs),
        find_role=people.access.find_role,
        interrupts=lambda message: base.settings.sessions.busy == "interrupt" and interrupt_on_text(message),
    )


def build_reply_hooks(
    base: Base, storage: Storage, dispatcher: Dispatcher, settled: IsSettled, find_files: FindHookFiles
) -> ReplyHooks:
    """Build the callbacks of the outbox, before and after a reply."""
    return ReplyHooks(
        base.registry,
        ReplyFiles(storage.files, find_files),
        settled,
        partial(write_decisions, base.engine, storage.sessions),
        base.redactor.clean,
        dispatcher.refuse_unshown,
        dispatcher.voice_answers.owe,
    )


def choose_agent(people: People, hooks: Hooks, work: Work, message: Message, session: Session) -> Agent:
    """Return the agent that answers, by the current configuration and plugins."""
    at = message.address
    speaker = people.keys.find_speaker(at.chat_id) if at.platform == API else None
    rules, named = people.chats.find(at, message.user_id), speaker.agent if speaker else ""
    return hooks.offers.extend_agent(work.agents.now.choose(message, session, rules, named))


def find_agent(people: People, hooks: Hooks, work: Work, place: Mapping[str, str]) -> Agent:
    """Return the agent that these fields of an event name, or the agent that answers in the chat they name."""
    at = Address(place.get("platform", ""), place.get("chat_id", ""), account=place.get("account", ""))
    rules = people.chats.find(at, place.get("user_id", ""))
    return hooks.offers.extend_agent(work.agents.now.find(place.get("agent", ""), rules["agent"].value))


async def find_hook_files(
    base: Base, storage: Storage, hooks: Hooks, work: Work, outbound: OwedReply, hook: str
) -> HookFiles:
    """Return the files that this hook may add to the reply; without a turn, the files of the conversation."""
    reply, facts = outbound.reply, dict[str, Any]()
    if outbound.session_key:
        session = await storage.sessions.open(outbound.session_key)
        facts[FOLDER] = reply.address.find_folder(base.home.files, session.user_id)
    if outbound.turn_id:
        facts["role"] = reply.role or "guest"
    is_ours = any(one.key == hook and one.owner is one for one in base.registry.at(SENDING))  # no folder
    limits = HookLimits() if is_ours else hooks.folder_hooks.find_limits(hook)
    return HookFiles(work.agents.now.reach.find_workspace(facts), Workspace(limits.own), limits.reads)


def read_totals(people: People, hooks: Hooks, times: TurnTimes) -> HalfHour:
    """Return the sums since the start of this process; the figures of each half hour come from these sums."""
    models = people.usage.totals.models.values()
    ended = {status: int(count) for (status,), count in times.turns.items() if status not in NO_TURNS}
    work = WorkTotal(
        turns=sum(ended.values()),
        failed=ended.get("failed", 0),
        tokens=sum(used.tokens for used in models),
        cost=sum(used.cost for used in models),
    )
    messages = {network: int(count) for (network,), count in times.messages.items()}
    called = {name: (one.calls, one.failures) for name, one in hooks.folder_hooks.stats.items()}
    return HalfHour(work=work, times=tuple(times.answers.counts), messages=messages, hooks=called)
