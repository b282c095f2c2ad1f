"""Where a message meets what answers it.

`receive` is the one door for every network: the gate, then the journal, then the network may be told that we have the
message. What must act at once (an urgent command, the answer to an open question) acts here; all else waits in its
session's lane, which calls `work`: the gate again, the hooks, then a command or a turn of the agent.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio.abc

from gateway import records
from gateway.access import INTERNAL, Scope
from gateway.agent import Ports, run_turn
from gateway.commands import Typed, typed
from gateway.dispatcher import speech
from gateway.dispatcher.approvals import approvals
from gateway.dispatcher.hearing import hear
from gateway.dispatcher.house import House
from gateway.dispatcher.orders import Orders
from gateway.dispatcher.reception import Reception
from gateway.dispatcher.reminders import Reminders
from gateway.dispatcher.streaming import Live
from gateway.dispatcher.verbs import MARK, Call, marked
from gateway.dispatcher.voice import Voice
from gateway.dispatcher.waiting import AWAITED
from gateway.engine import NewRecord
from gateway.events.event import Pause, Question
from gateway.hooks import Scope as HookScope
from gateway.lanes import HOUR, Lanes, LaneTurn, Outcome
from gateway.messages import Button, Message, Receipt, Reply
from gateway.outbox import Stream
from gateway.sessions import Session, apply_record, session_switch_of
from gateway.transcript import Entry

TOO_OLD = "This came while I was away, and that is long ago. Send it again if it still matters."


class Dispatcher:
    """Receives for every network, works for every lane."""

    def __init__(self, house: House, make_lanes: Callable[..., Lanes], tasks: anyio.abc.TaskGroup) -> None:
        self.lanes = make_lanes(self.work)
        self.reminders = Reminders(house.engine, self.lanes.accept)
        self._house = house
        self._tasks = tasks
        self._orders = Orders(house, self.lanes)
        self._reception = Reception(house, self.lanes, self._orders)

    async def receive(self, message: Message, *extra: NewRecord, bot: str = "") -> Receipt:
        """Take a message; when this returns, it is either settled or in the journal (with `extra`, a cursor)."""
        return await self._reception.receive(message, *extra, bot=bot)

    async def work(self, turn: LaneTurn) -> Outcome:
        """What a lane runs: everything between a claim and the record of its end."""
        message = speech.joined(turn.messages)
        scope = self._house.access.scope(message)
        if scope is None:
            return Outcome(status="denied", error="the sender may no longer speak here")
        if message.sent_at and time.time() - message.sent_at > self._house.too_old and not turn.resumed:
            return said(turn, message, TOO_OLD, status="expired")
        if message.extra.get(AWAITED, self._house.life) != self._house.life:
            return Outcome(status="expired", error="the gateway ended in the middle of it, and who waited for it too")
        agent = self._house.choose(message, turn.session)
        bag = dict(turn.session.bag)
        fields = speech.turn_fields(turn, message, scope, agent.name)
        answers = {asked: answer if answer is not None else False for asked, answer in turn.answers.items()}
        view = self._house.registry.scope(fields, session_bag=bag, answers=answers)
        if turn.turnover:
            self._tell_turnover(turn.session, view)
        try:
            outcome = await self._answer(turn, scope, view)
        except Pause as pause:
            outcome = asking(turn, message, pause.questions)
        return dataclasses.replace(outcome, bag=bag) if bag != dict(turn.session.bag) else outcome

    async def _answer(self, turn: LaneTurn, scope: Scope, view: HookScope) -> Outcome:
        heard = await hear(turn, view)
        if not heard.left:
            return heard.outcome
        message = heard.message
        if len(heard.left) == 1 and (word := typed(message.text)):
            return heard.before(await self._run_command(word, turn, message, scope, view))
        return heard.before(await self._run_agent(turn, turn.session, message, view))

    async def _run_command(
        self, word: Typed, turn: LaneTurn, message: Message, scope: Scope, view: HookScope
    ) -> Outcome:
        found = self._orders.find(message.text, scope)
        if found is None:
            return said(turn, message, self._orders.unknown(word), status="command")
        ran = await self._orders.run(Call(found[0], message, scope, turn.session, self._house), found[1], view)
        session = turn.session
        for change in ran.changes:
            session = apply_record(session, change, session.seq + 1)
            if isinstance(change, records.SessionOpened):
                self._tell_turnover(session, view)
        if ran.then is None:
            return dataclasses.replace(said(turn, message, ran.text, status="command"), changes=ran.changes)
        outcome = await self._run_agent(turn, session, dataclasses.replace(message, text=ran.then), view)
        return dataclasses.replace(outcome, changes=ran.changes)

    async def _run_agent(self, turn: LaneTurn, session: Session, message: Message, view: HookScope) -> Outcome:
        agent = self._house.choose(message, session)
        stream = self._stream(turn, message)
        granted = approvals(self._house.engine, message, session)
        known = await granted.known()
        allowed = dict(known)
        async with Live(self._house.engine, session.key, turn.turn_id, self._tasks, stream) as live:
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
                asked=turn.asked,
                resumed=turn.resumed,
                stop=turn.scope,
                approvals=allowed,
                on_skill=partial(self._house.on_skill, session.session_id),
                chat=Voice(turn, message, self._house, self.reminders),
                turn=view.bags.turn,
                session=view.bags.session,
                facts=view.fields,
            )
            result = await run_turn(agent, session.entries, Entry("user", speech.asked(message)), ports)
        await granted.keep(known, allowed)
        if result.questions:
            return asking(turn, message, result.questions)
        assert result.status != "paused"
        replies = (reply_to(turn, message, result.reply),) if result.reply else ()
        return Outcome(result.entries, replies, result.status, usage=result.usage, error=result.error)

    def _stream(self, turn: LaneTurn, message: Message) -> Stream | None:
        """Where the answer is shown while it grows; nowhere when a hook wants to see what is said before it is."""
        if any(hook.mailbox is None for hook in self._house.registry.at("message:sending")):
            return None
        return self._house.outbox.stream(reply_to(turn, message, ""))

    def _tell_turnover(self, session: Session, view: HookScope) -> None:
        change = session_switch_of(session)
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
            f"{turn.turn_id}:ask:{records.token_of(question.id)}",
            message.address,
            question.prompt,
            buttons=choices(marked(turn.turn_id, question.id), question.can_last),
            reply_to=message.id,
        )
        for question in {question.id: question for question in questions}.values()
    )
    wait = 0.0 if message.address.platform == INTERNAL else HOUR  # where nobody can answer, it is no at once
    return Outcome(replies=replies, questions=prompts, wait=wait)


def choices(mark: str, can_last: bool) -> tuple[Button, ...]:
    """The answers to a question that carries this mark."""
    longer = (("For this session", "/approve session"), ("Always", "/approve always")) if can_last else ()
    answers = (("Yes", "/approve"), *longer, ("No", "/deny"))
    return tuple(Button(label, f"{command} {MARK}{mark}") for label, command in answers)
