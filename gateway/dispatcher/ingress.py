"""Takes messages from every network: access first, then the journal; only then may the network forget the message.

Access is asked once here, for whatever a person does: a text, a command, a press of a button, a reaction. What costs
something (fetching files, moving a cursor) is done by `complete`, which is called for those alone who may speak.
"""

import dataclasses
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import TypeAlias

import anyio
import anyio.abc

from gateway.dispatcher import pairing_commands
from gateway.dispatcher.approval_requests import ApprovalRequests
from gateway.dispatcher.chat_commands import (
    CommandCall,
    describe_answer,
    find_command,
    run_command,
    write_activity,
)
from gateway.dispatcher.commands import Command, parse_command
from gateway.dispatcher.context import OWN_PLATFORMS, DispatcherContext
from gateway.dispatcher.message_events import build_place_fields, build_received_fields, outcome_text_of
from gateway.dispatcher.message_pace import WAITS, MessagePace
from gateway.dispatcher.question_places import QUESTION_SIGN
from gateway.dispatcher.question_rights import as_answer, find_rights, is_approval
from gateway.engine.interface import NewRecord
from gateway.errors import EngineError, EngineTooNew, RecordDamage
from gateway.events import YES_WORDS, Deny, End
from gateway.lanes.context import DAMAGED
from gateway.lanes.edits import is_edit_of_open
from gateway.lanes.heard import make_heard_put
from gateway.lanes.lanes import Lanes, message_id_of
from gateway.messages.message import Button, Message, Receipt, Reply
from gateway.messages.pieces import SAID_KINDS, list_shown_messages, name_of
from gateway.records.records import ActivityRecord, ApprovalRequest
from gateway.roles import Role, is_admin
from gateway.sessions.keys import session_key_of
from gateway.sessions.session import Session

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
NOT_YOURS = "That question is for somebody else to decide."
FORBIDDEN = ActivityRecord(what="approvals.answer", outcome="refused")
NO_WORDS = frozenset({"n", "no", "deny"})

CompleteMessage: TypeAlias = Callable[[Message], Awaitable[tuple[Message, Sequence[NewRecord]]]]
"""Gives the message with its files, and the records (a cursor) that are to be journalled with it."""


class Ingress:
    """Takes messages. What must act at once acts here; all else waits in its session's lane."""

    def __init__(
        self, context: DispatcherContext, lanes: Lanes, approvals: ApprovalRequests, tasks: anyio.abc.TaskGroup
    ) -> None:
        self.arriving: dict[int, Message] = {}  # of those who may speak, and wait from now on
        self._context = context
        self._lanes = lanes
        self._approvals = approvals
        self._pace = MessagePace(context, tasks, self._say)

    async def receive(
        self,
        message: Message,
        *extra: NewRecord,
        bot: str = "",
        asked: str = "",
        complete: CompleteMessage | None = None,
    ) -> Receipt:
        """Take a message; when this returns, it is either settled or in the journal (with `extra`, a cursor).

        `asked` is the id of the person under whose question a button was pressed, where that is not everybody in the
        chat. An admin who presses in somebody's stead answers in the session of whoever was asked; others may not. The
        answer to an approval goes to the session that waits for it, wherever it was given.

        Raises:
            Conflict: a record of `extra` came too late.
            EngineError: the journal takes nothing now; the network must keep the message.
        """
        if message.address.platform not in OWN_PLATFORMS and message.kind != "internal":
            self._context.engine.clock.learn(message.sent_at)  # what a network says with a message is its own time
        role = self._context.access.find_role(message)
        if message.is_overheard:
            return await self._hear(message, complete, is_known=role is not None)
        async with self._holding(message, is_known=role is not None):
            if role is None:
                return await self._turn_away(message)
            receipt = await self._take(message, role, *extra, bot=bot, asked=asked, complete=complete)
            if receipt.decision == "forbidden":
                await write_activity(self._context, message, FORBIDDEN)
            return receipt

    async def _hear(self, message: Message, complete: CompleteMessage | None, *, is_known: bool) -> Receipt:
        """What was said to others: nobody is answered, and of a stranger's nothing is kept."""
        if not is_known:
            return Receipt("", settled="", decision="stranger")
        if complete:
            message, _ = await complete(message)
        self._context.heard.add(message)
        return Receipt("", settled="", decision="settled")

    @asynccontextmanager
    async def _holding(self, message: Message, *, is_known: bool) -> AsyncIterator[None]:
        """A message that an ill journal does not take is held until it is well, and then given back to its network.

        So the line to that stays up, on which people are told.
        """
        if is_known:
            self.arriving[id(message)] = message
        try:
            yield
        except EngineError:
            while self._context.engine.failure():  # noqa: ASYNC110 - it tells nobody
                await anyio.sleep(LOOK_SECONDS)
            raise
        finally:
            self.arriving.pop(id(message), None)

    async def _take(
        self, message: Message, role: Role, *extra: NewRecord, bot: str, asked: str, complete: CompleteMessage | None
    ) -> Receipt:
        """Take what somebody does who may speak."""
        if message.kind == "edit":  # it may have been said to others before, in other words
            await self._context.heard.delete(name_of(message), message.sender)
        try:
            request = await self._find_request(message)
        except EngineTooNew:
            request = None
        if request:
            message = dataclasses.replace(message, session=request.session_key)
        elif asked and asked != message.user_id:
            if not is_admin(role):
                return Receipt("", settled=NOT_YOURS, decision="forbidden")
            theirs = session_key_of(dataclasses.replace(message, user_id=asked), self._context.keys)
            message = dataclasses.replace(message, session=theirs)
        key = session_key_of(message, self._context.keys)
        paced = self._pace.apply(message, role)
        if paced is None:
            return await self._pace.refuse(key, message)
        message = paced
        if message.kind == "reaction":
            self._emit_reactions(message, role)
            await self._context.registry.recorders.settled()  # the network is told that we have it
            return Receipt(key, settled="", decision="settled")
        if complete:
            message, more = await complete(message)
            extra = (*extra, *more)
        receipt = await self._accept_readable(key, message, role, request, *extra, bot=bot)
        return dataclasses.replace(receipt, is_closed=True) if request and receipt.decision == "settled" else receipt

    async def _accept_readable(
        self, key: str, message: Message, role: Role, request: ApprovalRequest | None, *extra: NewRecord, bot: str
    ) -> Receipt:
        """The same as `_accept`, also where the conversation cannot be read here."""
        try:
            return await self._accept(key, message, role, request, *extra, bot=bot)
        except RecordDamage as damage:
            log.error("what is kept of %s cannot be read, and %s is not answered: %s", key, message.id, damage)
            await self._say(key, message, DAMAGED)
            return Receipt(key, settled=DAMAGED, decision="settled")
        except EngineTooNew:  # whoever works on the conversation sees to it
            return Receipt(key, await self._lanes.accept(message, key, *extra, bot=bot) or 0)

    async def _find_request(self, message: Message) -> ApprovalRequest | None:
        """The approval that this answers: the one whose mark it carries, to which it replies, or that its chat shows.

        A text without any of these is one for the conversation, even where it says yes.
        """
        typed, said = parse_command(message.text), message.text.strip().lower()
        if typed and typed.word in ("approve", "deny"):
            if mark := typed.args.partition(QUESTION_SIGN)[2]:
                return await self._approvals.find(mark)
            here = await self._context.sessions.open(session_key_of(message, self._context.keys))
            found = [] if here.is_waiting else await self._approvals.find_shown(message)
            return found[0] if len(found) == 1 else None
        if message.reply_to and said in YES_WORDS | NO_WORDS:
            return next(iter(await self._approvals.find_shown(message)), None)
        return None

    async def _accept(
        self, key: str, message: Message, role: Role, request: ApprovalRequest | None, *extra: NewRecord, bot: str
    ) -> Receipt:
        """Settle what must act at once; leave the rest to the session's lane."""
        session = await self._context.sessions.open(key)
        if message.kind in SAID_KINDS and name_of(message) in session.deleted:  # and the network brings it once more
            return Receipt(key)
        typed = parse_command(message.text)
        command = find_command(self._context, typed.word, role) if typed else None
        is_answer = session.is_waiting and not await is_edit_of_open(self._context.engine, message, session)
        if session.turn and is_answer and (command is None or command.answers):
            rights = await find_rights(self._context, session, message, role)
            if command is None:
                meant = [
                    name
                    for name in rights.names
                    if (request and name == request.name) or rights.is_own or not is_approval(session.turn, name)
                ]
                if meant:
                    name = request.name if request and request.name in meant else meant[0]
                    answer = as_answer(session.turn, name, message.text, is_own=rights.is_own)
                    return await self._take_answer(session, name, answer, message, *extra, bot=bot)
            elif not rights.names:
                if message.kind != "button":  # who pressed one is told by the platform, and nobody else
                    await self._say(key, message, NOT_YOURS)
                return Receipt(key, settled=NOT_YOURS, decision="forbidden")
        if request and command is None:  # nothing but an answer goes into the session of somebody else
            await self._say(key, message, NOT_YOURS)
            return Receipt(key, settled=NOT_YOURS, decision="forbidden")
        if typed and command and command.urgent and (command.answers or not message.due):
            call = CommandCall(typed, message, role, session, self._context, self._lanes)
            return await self._settle(call, command)
        heard = self._list_heard(message, session)
        message = dataclasses.replace(message, has_heard=True) if heard else message
        told = [make_heard_put(one, key, message) for one in heard]
        seq = await self._lanes.accept(message, key, *extra, bot=bot, told=told)
        if seq and message.due:
            await self._pace.warn(key, message, WAITS)
        return Receipt(key, seq or 0)

    def _list_heard(self, message: Message, session: Session) -> list[Message]:
        """What was said to others before it in a quiet chat: by people who still may speak, and news to the session."""
        if message.kind not in ("text", "edit") or not self._context.chats.is_heard(message.address):
            return []
        told = list_shown_messages(chain(*session.pieces)) | {*session.deleted}
        found = self._context.heard.list_before(message)
        return [one for one in found if name_of(one) not in told and self._context.access.find_role(one) is not None]

    async def _settle(self, call: CommandCall, command: Command) -> Receipt:
        """An urgent command, here and now."""
        view = self._context.registry.scope(
            build_place_fields(call.message, call.role, call.session) | {"turn_id": "", "agent": ""},
            session_bag=dict(call.session.bag),
            answers=None,
        )
        event = await view.run("message:received", **build_received_fields(call.message))
        if isinstance(event.outcome, Deny | End):
            return Receipt(call.session.key, settled=outcome_text_of(event), decision="settled")
        ran = await run_command(call, command, view)
        await self._say(call.session.key, call.message, ran.text, ran.buttons, ran.codes)
        await self._context.registry.recorders.settled()
        return Receipt(call.session.key, settled=ran.text, decision="settled")

    async def _take_answer(
        self, session: Session, name: str, answer: str, message: Message, *extra: NewRecord, bot: str
    ) -> Receipt:
        assert session.turn
        by = f"{message.address.platform}:{message.user_id}"
        # Under the id that it would have in its lane: delivered again, it is neither a second answer nor a message.
        msg_id = message_id_of(message, bot)
        taken = await self._lanes.answer(
            session.key, name, answer, by, *extra, by_name=message.user_name, msg_id=msg_id
        )
        if not taken:
            return Receipt(session.key, await self._lanes.accept(message, session.key, *extra, bot=bot) or 0)
        if is_approval(session.turn, name):
            await write_activity(self._context, message, describe_answer(session, name, answer))
        return Receipt(session.key, session.turn.on)

    async def _say(
        self, key: str, message: Message, text: str, buttons: tuple[Button, ...] = (), codes: tuple[str, ...] = ()
    ) -> None:
        """Post a text that belongs to no turn."""
        if text:
            reply = Reply(uuid.uuid4().hex, message.address, text, reply_to=message.id, buttons=buttons, codes=codes)
            await self._context.outbox.post(reply, key)

    def _emit_reactions(self, message: Message, role: Role) -> None:
        """`reaction:added` and `reaction:removed`, for the message that this one replies to."""
        for name in ("added", "removed"):
            for reaction in sorted(message.extra.get(name, ())):
                self._context.registry.emit(
                    f"reaction:{name}",
                    platform=message.address.platform,
                    account=message.address.account,
                    user_id=message.user_id,
                    chat_id=message.address.chat_id,
                    role=role,
                    message_id=message.reply_to,
                    reaction=reaction,
                )

    async def _turn_away(self, message: Message) -> Receipt:
        at = message.address
        said, is_let_in = await pairing_commands.use_invitation(self._context, message, None)
        if is_let_in:
            await self._say("", message, said)
            return Receipt("", settled=said, decision="settled")
        why = await pairing_commands.refuse_stranger(self._context, message, said)
        log.info("%s user %s may not speak here: %s", at.served_as, message.user_id, why)
        self._context.registry.emit(
            "access:denied",
            platform=at.platform,
            account=at.account,
            user_id=message.user_id,
            chat_id=at.chat_id,
            role="guest",  # nobody is less
            reason=why,
        )
        await self._context.registry.recorders.settled()
        return Receipt("", settled="", decision="stranger")
