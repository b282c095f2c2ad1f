"""Where a message meets what answers it.

`receive` is the one door for every network: the gate, then the journal, then the network may be told that we have the
message. What must act at once (an urgent command, the answer to an open question) acts here; all else waits in its
session's lane, which calls `work`: the gate again, the hooks, then a command or a turn of the agent.
"""

import dataclasses
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import anyio.abc

from gateway import records
from gateway.access import Scope
from gateway.agent import Ports, run_turn
from gateway.commands import Command, Typed, typed
from gateway.dispatcher import speech
from gateway.dispatcher.house import House
from gateway.dispatcher.streaming import Live
from gateway.dispatcher.verbs import IN_LANE, Call, Ran, Urgent
from gateway.engine import Put
from gateway.errors import SessionError
from gateway.events import Deny, End, Event, Pause, Question
from gateway.hooks import Scope as HookScope
from gateway.lanes import Lanes, LaneTurn, Outcome
from gateway.messages import Button, Message, Receipt, Reply
from gateway.sessions import Session, apply, session_key, turnover
from gateway.transcript import Entry

log = logging.getLogger(__name__)

ANSWERS = (Button("Yes", "/approve"), Button("No", "/deny"))
REFUSED = "This was refused."


class Dispatcher:
    """Receives for every network, works for every lane."""

    def __init__(self, house: House, make_lanes: Callable[..., Lanes], tasks: anyio.abc.TaskGroup) -> None:
        self.lanes = make_lanes(self.work)
        self._house = house
        self._urgent = Urgent(self.lanes)
        self._tasks = tasks

    async def receive(self, message: Message, *extra: Put, bot: str = "") -> Receipt:
        """Take a message; when this returns, it is either settled or in the journal (with `extra`, a cursor)."""
        scope = self._house.access.scope(message)
        if scope is None:
            return self._turn_away(message)
        key = session_key(message, self._house.keys)
        session = await self._house.sessions.open(key)
        command = self._command(message.text, scope)
        if command and command[1].urgent:
            return await self._settle(Call(command[0], message, scope, session, self._house), command[1])
        if session.is_waiting and not command and await self._may_answer(session, message, scope):
            return await self._take_answer(session, message, *extra, bot=bot)
        seq = await self.lanes.accept(message, key, *extra, bot=bot)
        return Receipt(key, seq or 0)

    async def work(self, turn: LaneTurn) -> Outcome:
        """What a lane runs: everything between a claim and the record of its end."""
        message = speech.joined(turn.messages)
        scope = self._house.access.scope(message)
        if scope is None:
            return Outcome(status="denied", error="the sender may no longer speak here")
        agent = self._house.choose(message, turn.session)
        bag = dict(turn.session.bag)
        fields = speech.turn_fields(turn, message, scope, agent.name)
        view = self._house.registry.scope(fields, session_bag=bag, answers=turn.answers)
        if turn.turnover:
            self._tell_turnover(turn.session, view)
        try:
            outcome = await self._answer(turn, message, scope, view)
        except Pause as pause:
            outcome = asking(turn, message, pause.questions)
        return dataclasses.replace(outcome, bag=bag) if bag != dict(turn.session.bag) else outcome

    async def _answer(self, turn: LaneTurn, message: Message, scope: Scope, view: HookScope) -> Outcome:
        event = await view.run("message:received", **speech.received_fields(message))
        match event.outcome:
            case End(reply=reply):
                return said(turn, message, reply, status="ended")
            case Deny(text=text):
                return said(turn, message, text or REFUSED, status="denied")
        message = dataclasses.replace(message, text=event["text"])
        if word := typed(message.text):
            return await self._run_command(word, turn, message, scope, view)
        return await self._run_agent(turn, turn.session, message, view)

    async def _run_command(
        self, word: Typed, turn: LaneTurn, message: Message, scope: Scope, view: HookScope
    ) -> Outcome:
        found = self._command(message.text, scope)
        if found is None:
            return said(turn, message, self._unknown(word), status="command")
        ran = await self._through_hooks(Call(found[0], message, scope, turn.session, self._house), found[1], view)
        session = turn.session
        for change in ran.changes:
            session = apply(session, change, session.seq + 1)
            if isinstance(change, records.Opened):
                self._tell_turnover(session, view)
        if ran.then is None:
            return dataclasses.replace(said(turn, message, ran.text, status="command"), changes=ran.changes)
        outcome = await self._run_agent(turn, session, dataclasses.replace(message, text=ran.then), view)
        return dataclasses.replace(outcome, changes=ran.changes)

    async def _through_hooks(self, call: Call, command: Command, view: HookScope) -> Ran:
        """A command as its hooks let it be; one that they put in its place fires none again, but must be allowed."""
        event = await view.run(
            f"command:{command.name}",
            command=command.name,
            raw_command=call.typed.word,
            args=call.args,
            raw_args=call.args,
        )
        if isinstance(event.outcome, Deny):
            return Ran(event.outcome.text or f"/{command.name} was refused by a hook.")
        if event.get("result") is not None:
            return Ran(str(event["result"]))
        other = self._command(f"/{event['command']} {event['args']}", call.scope)
        if other is None:
            return Ran(f"/{command.name} became /{event['command']}, which cannot be run here.")
        return await self._run_verb(dataclasses.replace(call, typed=other[0]), other[1])

    async def _run_verb(self, call: Call, command: Command) -> Ran:
        verb = self._urgent.table.get(command.name) or IN_LANE[command.name]
        try:
            return await verb(call)
        except SessionError as error:
            return Ran(str(error))

    async def _run_agent(self, turn: LaneTurn, session: Session, message: Message, view: HookScope) -> Outcome:
        agent = self._house.choose(message, session)
        async with Live(self._house.engine, session.key, turn.turn_id, self._tasks) as live:
            ports = Ports(
                run=view.run,
                emit=view.emit,
                wants=view.wants,
                record=turn.record,
                delta=live.delta,
                discard=live.discard,
                turn_id=turn.turn_id,
                steps=turn.steps,
                answers=dict(turn.answers),
                asked=turn.session.turn.questions if turn.session.turn else {},
                resumed=turn.resumed,
                stop=turn.scope,
                turn=view.bags.turn,
                session=view.bags.session,
                facts=view.fields,
            )
            result = await run_turn(agent, session.entries, Entry("user", message.text), ports)
        if result.questions:
            return asking(turn, message, result.questions)
        assert result.status != "paused"
        replies = (reply_to(turn, message, result.reply),) if result.reply else ()
        return Outcome(result.entries, replies, result.status, usage=result.usage, error=result.error)

    async def _settle(self, call: Call, command: Command) -> Receipt:
        """An urgent command, here and now."""
        view = self._house.registry.scope(
            speech.place_fields(call.message, call.scope, call.session) | {"turn_id": "", "agent": ""},
            session_bag=dict(call.session.bag),
            answers=None,
        )
        event = await view.run("message:received", **speech.received_fields(call.message))
        if isinstance(event.outcome, Deny | End):
            return Receipt(call.session.key, settled=outcome_text(event))
        ran = await self._through_hooks(call, command, view)
        await self._say(call.session.key, call.message, ran.text)
        return Receipt(call.session.key, settled=ran.text)

    async def _may_answer(self, session: Session, message: Message, scope: Scope) -> bool:
        """Whoever started the turn may answer, and admins may."""
        if scope in ("admin", "owner"):
            return True
        waiting = await self._house.engine.read(records.subject("in", session.key), session.upto, 1)
        asked = records.decode(waiting[0].data) if waiting else None
        return isinstance(asked, records.Inbound) and asked.message.user_id == message.user_id

    async def _take_answer(self, session: Session, message: Message, *extra: Put, bot: str) -> Receipt:
        assert session.turn
        name = next(iter(session.turn.questions))
        by = f"{message.address.platform}:{message.user_id}"
        msg_id = f"answer:{message.address.platform}:{bot}:{message.id}"
        taken = await self.lanes.answer(session.key, name, message.text, by, *extra, msg_id=msg_id)
        if not taken:
            return Receipt(session.key, await self.lanes.accept(message, session.key, *extra, bot=bot) or 0)
        return Receipt(session.key, session.turn.on)

    async def _say(self, key: str, message: Message, text: str) -> None:
        """Owe somebody a text that belongs to no turn."""
        if text:
            reply = Reply(uuid.uuid4().hex, message.address, text, reply_to=message.id)
            await self._house.outbox.post(reply, key)

    def _turn_away(self, message: Message) -> Receipt:
        at = message.address
        log.info("%s user %s may not speak here", at.platform, message.user_id)
        self._house.registry.emit(
            "access:denied",
            platform=at.platform,
            user_id=message.user_id,
            chat_id=at.chat_id,
            reason="no rule names this person",
        )
        return Receipt("", settled="")

    def _command(self, text: str, scope: Scope) -> tuple[Typed, Command] | None:
        """The command in a text, if there is one that this person may use."""
        word = typed(text)
        command = self._house.commands.get(word.word) if word else None
        if word is None or command is None or (command.admin and scope not in ("admin", "owner")):
            return None
        return word, command

    def _unknown(self, word: Typed) -> str:
        near = self._house.commands.closest(word.word)
        return f"There is no command /{word.word} for you here. " + (f"/{near}?" if near else "/help lists them.")

    def _tell_turnover(self, session: Session, view: HookScope) -> None:
        change = turnover(session)
        if change.ended:
            view.emit("session:end", **speech.ended_fields(change))
            view.emit("session:reset", **speech.ended_fields(change))
        view.emit("session:start", **speech.turnover_fields(change))


def reply_to(turn: LaneTurn, message: Message, text: str, **more: Any) -> Reply:
    """The answer of a turn: its id is the turn's, so that however often it is sent, it is one reply."""
    return Reply(f"{turn.turn_id}:reply", message.address, text, reply_to=message.id, **more)


def said(turn: LaneTurn, message: Message, text: str, **how: Any) -> Outcome:
    """A text that no model wrote ends the turn; an empty one ends it in silence."""
    return Outcome(replies=(reply_to(turn, message, text),) if text else (), **how)


def asking(turn: LaneTurn, message: Message, questions: tuple[Question, ...]) -> Outcome:
    """The turn waits: each question goes to the chat, with buttons where the network has them."""
    prompts: Mapping[str, str] = {question.id: question.prompt for question in questions}
    replies = tuple(
        Reply(
            f"{turn.turn_id}:ask:{records.token(name)}", message.address, prompt, buttons=ANSWERS, reply_to=message.id
        )
        for name, prompt in prompts.items()
    )
    return Outcome(replies=replies, questions=prompts)


def outcome_text(event: Event) -> str:
    match event.outcome:
        case End(reply=reply):
            return reply
        case Deny(text=text):
            return text or REFUSED
    return ""
