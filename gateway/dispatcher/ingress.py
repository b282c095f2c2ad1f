"""The intake of messages: it checks access, and writes to the journal before the network may forget the message.

The intake checks access once for everything that a person does: a text, a command, a press of a button, a reaction.
Costly work (fetching files, moving a cursor) is in `complete`, which the intake calls only for authorized people.
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

from gateway.chats.heard_messages import HeardMessages
from gateway.dispatcher import pairing_commands
from gateway.dispatcher.chat_commands import (
    CommandCall,
    describe_answer,
    find_command,
    run_command,
    write_activity,
)
from gateway.dispatcher.commands import Command, parse_command
from gateway.dispatcher.context import OWN_PLATFORMS, DispatcherContext
from gateway.dispatcher.message_events import REFUSED, build_place_fields, build_received_fields
from gateway.dispatcher.message_pace import WAITS, MessagePace
from gateway.engine.interface import NewRecord
from gateway.errors import EngineError, EngineTooNew, RecordDamage
from gateway.events.outcomes import find_reply
from gateway.lanes.context import DAMAGED
from gateway.lanes.edits import is_edit_of_open
from gateway.lanes.heard import make_heard_put
from gateway.lanes.lanes import Lanes, message_id_of
from gateway.messages.message import Button, Message, Receipt, Reply
from gateway.messages.pieces import SAID_KINDS, list_shown_messages, name_of
from gateway.messages.roles import Role, is_admin
from gateway.questions.approval_requests import ApprovalRequests
from gateway.questions.places import QUESTION_SIGN
from gateway.questions.rights import ANSWER_WORDS, as_answer, find_rights, is_approval
from gateway.records.names import KnownNames
from gateway.records.records import ActivityRecord, ApprovalRequest
from gateway.sessions.keys import session_key_of
from gateway.sessions.session import Session

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
NOT_YOURS = "That question is for another person to decide."
FORBIDDEN = ActivityRecord(what="approvals.answer", outcome="refused")

CompleteMessage: TypeAlias = Callable[[Message], Awaitable[tuple[Message, Sequence[NewRecord]]]]
"""Return the message with its files, and the records (such as a cursor) that go into the same append."""


class Ingress:
    """The intake of messages. It handles urgent messages itself; all others wait in their session's lane."""

    def __init__(
        self,
        context: DispatcherContext,
        lanes: Lanes,
        approvals: ApprovalRequests,
        tasks: anyio.abc.TaskGroup,
        heard: HeardMessages,
        names: KnownNames,
    ) -> None:
        self.arriving: dict[int, Message] = {}  # authorized people wait for an answer to these
        self._context = context
        self._lanes = lanes
        self._approvals = approvals
        self._heard = heard
        self._names = names
        self._pace = MessagePace(context, tasks, self._say)

    async def receive(
        self,
        message: Message,
        *extra: NewRecord,
        bot: str = "",
        asked: str = "",
        complete: CompleteMessage | None = None,
    ) -> Receipt:
        """Take a message: settle it, or write it to the journal together with `extra`, such as a cursor.

        `asked` is the id of the person whose question has the pressed button; it is empty if the question is for
        everyone in the chat. An admin who presses that button answers in the person's session; no one else may. An
        answer to an approval request goes to the session that waits for it, whichever chat the answer comes from.

        Raises:
            Conflict: a record of `extra` came too late.
            EngineError: the journal takes no appends; the network must keep the message.
        """
        if message.address.platform not in OWN_PLATFORMS and message.kind != "internal":
            self._context.engine.clock.learn(message.sent_at)  # the time in a network's message is the network's own
        role = self._context.access.find_role(message)
        if message.is_overheard:
            return await self._hear(message, complete, role)
        async with self._holding(message, is_known=role is not None):
            if role is None:
                return await self._turn_away(message)
            receipt = await self._take(message, role, *extra, bot=bot, asked=asked, complete=complete)
            if receipt.decision == "forbidden":
                await write_activity(self._context, message, FORBIDDEN)
            return receipt

    async def _hear(self, message: Message, complete: CompleteMessage | None, role: Role | None) -> Receipt:
        """Remember a message between other people, without an answer; a stranger's message is not kept."""
        if role is None:
            return Receipt("", settled="", decision="stranger")
        if complete:
            message, _ = await complete(message)
        if message.user_name:
            self._names.note(message, role)
        self._heard.add(message)
        return Receipt("", settled="", decision="settled")

    @asynccontextmanager
    async def _holding(self, message: Message, *, is_known: bool) -> AsyncIterator[None]:
        """Hold a message while the journal fails, and then raise the error: the network keeps the message.

        Until then the connection to the network stays up, so that the gateway can notify people there.
        """
        if is_known:
            self.arriving[id(message)] = message
        try:
            yield
        except EngineError:
            while self._context.engine.failure():  # noqa: ASYNC110 - the engine sends no signal
                await anyio.sleep(LOOK_SECONDS)
            raise
        finally:
            self.arriving.pop(id(message), None)

    async def _take(
        self, message: Message, role: Role, *extra: NewRecord, bot: str, asked: str, complete: CompleteMessage | None
    ) -> Receipt:
        """Take the message of an authorized person."""
        if message.kind == "edit":  # the earlier words of the message may have been overheard
            await self._heard.delete(name_of(message), message.sender)
        try:
            request = await self._find_request(message)
        except EngineTooNew:
            request = None
        if request:
            message = dataclasses.replace(message, session=request.session_key)
        elif asked and asked != message.user_id:
            if not is_admin(role):
                return Receipt("", settled=NOT_YOURS, decision="forbidden")
            theirs = session_key_of(dataclasses.replace(message, user_id=asked), self._context.settings.keys)
            message = dataclasses.replace(message, session=theirs)
        key = session_key_of(message, self._context.settings.keys)
        paced = self._pace.apply(message, role)
        if paced is None:
            return await self._pace.refuse(key, message)
        message = paced
        if message.kind == "reaction":
            self._emit_reactions(message, role)
            await self._context.registry.recorders.settled()  # only then tell the network that we have it
            return Receipt(key, settled="", decision="settled")
        if complete:
            message, more = await complete(message)
            extra = (*extra, *more)
        if message.user_name:
            self._names.note(message, role)
        receipt = await self._accept_readable(key, message, role, request, *extra, bot=bot)
        return dataclasses.replace(receipt, is_closed=True) if request and receipt.decision == "settled" else receipt

    async def _accept_readable(
        self, key: str, message: Message, role: Role, request: ApprovalRequest | None, *extra: NewRecord, bot: str
    ) -> Receipt:
        """Accept the message; if this gateway cannot read the conversation, notify the sender."""
        try:
            return await self._accept(key, message, role, request, *extra, bot=bot)
        except RecordDamage as damage:
            log.error("what is kept of %s cannot be read, and %s is not answered: %s", key, message.id, damage)
            await self._say(key, message, DAMAGED)
            return Receipt(key, settled=DAMAGED, decision="settled")
        except EngineTooNew:  # a node that can read the conversation handles the message
            return Receipt(key, await self._lanes.accept(message, key, *extra, bot=bot) or 0)

    async def _find_request(self, message: Message) -> ApprovalRequest | None:
        """Return the approval request that the message answers, if it names, replies to or can only mean this request.

        Any other text belongs to the conversation, even a "yes".
        """
        typed, said = parse_command(message.text), message.text.strip().lower()
        if typed and typed.word in ("approve", "deny"):
            if mark := typed.args.partition(QUESTION_SIGN)[2]:
                return await self._approvals.find(mark)
            here = await self._context.sessions.open(session_key_of(message, self._context.settings.keys))
            found = [] if here.is_waiting else await self._approvals.find_shown(message)
            return found[0] if len(found) == 1 else None
        if message.reply_to and said in ANSWER_WORDS:
            return next(iter(await self._approvals.find_shown(message)), None)
        return None

    async def _accept(
        self, key: str, message: Message, role: Role, request: ApprovalRequest | None, *extra: NewRecord, bot: str
    ) -> Receipt:
        """Settle an urgent message; leave the rest to the session's lane."""
        session = await self._context.sessions.open(key)
        if message.kind in SAID_KINDS and name_of(message) in session.deleted:  # a deleted message, delivered again
            return Receipt(key)
        typed = parse_command(message.text)
        command = find_command(self._context, typed.word, role) if typed else None
        is_answer = session.is_waiting and not await is_edit_of_open(self._context.engine, message, session)
        if session.turn and is_answer and (command is None or command.answers):
            rights = await find_rights(self._context.engine, self._context.access, session, message, role)
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
                if message.kind != "button":  # the platform confirms a press to the person who made it
                    await self._say(key, message, NOT_YOURS)
                return Receipt(key, settled=NOT_YOURS, decision="forbidden")
        if request and command is None:  # only an answer goes into another person's session
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
        """List the overheard messages of a quiet chat that are new to the session, and by authorized people."""
        if message.kind not in ("text", "edit") or not self._context.chats.is_heard(message.address):
            return []
        told = list_shown_messages(chain(*session.pieces)) | {*session.deleted}
        found = self._heard.list_before(message)
        return [one for one in found if name_of(one) not in told and self._context.access.find_role(one) is not None]

    async def _settle(self, call: CommandCall, command: Command) -> Receipt:
        """Run an urgent command at once."""
        view = self._context.registry.scope(
            build_place_fields(call.message, call.role, call.session) | {"turn_id": "", "agent": ""},
            session_bag=dict(call.session.bag),
            answers=None,
        )
        event = await view.run("message:received", **build_received_fields(call.message))
        if (text := find_reply(event.outcome, REFUSED)) is not None:
            return Receipt(call.session.key, settled=text, decision="settled")
        ran = await run_command(call, command, view)
        await self._say(call.session.key, call.message, ran.text, ran.buttons, ran.codes)
        await self._context.registry.recorders.settled()
        return Receipt(call.session.key, settled=ran.text, decision="settled")

    async def _take_answer(
        self, session: Session, name: str, answer: str, message: Message, *extra: NewRecord, bot: str
    ) -> Receipt:
        assert session.turn
        # The id is that of a message in a lane: a repeated delivery is neither a second answer nor a message.
        msg_id = message_id_of(message, bot)
        taken = await self._lanes.answer(
            session.key, name, answer, message.sender, *extra, by_name=message.user_name, msg_id=msg_id
        )
        if not taken:
            return Receipt(session.key, await self._lanes.accept(message, session.key, *extra, bot=bot) or 0)
        if is_approval(session.turn, name):
            await write_activity(self._context, message, describe_answer(session, name, answer))
        return Receipt(session.key, session.turn.on)

    async def _say(
        self, key: str, message: Message, text: str, buttons: tuple[Button, ...] = (), codes: tuple[str, ...] = ()
    ) -> None:
        """Send a text that belongs to no turn."""
        if text:
            reply = Reply(uuid.uuid4().hex, message.address, text, reply_to=message.id, buttons=buttons, codes=codes)
            await self._context.outbox.post(reply, key)

    def _emit_reactions(self, message: Message, role: Role) -> None:
        """Fire `reaction:added` and `reaction:removed`, for the message that `message` replies to."""
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
            role="guest",  # no role is lower
            reason=why,
        )
        await self._context.registry.recorders.settled()
        return Receipt("", settled="", decision="stranger")
