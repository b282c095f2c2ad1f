"""The calls of models in one turn: held against budgets, and counted in the sums and with the turn's next record.

While a call runs, its least usage is held: so the usage of ten calls at once is known before the first has ended. Calls
that run at that moment can exceed a budget by their answers, and by no more. The held amount is an estimate, and mostly
too high: so it refuses no call, but makes it wait for the true figure. A call that was cut off, or whose endpoint
reports no usage, is counted by its length.
"""

import time
import uuid
from collections.abc import Callable, Sequence

import anyio
import msgspec
from msgspec.structs import replace

from gateway.agent.ports import EventEmitter, EventRunner
from gateway.engine.interface import NewRecord
from gateway.events.outcomes import find_refusal
from gateway.messages.message import Address, Reply
from gateway.messages.roles import Role
from gateway.messages.transcript import Usage
from gateway.records.records import RecordedCall, make_reply_put
from gateway.usage.budgets import BudgetState
from gateway.usage.totals import RunningTotals, describe_end
from gateway.usage.turn_usage import TurnUsage

HELD_SECONDS = 60.0  # that a call waits for others, which may leave it enough
HELD = "I stopped here: {used} are used, and calls that run now may take {held} more. Try again when they have ended."
STOPPED = "I stopped here: {used} are used. It goes on {again}."
WARNED = "{used} are used already. At the limit I stop until {again}."
OWNER_WARNED = "{used} are used already. You own this gateway: it goes on beyond the limit."
ALL_WARNED = "Everybody together: {used} are used already."


class BudgetPort(msgspec.Struct, frozen=True):
    """The role in the turn, the hooks of budgets, and the addresses of notices: the person, the session, and admins."""

    role: Role
    run: EventRunner
    emit: EventEmitter
    place: Address | None = None
    list_admins: Callable[[], Sequence[Address]] = tuple
    session_key: str = ""


class CallUsage:
    """The check before each call of a model in a turn, and the count after it; `turn` collects the usage."""

    def __init__(self, totals: RunningTotals, turn: TurnUsage, port: BudgetPort) -> None:
        self._totals = totals
        self._turn = turn
        self._port = port
        totals.turns.add(turn)

    async def ask(self, model: str, tokens: int) -> str:
        """Return why the model may not be called, for the person; empty if it may."""
        person = self._turn.origin.person
        over = self._find_over(person)
        if over and not self._is_final(over):
            over = await self._wait_for_others(person)
        if over and (refusal := await self._decide(over)):
            return refusal
        self._totals.hold(person, tokens, self._totals.find_price(model).usage_of(tokens, 0).cost)
        return ""

    def count(self, usage: Usage, model: str, tokens: int) -> Usage:
        """Count a call and its usage. Returns the usage with its cost."""
        price = self._totals.find_price(model)
        self._totals.hold(self._turn.origin.person, -tokens, -price.usage_of(tokens, 0).cost)
        if not usage.calls:
            return usage
        if usage.estimated:
            priced = price.usage_of(usage.input_tokens, usage.output_tokens)
            usage = replace(usage, cost=priced.cost, unpriced=priced.unpriced)
        day, _ = self._totals.windows()
        call = RecordedCall(day=day, row=self._turn.make_row(usage), at=time.time(), id=uuid.uuid4().hex)
        self._totals.count(call)
        near = self._totals.take_warnings(self._turn.origin.person)
        said = [put for one in near for put in self._warn(one, call.id)]
        self._turn.add(replace(call, warned=tuple(one.mark for one in near)), *said)
        return usage

    def _find_over(self, person: str) -> BudgetState | None:
        """Find the limit that this call exceeds, including the held usage of running calls."""
        found = [one for one in self._totals.list_budgets(person, held=True) if one.is_exceeded]
        return next((one for one in found if one.is_used_up), found[0] if found else None)

    def _is_final(self, over: BudgetState) -> bool:
        """Return True if waiting for the running calls is useless or unnecessary."""
        return over.is_used_up or self._port.role == "owner"

    async def _wait_for_others(self, person: str) -> BudgetState | None:
        """Find the limit that this call still exceeds after other calls have ended, which may leave enough."""
        over = None
        with anyio.move_on_after(HELD_SECONDS):
            while (over := self._find_over(person)) and not self._is_final(over):
                await self._totals.wait_released()
        return over

    async def _decide(self, over: BudgetState) -> str:
        """Let owners go on; a hook may allow the call once for anyone, or refuse it in other words."""
        words = STOPPED if over.is_used_up else HELD
        again = describe_end(over.window, self._totals.today())
        text = words.format(used=over.describe(), held=over.describe_held(), again=again)
        is_owner = self._port.role == "owner"
        person = self._turn.origin.person
        event = await self._port.run("budget:exceeded", **over.as_fields(), person=person, allowed=is_owner, text=text)
        if (refusal := find_refusal(event.outcome, text)) is not None:
            return refusal
        return "" if event["allowed"] else str(event["text"]) or text

    def _warn(self, near: BudgetState, call_id: str) -> list[NewRecord]:
        """Notify hooks, and the people who can act on it, once in a day or month.

        The replies are named by the call: if two gateways find the same at the same moment, neither's turn fails.
        """
        self._port.emit("budget:warning", **near.as_fields(), person=self._turn.origin.person)
        is_all = near.budget == "all"
        places = self._port.list_admins() if is_all else [self._port.place]
        words = ALL_WARNED if is_all else OWNER_WARNED if self._port.role == "owner" else WARNED
        text = words.format(used=near.describe(), again=describe_end(near.window, self._totals.today()))
        text = f"{text[:1].upper()}{text[1:]}"
        replies = [Reply(f"budget:{near.mark}:{call_id}:{n}", place, text) for n, place in enumerate(places) if place]
        key = "" if is_all else self._port.session_key  # a terminal hears only what is said in its session
        puts = [make_reply_put(reply, key, "", time.time()) for reply in replies]
        return [NewRecord(put.subject, put.data, reply.id) for put, reply in zip(puts, replies, strict=True)]
