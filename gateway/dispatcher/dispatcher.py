"""The dispatcher: receives each message, and runs the hooks and the command or agent that answer it.

`receive` (of `Ingress`) takes messages from every network. It handles urgent messages (an urgent command, the answer to
an open question) at once. All other messages wait in their session's lane, which calls `work`. `work` checks access
again, since time has passed, and runs the hooks, and then a command or a turn of the agent.
"""

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import anyio.abc
from msgspec import structs

from gateway.access.access_control import API, INTERNAL, TERMINAL
from gateway.agent import Agent, Ports, run_turn
from gateway.agent.ports import EventEmitter, TurnResult
from gateway.agent.tool_approval import UNREACHABLE, UNSHOWN
from gateway.agent.toolbox.file_reach import FOLDER, READABLE
from gateway.agent.toolbox.workspace import Workspace
from gateway.chats.heard_messages import HeardMessages
from gateway.dispatcher import message_events
from gateway.dispatcher.answer_parts import AnswerParts
from gateway.dispatcher.attachments import HookFiles, ask_guards, attach_files
from gateway.dispatcher.audio_messages import quote_words
from gateway.dispatcher.awaited_turns import AWAITED
from gateway.dispatcher.chat_commands import (
    CommandCall,
    describe_unknown_command,
    parse_own_command,
    run_command,
    wait_for_command,
    write_refusal,
)
from gateway.dispatcher.context import OWN_PLATFORMS, DispatcherContext
from gateway.dispatcher.hook_limits import limit_ports
from gateway.dispatcher.ingress import Ingress
from gateway.dispatcher.live_answer import AFTER_ALL, AFTER_WRITING, BEFORE_SENDING, LiveAnswer, can_change
from gateway.dispatcher.message_parts import keep_shared_picture, make_entry
from gateway.dispatcher.pairing_commands import CODE_REPLY
from gateway.dispatcher.tool_progress import ShownAnswer, ToolProgress
from gateway.dispatcher.turn_chat import TurnChat
from gateway.dispatcher.turn_grants import add_missing, make_grant_facts
from gateway.dispatcher.turn_signs import TurnSign, TurnSigns, find_end_state
from gateway.dispatcher.voice_answers import VoiceAnswers
from gateway.events import Pause
from gateway.files.lines import split_file_lines
from gateway.hooks.cause import use_cause
from gateway.hooks.line_watcher import ANY_FILE
from gateway.hooks.scope import ANSWER_EVENTS, HookScope
from gateway.jobs.job import SILENT
from gateway.jobs.journal import JobJournal
from gateway.jobs.messages import JOB_MESSAGE
from gateway.lanes.audio import TRANSCRIPTION
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import (
    LaneResult,
    LaneTurn,
    NoteClaim,
    RecordStep,
    RunTurn,
    TurnStart,
    is_last_answer,
    reply_id_of,
)
from gateway.messages.authors import find_hook
from gateway.messages.files import find_message_files
from gateway.messages.message import Message, Reply, cause_of
from gateway.messages.pieces import MessagePiece, find_pieces, put_pieces
from gateway.messages.roles import Role
from gateway.messages.steps import Step
from gateway.messages.transcript import Entry
from gateway.questions.approval_requests import ApprovalRequests
from gateway.questions.open_questions import OpenQuestions
from gateway.questions.rights import list_refusals
from gateway.questions.shown import own_reply_id_of
from gateway.questions.tool_approvals import find_approvals
from gateway.questions.turn import answers_of_turn, make_question_result
from gateway.records import records
from gateway.records.names import KnownNames
from gateway.sessions.session import OpenTurn, Session, apply_record
from gateway.sessions.transitions import QUOTES, SPOKEN, find_last_pieces
from gateway.usage.call_usage import BudgetPort, CallUsage

log = logging.getLogger(__name__)

NOTED = ("message:received", "session:end", "session:reset", "session:start")  # the events of `note_claim`
JOB_MESSAGES = (JOB_MESSAGE, "reminder-")  # how the ids of job messages begin; 0.1 used the second prefix
NOBODY = (None, UNREACHABLE, UNSHOWN)  # the answers without a person; hooks take them as a denial
TOO_OLD = "This message came while I was not running, a long time ago. Send it again if it still matters."


class Dispatcher:
    """Receives messages from every platform, and does the work of every lane."""

    def __init__(
        self,
        context: DispatcherContext,
        make_lanes: Callable[[RunTurn, NoteClaim], Lanes],
        tasks: anyio.abc.TaskGroup,
        signs: TurnSigns,
        heard: HeardMessages,
        names: KnownNames,
    ) -> None:
        self.lanes = make_lanes(self.work, self.note_claim)
        self.jobs = JobJournal(context.engine, limits=context.settings.jobs)
        self.approvals = ApprovalRequests(context.engine, context.sessions, context.outbox, self.lanes)
        self.questions = OpenQuestions(context.engine, context.sessions, self.lanes, self.approvals)
        self.voice_answers = VoiceAnswers(context)
        self._signs = signs
        self._context = context
        self._tasks = tasks
        self._announced: set[str] = set()
        self._ingress = Ingress(context, self.lanes, self.approvals, tasks, heard, names)
        self.receive = self._ingress.receive

    def list_waiting(self) -> list[Message]:
        """List the messages whose senders wait for an answer from this process."""
        return [*self._ingress.arriving.values(), *self.lanes.list_waiting()]

    async def work(self, turn: LaneTurn) -> LaneResult:
        """Run a turn for a lane: everything between the claim of the turn and the record of its end."""
        found = await find_message_files(self._context.files.shared, turn.messages)
        with use_cause(cause_of(turn.messages)):
            return await self._work(structs.replace(turn, messages=found))

    async def note_claim(self, claimed: TurnStart) -> None:
        """Record a claimed turn's first events for durable hooks: its messages arrived, and its session started.

        If the turn was cancelled after all its tries, emit `agent:end` to all hooks. If a hook may still change the
        messages, the turn's next record contains their events.
        """
        if not claimed.error and not self._context.registry.recorders.want(*NOTED):
            return
        found = await find_message_files(self._context.files.shared, claimed.messages)
        claimed = structs.replace(claimed, messages=found)
        message = message_events.join_messages(claimed.messages)
        role = self._context.access.find_role(message)
        if role is None or await self._find_refusal(message, resumed=claimed.resumed):
            return
        with use_cause(cause_of(claimed.messages)):
            agent = self._context.agents.choose(message, claimed.session)
            fields = message_events.build_turn_fields(claimed, message, role, agent.name)
            view = self._context.registry.scope(fields, owed=claimed.owed)
            if claimed.error:
                if not parse_own_command(message):
                    model, redact = agent.model.name, self._context.settings.redact
                    view.emit("agent:end", **message_events.build_failed_fields(claimed, message, model, redact))
                    sign = TurnSign(claimed.turn_id, message.address, message.id, "failed", claimed.resumed)
                    await self._signs.end(sign)
                return
            if claimed.begins_session:
                fire_session_switch(claimed.session, view.note)
            if not any(hook.intercepts for hook in self._context.registry.at("message:received")):
                for one in claimed.messages:
                    view.note("message:received", **message_events.build_received_fields(one))

    def refuse_unshown(self, owed: records.OwedReply) -> None:
        """Handle an undelivered reply: deny its question, or note that its pairing code was not delivered."""
        at = owed.reply.address
        if owed.reply.literals:
            self._tasks.start_soon(self._refuse_unshown, owed)
        elif owed.reply.id.startswith(CODE_REPLY):
            self._tasks.start_soon(self._context.access.pairings.note_untold, at.served_as, at.chat_id)

    async def _refuse_unshown(self, owed: records.OwedReply) -> None:
        turn = (await self._context.sessions.open(owed.session_key)).turn
        names = turn.questions if turn and turn.turn_id == owed.turn_id else ()
        for name in names:
            if owed.reply.id == own_reply_id_of(owed.turn_id, name):
                await self.lanes.answer(owed.session_key, name, UNSHOWN)
                await self._context.outbox.post(
                    Reply(f"{owed.reply.id}:no", owed.reply.address, UNSHOWN), owed.session_key
                )

    async def _work(self, turn: LaneTurn) -> LaneResult:
        message = message_events.join_messages(turn.messages)
        role = self._context.access.find_role(message)
        if turn.resumed and message.address.platform not in OWN_PLATFORMS:
            for shown in find_parts(self._context, turn, message).list_shown():
                turn.show(shown)
        if role is None:
            return LaneResult(status="denied", error="the sender may no longer speak here")
        match await self._find_refusal(message, resumed=turn.resumed):
            case "too old":
                log.warning("a message of %s came too long ago; they get a note instead of an answer", message.user_id)
                return make_text_result(turn, message, TOO_OLD, status="expired")
            case "not awaited":
                return LaneResult(
                    status="expired", error="the gateway ended in the middle of it, and who waited for it too"
                )
        agent = self._context.agents.choose(message, turn.session)
        bag = dict(turn.session.bag)
        fields = message_events.build_turn_fields(turn, message, role, agent.name)
        answers = self._find_answers(turn.open)
        answers = {name: False if answer in NOBODY else answer for name, answer in answers.items()}
        view = self._context.registry.scope(fields, session_bag=bag, answers=answers, owed=turn.owed)
        view.pauses = turn.open.pauses
        for one in (words for message in turn.messages for words in message.extra.get(TRANSCRIPTION, ())):
            view.bags.authors[""].update(one.get("authors", ()))
        if turn.begins_session:
            fire_session_switch(turn.session, view.emit)
        try:
            result = await self._answer(turn, role, view, agent)
        except Pause as pause:
            result = make_question_result(
                self._context.access, turn, message, pause.questions, self._context.settings.unattended()
            )
        replies = tuple(dataclasses.replace(reply, role=role) for reply in result.replies)
        return structs.replace(result, replies=replies, bag=bag if bag != dict(turn.session.bag) else result.bag)

    async def _answer(self, turn: LaneTurn, role: Role, view: HookScope, agent: Agent) -> LaneResult:
        hooked = await message_events.run_received_hooks(turn, view)
        if not hooked.left:
            return LaneResult(replies=hooked.replies, status=hooked.status)
        message = message_events.join_messages(hooked.left)
        if turn.session.settings.get(QUOTES) and (quote := quote_words(hooked.left)):
            await turn.say(Reply(f"{turn.turn_id}:heard", message.address, quote, reply_to=message.id, silent=True))
        if len(hooked.left) == 1 and (typed := parse_own_command(message)):
            by = hooked.changed_by.get(message.id, "")
            call = CommandCall(typed, message, role, turn.session, self._context, self.lanes, by)
            return hooked.prepend_to(await self._run_command(turn, call, view))
        asked = await make_entry(message, self._context.files)
        result = await self._run_agent(turn, message, asked, role, view, agent)
        return hooked.prepend_to(add_pieces(result, asked, find_pieces(hooked.left, asked.content)))

    async def _run_command(self, turn: LaneTurn, call: CommandCall, view: HookScope) -> LaneResult:
        message, session, word = call.message, call.session, call.typed.word
        command = await wait_for_command(self._context, word, call.role)
        if command is None:
            await write_refusal(self._context, message, word, call.by)
            unknown = describe_unknown_command(self._context, word)
            return make_text_result(turn, message, unknown, status="command")
        ran = await run_command(call, command, view)
        for change in ran.changes:
            session = apply_record(session, change, session.seq + 1)
            if isinstance(change, records.SessionOpened):
                fire_session_switch(session, view.emit)
        if ran.then is None:
            said = make_text_result(turn, message, ran.text, ran.codes, status="command")
            return structs.replace(said, changes=ran.changes)
        pieces = find_last_pieces(call.session)
        is_job = any(one.name.id.startswith(JOB_MESSAGES) for one in pieces)
        again = dataclasses.replace(message, text=ran.then.content, is_job=is_job)
        view.bags.authors[""].update(ran.then.authors)
        asked = await make_entry(again, self._context.files)
        turn = structs.replace(turn, session=session)
        result = await self._run_agent(turn, again, asked, call.role, view, self._context.agents.choose(again, session))
        pieces = pieces if ran.then.content == asked.content else ()
        return structs.replace(add_pieces(result, asked, pieces), changes=ran.changes)

    async def _run_agent(
        self, turn: LaneTurn, message: Message, asked: Entry, role: Role, view: HookScope, agent: Agent
    ) -> LaneResult:
        self._announce(agent, "main", role)
        is_unread = can_change(self._context.registry, AFTER_WRITING)  # hooks may still change what the model writes
        is_held = is_unread or can_change(self._context.registry, BEFORE_SENDING)
        folder = message_events.find_files(self._context.files.folder, message, turn.session)
        limits = self._context.agents.find_limits(hook := find_hook(message.author))
        facts = {**view.fields, FOLDER: folder, READABLE: limits.reads or ()}
        facts |= await make_grant_facts(self._context, hook, limits.grants) if limits.grants else {}
        approvals = find_approvals(self._context.engine, self._context.access, message, turn.session)
        parts = find_parts(self._context, turn, message)
        shown = None if is_held and parts.progress == "off" else show_answer(self._context, turn, message, parts)
        live_of = partial(LiveAnswer, self._context.engine, turn.session.key, turn.open, self._tasks)
        async with live_of(shown, is_held=is_held) as live:
            ports = Ports(
                run=view.run,
                emit=view.emit,
                wants=view.wants,
                decides=view.decides,
                reads=view.reads,
                record=show_steps(self._context, turn, parts, live, role),
                delta=live.delta,
                discard=live.discard,
                turn_id=turn.turn_id,
                steps=await self._context.files.shared.find_of_steps(turn.open.steps, folder),
                answers=self._find_answers(turn.open),
                asked=turn.open.asked,
                calls=dict(turn.open.calls),
                changed_by=view.changed_by,
                authors=view.bags.authors,
                limit=partial(limit_ports, self._context, self.jobs, turn, message),
                resumed=turn.resumed,
                stop=turn.scope,
                approvals=approvals.allowed,
                load_approvals=approvals.load,
                on_skill=partial(self._context.agents.on_skill, turn.session.session_id),
                chat=TurnChat(turn, message, role, self._context, self.jobs),
                grant=None if role == "owner" else partial(self._context.access.fit_tool, role=role),
                keep_picture=partial(keep_shared_picture, self._context.files, folder),
                turn=view.bags.turn,
                session=view.bags.session,
                facts=facts,
                redact=self._context.settings.redact,
                usage=self._make_usage(turn, message, role, view),
            )
            sign = TurnSign(turn.turn_id, message.address, message.id, "working", turn.resumed)
            history = await self._context.files.shared.find_of_entries(turn.session.entries, folder)
            run = partial(run_turn, agent, history, asked, ports)
            work = partial(run_in_folders, self._context, facts, turn.resumed, run)
            result = await (work() if message.is_job else self._signs.show(sign, work, find_end_state))
        await approvals.keep()
        if result.questions:
            wait = self._context.settings.unattended()
            return make_question_result(self._context.access, turn, message, result.questions, wait)
        reply = add_missing(result, hook, limits.grants) if limits.grants else result.reply
        is_silent = message.is_job and reply.strip() == SILENT
        said = "" if is_silent or (result.status == "interrupted" and is_unread) else reply
        replies = await self._make_answers(turn, parts.make_reply(said), ports if result.sends_files else None, view)
        return make_lane_result(result, replies, is_spoken=self._is_spoken(turn.session, message))

    async def _make_answers(
        self, turn: LaneTurn, reply: Reply, ports: Ports | None, view: HookScope
    ) -> tuple[Reply, ...]:
        """Make the replies of an answer, with the files that the answer names; without `ports`, send no file."""
        facts = ports.for_call().facts if ports else None
        refused = list_refusals(turn.open) if turn.messages[-1].kind == "internal" else ()
        text, files = split_file_lines("\n\n".join(filter(None, [reply.text, *refused])))
        reply = reply if text == reply.text else dataclasses.replace(reply, text=text)
        if files:
            workspace = self._context.files.find_workspace(facts) if facts else None
            allowed, held = await ask_guards(files, view.run) if facts else (files, [])
            reply = dataclasses.replace(reply, text="\n".join(filter(None, [text, *held])))
            if allowed:
                find = partial(find_line_hooks, self._context, turn, view, workspace)
                reply = await attach_files(reply, allowed, workspace, self._context.files.plugins, find)
            reply = await self._context.files.shared.share(reply, turn.session.key)
        return (reply,) if text or files else ()

    def _is_spoken(self, session: Session, message: Message) -> bool:
        return bool(session.settings.get(SPOKEN)) and self.voice_answers.can_reach(message)

    def _make_usage(self, turn: LaneTurn, message: Message, role: Role, view: HookScope) -> CallUsage:
        """Return the counter of a turn's usage.

        The counter warns the turn's author about a budget if a chat can show the warning, and the admins about
        everyone's budget.
        """
        is_told = message.kind != "internal" and message.address.platform not in (INTERNAL, API)
        place = message.address if is_told else None
        budget = BudgetPort(role, view.run, view.emit, place, self._context.places.list_admins, turn.session.key)
        return CallUsage(self._context.usage.totals, turn.usage, budget)

    def _find_answers(self, turn: OpenTurn) -> dict[str, Any]:
        return answers_of_turn(turn, self._context.engine.clock.latest_possible())

    def _announce(self, agent: Agent, kind: str, role: Role) -> None:
        """Fire `agent:init` for an agent and its sub-agents: once in this process, before the first turn of each agent.

        Lanes run concurrently; since nothing here awaits, no two lanes announce the same agent.
        """
        if agent.name not in self._announced:
            self._announced.add(agent.name)
            self._context.registry.emit("agent:init", agent=agent.name, kind=kind, role=role)
        for below in agent.agents:
            self._announce(below, "sub-agent", role)

    async def _find_refusal(self, message: Message, *, resumed: bool) -> Literal["", "too old", "not awaited"]:
        """Return why this message gets no answer any more, or ""."""
        if not resumed and self._context.is_too_old(message):
            return "too old"
        ours = self._context.settings.run_id
        waiting = message.extra.get(AWAITED, ours)
        if waiting == ours or await self._context.settings.is_running(waiting):
            return ""
        return "not awaited"


async def run_in_folders(
    context: DispatcherContext, facts: Mapping[str, Any], is_resumed: bool, run: Callable[[], Awaitable[TurnResult]]
) -> TurnResult:
    """Run a turn with the files of other gateways; give them the turn's files before the end is recorded."""
    folders = context.files.folders.find(facts)
    if not folders:
        return await run()
    await context.files.folders.take(*folders)
    result = await run()
    if is_resumed or result.questions or any(entry.tool_calls for entry in result.entries):
        await context.files.folders.put(*folders)
    return result


def find_line_hooks(
    context: DispatcherContext, turn: LaneTurn, view: HookScope, workspace: Workspace | None, name: str
) -> list[HookFiles]:
    """Return the files of each restricted hook that may have put a line for this file into the answer.

    A turn that continues does not know which hook added a line in an earlier run, and counts all hooks of the answer.
    """
    hooks = view.brought.get(name, set()) | view.brought.get(ANY_FILE, set())
    if turn.resumed or turn.open.pauses:
        known = context.registry.at(*ANSWER_EVENTS)
        hooks |= {str(hook) for hook in known if hook.intercepts and hook.owner is not hook}
    found = (context.agents.find_limits(hook) for hook in sorted(hooks))
    return [HookFiles(workspace or Workspace(()), Workspace(one.own), one.reads) for one in found if one.is_restricted]


def add_pieces(result: LaneResult, asked: Entry, pieces: Sequence[MessagePiece]) -> LaneResult:
    """Add the pieces of the messages to the entries of a turn."""
    return structs.replace(result, pieces=put_pieces(pieces, asked, result.entries))


def fire_session_switch(session: Session, fire: EventEmitter) -> None:
    """Fire the end of the replaced session, if there is one, and then the start of the new session."""
    if session.replaced_id:
        fire("session:end", **message_events.build_ended_fields(session))
        fire("session:reset", **message_events.build_ended_fields(session))
    fire("session:start", **message_events.build_started_fields(session))


def find_parts(context: DispatcherContext, turn: LaneTurn, message: Message) -> AnswerParts:
    """Return the parts of an answer: a single part for our own chats, and for work that no person asked for."""
    is_called = message.address.platform not in OWN_PLATFORMS and message.kind != "internal" and not message.is_job
    display = context.chats.find_display(message.address)
    shows_tools = message.address.platform == TERMINAL and display.progress == "off"  # briefly, above the prompt
    progress = "tools" if shows_tools else display.progress
    return AnswerParts(turn, message, progress, is_one=not is_called or display.is_edited)


def show_steps(
    context: DispatcherContext, turn: LaneTurn, parts: AnswerParts, live: LiveAnswer, role: Role
) -> RecordStep:
    """Return a function that records a turn's steps, sends the text before a tool, and displays the tools."""
    tools = ToolProgress(parts.progress, context.settings.redact, live.show_line)
    can_wait = can_change(context.registry, AFTER_ALL)

    async def record(step: Step, *replies: Reply) -> None:
        if is_last_answer(step, turn.turn_id) and not (can_wait or replies or split_file_lines(step.entry.content)[1]):
            turn.hold(step)  # the turn's end contains this step, and the events for durable hooks
            return
        said = parts.list_words(step, None if can_wait else role)
        await turn.record(step, *said, *replies)
        if parts.ends_with(step):
            live.begin_part(parts.go_on())
        tools.note(step)

    return record


def show_answer(context: DispatcherContext, turn: LaneTurn, message: Message, parts: AnswerParts) -> ShownAnswer | None:
    """Return the display of the growing answer; a turn that ends without an answer removes the display."""
    if can_change(context.registry, BEFORE_SENDING) or message.address.platform in OWN_PLATFORMS or message.is_job:
        return None
    open_stream = partial(context.outbox.stream, claimed=turn.open.claimed)
    return ShownAnswer(open_stream, parts.make_reply(""), turn.show, parts.make_line() if parts.has_line else None)


def make_text_result(
    turn: LaneTurn, message: Message, text: str, codes: tuple[str, ...] = (), **how: Any
) -> LaneResult:
    """Make a result of a text that no model wrote; "" ends the turn without a reply."""
    reply = Reply(reply_id_of(turn.turn_id), message.address, text, reply_to=message.id, codes=codes)
    return LaneResult(replies=(reply,) if text else (), **how)


def make_lane_result(result: TurnResult, replies: tuple[Reply, ...], is_spoken: bool) -> LaneResult:
    """Make the lane's result of a turn without open questions. Only the answer of a successful turn is spoken."""
    if is_spoken and result.status == "ok":
        replies = tuple(dataclasses.replace(one, is_spoken=True) for one in replies)
    used, over = result.usage, result.stop == "budget"
    return LaneResult(result.entries, replies, result.status, usage=used, error=result.error, over_budget=over)
