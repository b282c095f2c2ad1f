"""The events of messages, replies and turns: their fields, and the effect of hooks."""

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gateway.agent.operation import error_as_fields
from gateway.dispatcher.attachments import ReplyFiles, attach_allowed, find_hooks_by_file
from gateway.engine.interface import NewRecord
from gateway.errors import AgentError
from gateway.events import Event
from gateway.events.fields import SHORT_LENGTH
from gateway.events.outcomes import find_end, find_refusal, find_reply
from gateway.hooks import HookRegistry
from gateway.hooks.cause import use_cause
from gateway.hooks.field_watcher import FieldChange
from gateway.hooks.recorder import OwedEvents, Recorder
from gateway.hooks.scope import HookScope
from gateway.hooks.withheld_codes import cut_codes, restore_codes
from gateway.lanes.turn import LaneResult, LaneTurn, TurnStart
from gateway.messages.authors import find_hook
from gateway.messages.files import find_reply_files
from gateway.messages.message import Attachment, HeardWords, Message, Reply
from gateway.messages.pieces import list_heard
from gateway.messages.roles import Role, pick_low_role, scope_of
from gateway.messages.steps import TurnStatus
from gateway.messages.transcript import Usage
from gateway.outbox.interface import DeliveryCallbacks, DeliveryReport, ReplyWithheld
from gateway.records import records
from gateway.sessions.session import SENDING, Session

log = logging.getLogger(__name__)

REFUSED = "This was refused."
FireEvent: TypeAlias = Callable[..., None]  # `HookScope.emit` or `HookScope.note`
WriteDecisions: TypeAlias = Callable[[str, str, OwedEvents], Awaitable[None]]
"""Write the decisions of hooks about a reply to the conversation with this key, for the turn with this id."""


def build_turn_fields(turn: LaneTurn | TurnStart, message: Message, role: Role, agent: str) -> dict[str, Any]:
    """Return the fields of every event of a turn."""
    fields = build_place_fields(message, role, turn.session)
    fields |= {"turn_id": turn.turn_id, "agent": agent}
    return fields | ({"resumed": True} if turn.resumed else {})


def build_failed_fields(
    given_up: TurnStart, message: Message, model: str, redact: Callable[[str], str]
) -> dict[str, Any]:
    """Return the fields of `agent:end` for a turn that was cancelled after all its tries."""
    return {
        "message": message.text[:SHORT_LENGTH],
        "message_full": message.text,
        "response": given_up.apology[:SHORT_LENGTH],
        "response_full": given_up.apology,
        "error": error_as_fields(AgentError(given_up.error), redact),
        "stop": "failed",
        "hook_ended": "",
        "model": model,
        "usage": msgspec.structs.asdict(Usage()),
        "completed": False,
        "interrupted": False,
    }


def find_files(files: Path, message: Message, session: Session) -> Path:
    """Return the folder of a conversation's files. A hook's text in a session belongs to the session's person."""
    is_hook = find_hook(message.user_id) and session.user_id
    return message.address.find_folder(files, session.user_id if is_hook else message.user_id)


def build_place_fields(message: Message, role: Role, session: Session) -> dict[str, Any]:
    """Return the fields about the person, the chat and the session."""
    at = message.address
    return {
        "platform": at.platform,
        "account": at.account,
        "user_id": message.user_id,
        "user_name": message.user_name,
        "person": message.payer,
        "scope": scope_of(role),
        "role": role,
        "chat_id": at.chat_id,
        "chat_name": str(message.extra.get("chat_name") or ""),
        "thread_id": at.thread_id,
        "chat_type": at.chat_type,
        "message_id": message.id,
        "session_id": session.session_id,
        "session_key": session.key,
    }


def build_received_fields(message: Message) -> dict[str, Any]:
    """Return the fields of `message:received`, beside the fields of every event of the turn."""
    return {
        "user_name": message.user_name,
        "message_id": message.id,
        "text": message.text,
        "text_before": message.text_before,
        "attachments": [dataclasses.asdict(one) for one in message.attachments],
        "parts": list(msgspec.to_builtins(message.parts)),
        "reply_to": message.reply_to,
        "sent_at": message.sent_at,
        "extra": message.extra,
        "heard": [
            {"message_id": one.id, "user_id": one.user_id, "user_name": one.user_name, "text": one.text}
            for one in message.heard
        ],
    }


def keep_heard(message: Message, left: Any) -> tuple[HeardWords, ...]:
    """Return the overheard messages as the hooks left them: hooks may remove messages and change words, not authors.

    An invalid value drops all overheard messages: the hook may have wanted to remove something.
    """
    rows = [one for one in left if isinstance(one, Mapping)] if isinstance(left, list | tuple) else []
    texts = {str(one.get("message_id")): str(one.get("text") or "") for one in rows}
    return tuple(dataclasses.replace(one, text=texts[one.id]) for one in message.heard if texts.get(one.id))


def build_started_fields(session: Session) -> dict[str, Any]:
    """Return the fields of `session:start`."""
    return {
        "platform": session.platform,
        "user_id": session.user_id,
        "session_id": session.session_id,
        "session_key": session.key,
    }


def build_ended_fields(session: Session) -> dict[str, Any]:
    """Return the fields of `session:end` and `session:reset`, for the session that `session` replaces."""
    return build_started_fields(session) | {
        "session_id": session.replaced_id,
        "new_session_id": session.session_id,
        "reason": session.reason,
    }


def join_messages(messages: Sequence[Message]) -> Message:
    """Join the messages of one turn: the texts in order, all attachments, and the chat of the last message."""
    if len(messages) == 1:
        return messages[0]
    roles = [message.role for message in messages if message.role]
    return dataclasses.replace(
        messages[-1],
        role=pick_low_role(*roles) if roles else "",
        text="\n\n".join(message.text for message in messages if message.text),
        attachments=tuple(one for message in messages for one in message.attachments),
        parts=tuple(one for message in messages for one in message.parts),
        heard=list_heard(messages),
    )


class HookedMessages(msgspec.Struct, frozen=True):
    """The messages of one turn, as the hooks left them.

    The messages that a hook answered or denied get `replies`. The turn answers all other messages (`left`) together, as
    if the answered ones did not exist. `status` is the turn's status if no message is left. `changed_by` maps the id of
    a message to the last hook that changed its text.
    """

    left: tuple[Message, ...]
    replies: tuple[Reply, ...]
    status: TurnStatus
    changed_by: Mapping[str, str]

    def prepend_to(self, result: LaneResult) -> LaneResult:
        """Put the hooks' replies before the turn's own. A turn that waits gets none: its hooks will run again."""
        return result if result.questions else msgspec.structs.replace(result, replies=(*self.replies, *result.replies))


async def run_received_hooks(turn: LaneTurn, view: HookScope) -> HookedMessages:
    """Fire `message:received` for each message separately, in order, before the turn.

    Raises:
        Pause: a hook asks the person first.
    """
    left: list[Message] = []
    replies: list[Reply] = []
    status: TurnStatus = "denied"
    changed_by: dict[str, str] = {}
    for message in turn.messages:
        if not view.wants("message:received"):
            left.append(message)
            continue
        event, changes = await view.run_watched("message:received", ("text",), **build_received_fields(message))
        text = find_reply(event.outcome, REFUSED)
        if find_end(event.outcome):
            status = "ended"
        if text is None:
            heard, is_as_said = keep_heard(message, event["heard"]), event["text"] == message.text
            if not is_as_said:
                changed_by[message.id] = changes[-1].hook
            is_same = is_as_said and heard == message.heard
            left.append(message if is_same else dataclasses.replace(message, text=event["text"], heard=heard))
        elif text:
            replies.append(Reply(f"{turn.turn_id}:{message.id}", message.address, text, reply_to=message.id))
    return HookedMessages(tuple(left), tuple(replies), status, changed_by)


@dataclasses.dataclass(frozen=True, eq=False)
class ReplyHooks(DeliveryCallbacks):
    """The outbox's view of the hooks: `prepare` lets them change or withhold a reply, `sent` and `failed` notify them.

    `refuse_unshown` handles a failed delivery: a person who has not seen a question cannot approve. When the text of a
    voice answer has arrived, `owe_voice` returns the records that make the audio pending.
    """

    registry: HookRegistry
    files: ReplyFiles
    is_withdrawn: Callable[[Reply], Awaitable[bool]]
    write_decisions: WriteDecisions
    redact: Callable[[str], str] = str
    refuse_unshown: Callable[[records.OwedReply], None] = lambda _owed: None
    owe_voice: Callable[[DeliveryReport], list[NewRecord]] = lambda _delivery: []

    async def prepare(self, outbound: records.OwedReply) -> Reply:
        """Return the reply as its interceptors left it.

        Raises:
            ReplyWithheld: an interceptor denied the reply, or the question in the reply needs no answer any more.
        """
        if outbound.reply.buttons and await self.is_withdrawn(outbound.reply):
            raise ReplyWithheld("the question is settled")
        outbound = msgspec.structs.replace(outbound, reply=await find_reply_files(self.files.shared, outbound.reply))
        if outbound.reply.is_empty or not self.registry.wants(SENDING):
            return outbound.reply
        codes = tuple({*outbound.reply.codes, *self.registry.withheld.find(outbound.reply.text)})
        outbound = msgspec.structs.replace(outbound, reply=dataclasses.replace(outbound.reply, codes=codes))
        event, changes = await self._ask(outbound)
        if (refusal := find_refusal(event.outcome, "a hook denied it")) is not None:
            raise ReplyWithheld(refusal)
        text = restore_codes(str(event["text"]), outbound.reply.text, codes)
        if outbound.reply.literals and text != outbound.reply.text:
            log.warning("a hook at message:sending changed a question; it is shown as it was put")
            text = outbound.reply.text
        wanted = msgspec.convert(event["attachments"], tuple[Attachment, ...])
        reply = dataclasses.replace(outbound.reply, text=text)
        if wanted == reply.attachments:
            return reply
        placed = find_hooks_by_file(reply.attachments, changes)
        files = {hook: await self.files.find_files(outbound, hook) for hook in set(placed.values())}
        return await attach_allowed(reply, wanted, lambda one: files[placed[one]].resolve)

    async def _ask(self, outbound: records.OwedReply) -> tuple[Event, Sequence[FieldChange]]:
        """Fire `message:sending`, and record pending events and decisions before the network gets the reply."""
        fields, is_of_turn = build_reply_fields(outbound, outbound.reply), outbound.session_key and outbound.turn_id
        owed = OwedEvents() if is_of_turn else None
        if is_of_turn:
            fields["id"] = f"{outbound.reply.id}/{SENDING}"
        with use_cause(outbound.cause):
            view = self.registry.scope({}, answers={}, owed=owed)
            event, changes = await view.run_watched(SENDING, ("attachments",), **fields)
        if owed is not None:
            await self.write_decisions(outbound.session_key, outbound.turn_id, owed)
        else:
            await self.registry.recorders.settled()
        return event, changes

    def leaves(self, outbound: records.OwedReply) -> bool:
        reply = outbound.reply
        needs_more = reply.buttons or reply.attachments or reply.is_spoken
        return not needs_more and (reply.is_empty or not any(hook.intercepts for hook in self.registry.at(SENDING)))

    def owe(self, delivery: DeliveryReport) -> list[NewRecord]:
        owed = OwedEvents()
        self._fire(delivery, filter(self.registry.recorders.want, _events_of(delivery)), HookScope.note, owed)
        key = delivery.outbound.session_key
        events = [records.make_owed_event_put(event.name, event.data, key) for event in owed.waiting]
        return [*events, *self.owe_voice(delivery)] if delivery.reply.is_spoken else events

    def failed(self, delivery: DeliveryReport) -> None:
        self.refuse_unshown(delivery.outbound)
        self.sent(delivery)

    def sent(self, delivery: DeliveryReport) -> None:
        """Notify all hooks but the durable hooks: the record of the delivery's end already contains their events."""
        at = self.registry.at
        names = [name for name in _events_of(delivery) if any(not isinstance(hook, Recorder) for hook in at(name))]
        self._fire(delivery, names, HookScope.emit, OwedEvents(f"{delivery.reply.id}/{name}" for name in names))

    def _fire(self, delivery: DeliveryReport, names: Iterable[str], fire: FireEvent, owed: OwedEvents) -> None:
        for name in names:
            fields = build_reply_fields(delivery.outbound, delivery.reply) | {"id": f"{delivery.reply.id}/{name}"}
            if delivery.error:
                fields |= {"attempts": delivery.attempts, "error": self.redact(delivery.error)}
            elif name != SENDING:
                ids = [one for part in delivery.message_ids for one in part]
                fields |= {"attempts": delivery.attempts, "message_ids": ids}
            with use_cause(delivery.outbound.cause):
                fire(self.registry.scope({}, owed=owed), name, **fields)


def _events_of(delivery: DeliveryReport) -> tuple[str, ...]:
    """Return the events at the end of a delivery, among them `message:sending` if it was not fired earlier."""
    if delivery.outbound.reply.is_empty:
        return ()
    if delivery.error:
        return ("message:failed",)
    return (SENDING, "message:sent") if delivery.is_at_once else ("message:sent",)


def build_reply_fields(outbound: records.OwedReply, reply: Reply) -> dict[str, Any]:
    at = reply.address
    return {
        "platform": at.platform,
        "account": at.account,
        "chat_id": at.chat_id,
        "thread_id": at.thread_id,
        "session_id": "",
        "session_key": outbound.session_key,
        "turn_id": outbound.turn_id,
        "text": cut_codes(reply.text, reply.codes),
        "attachments": [dataclasses.asdict(one) for one in reply.attachments],
        "role": reply.role or "guest",
    }
