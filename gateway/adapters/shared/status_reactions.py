"""The bot's reaction under a person's message: seen, being answered, answered, failed.

Only the last state of a message counts, and one call is made at a time, with a pause behind it: so reactions stay
within a network's rate, however much is written, and states that change too fast are skipped. No answer waits for them,
and their failures harm nothing: a missing right is reported once, and not tried there again.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskStatus

from gateway.adapters.shared.adapter import Presence, ReceiveMessage
from gateway.adapters.shared.incoming import remember
from gateway.chats.rules import FindDisplay
from gateway.dispatcher.turn_signs import MessageState, TurnSign, tail_turn_signs
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError
from gateway.messages.message import Address, Message, Receipt

log = logging.getLogger(__name__)

MOST = 500  # messages whose state is known; reactions cannot keep up with more
MOST_WAITING = 200  # messages whose reaction is to be changed
LONGEST_SILENCE = 60.0
LAST_CALLS = 1.0  # seconds for the reactions that are due at a stop
UNSAID = (
    "reactions under messages are not possible {where}: {why}; to be without them: platforms.{name}.reactions: false"
)

RefusalScope: TypeAlias = Literal["", "chat", "network"]
ChangeReaction: TypeAlias = Callable[[Address, str, str], Awaitable[None]]
"""Adds or removes one emoji of the bot's under a message, by the network's id of it. Raises AdapterError."""


class NetworkReactions(msgspec.Struct, frozen=True):
    """The way of one network to show reactions.

    marks: the emoji of each state. is_replacing: a new reaction of the bot's takes the place of the one before. pause:
    seconds behind each call. scope: for how much an error holds beyond the one message. time_of: when a message was
    sent, by its id; infinity if the id has no time. is_sign: without reactions, this one shows that work goes on.
    """

    marks: Mapping[MessageState, str]
    put: ChangeReaction
    take: ChangeReaction
    pause: float
    scope: Callable[[AdapterError], RefusalScope]
    time_of: Callable[[str], float] = lambda _message: float("inf")
    is_replacing: bool = False
    is_sign: bool = False


class MarkedMessage(msgspec.Struct):
    """A message with its reaction. `shown`: the present emoji; None: an earlier process may have left one."""

    address: Address
    person: str = ""
    shown: str | None = ""
    wanted: MessageState = ""


class StatusReactions(msgspec.Struct, eq=False):
    """The reactions for the messages and turns of one bot."""

    _network: NetworkReactions
    _display: FindDisplay
    _presence: Presence
    _began: float = msgspec.field(default_factory=time.time)
    _known: dict[str, MarkedMessage] = {}
    _of_turn: dict[str, list[str]] = {}
    _waiting: dict[str, None] = {}
    _barred: set[str] = set()
    _is_barred: bool = False
    _news: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def noting(self, receive: ReceiveMessage) -> ReceiveMessage:
        """Wrap the way in, so that taken messages are marked as seen."""

        async def receive_and_note(message: Message, *extra: NewRecord, **how: Any) -> Receipt:
            if message.kind not in ("text", "edit"):
                return await receive(message, *extra, **how)
            number = message.id.partition(":")[0]
            marked = self._known.get(number) or MarkedMessage(
                replace(message.address, account=self._presence.name.partition(":")[2]), message.user_id
            )
            remember(self._known, number, marked, MOST)
            before, marked.wanted = marked.wanted, ""  # its turn may begin, and end, before `receive` returns
            receipt = await receive(message, *extra, **how)
            if receipt.decision == "queued" and receipt.seq:
                self._want(number, marked.wanted or "seen")
            elif before:
                self._want(number, marked.wanted or before)
            elif not marked.wanted:
                self._known.pop(number, None)
            return receipt

        return receive_and_note

    def note_answered(self, address: Address, message_id: str) -> None:
        """Note an answer, and change a reaction that an earlier process left under its message."""
        number = message_id.partition(":")[0]
        if number and number not in self._known and self._network.time_of(number) < self._began:
            remember(self._known, number, MarkedMessage(address, shown=None), MOST)
            self._want(number, "done")

    async def run(self, engine: Engine, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the turns and change reactions, until cancelled. Start it before the first message is received."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, await tail_turn_signs(engine, self._presence.name))
                task_status.started()
                while True:
                    await self._change_waiting(self._network.pause)
                    self._news = anyio.Event()
                    await self._news.wait()
        finally:  # turns that ended as the gateway stopped
            with anyio.move_on_after(LAST_CALLS, shield=True):
                await self._change_waiting(0.0)

    async def _change_waiting(self, pause: float) -> None:
        while self._waiting:
            number = next(iter(self._waiting))
            del self._waiting[number]
            try:
                is_called = await self._change(number)
            except anyio.get_cancelled_exc_class():  # the call may not have reached the network
                self._waiting[number] = None
                raise
            if is_called:
                await anyio.sleep(pause)

    async def _hear(self, signs: AsyncIterator[TurnSign]) -> None:
        async for sign in signs:
            self._note_turn(sign)

    def _note_turn(self, sign: TurnSign) -> None:
        number = sign.message_id.partition(":")[0]
        if number not in self._known and sign.is_resumed:
            remember(self._known, number, MarkedMessage(sign.address, shown=None), MOST)
        answered = self._of_turn.pop(sign.turn_id, None)
        if answered is None:  # the first sign of the turn
            answered = self._list_answered(number)
        if sign.state in ("working", "seen"):  # the turn is not over
            remember(self._of_turn, sign.turn_id, answered, MOST)
        for one in answered:
            self._want(one, sign.state)

    def _list_answered(self, number: str) -> list[str]:
        """List the message, and the unanswered ones of the same person before it in the same place."""
        last, found = self._known.get(number), list[str]()
        if last is None:
            return found
        for name, one in self._known.items():
            if one.wanted == "seen" and (one.address, one.person) == (last.address, last.person):
                found.append(name)
            if name == number:
                break
        return found if number in found else [*found, number]

    def _want(self, number: str, state: MessageState) -> None:
        if (marked := self._known.get(number)) is not None and marked.wanted != state:
            marked.wanted = state
            remember(self._waiting, number, None, MOST_WAITING)
            self._news.set()

    async def _change(self, number: str) -> bool:
        """Change a reaction; return True if the network was called."""
        marked = self._known.get(number)
        if marked is None or self._is_barred or marked.address.chat_id in self._barred:
            return False
        mark = self._find_mark(marked)
        if mark == marked.shown:
            return False
        try:
            await self._make_calls(marked, number, mark)
            marked.shown = mark
        except AdapterError as error:
            log.debug("no reaction in %s: %s", marked.address.chat_id, error)
            self._note_refusal(marked.address, error)
            if error.retry_after:
                await anyio.sleep(min(error.retry_after, LONGEST_SILENCE))
                self._waiting.setdefault(number, None)
        return True

    def _find_mark(self, marked: MarkedMessage) -> str:
        """Return the wanted emoji: with reactions switched off, at most the sign of work in progress."""
        display, network = self._display(marked.address), self._network
        if display.reactions:
            return network.marks[marked.wanted] if marked.wanted else ""
        is_shown = marked.wanted == "working" and display.typing and network.is_sign
        return network.marks["seen"] if is_shown else ""

    async def _make_calls(self, marked: MarkedMessage, number: str, mark: str) -> None:
        """Add the new reaction first, so that one is always there, and remove the old one then."""
        network, before = self._network, marked.shown
        if mark:
            await network.put(marked.address, number, mark)
            marked.shown = mark
        if mark and network.is_replacing:
            return
        if before:
            await network.take(marked.address, number, before)
        elif before is None:
            for one in {network.marks["seen"], network.marks["working"]} - {mark}:
                with suppress(AdapterError):  # mostly it was another one
                    await network.take(marked.address, number, one)

    def _note_refusal(self, address: Address, error: AdapterError) -> None:
        scope = self._network.scope(error)
        if scope == "chat":
            self._barred.add(address.chat_id)
        self._is_barred |= scope == "network"
        if scope:
            where = f"in {address.chat_id}, and perhaps elsewhere" if scope == "chat" else "here"
            if scope == "network" or len(self._barred) == 1:
                self._presence.lack(
                    UNSAID.format(where=where, why=error, name=self._presence.name.replace(":", ".accounts."))
                )
