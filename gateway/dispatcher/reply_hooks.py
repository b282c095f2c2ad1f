"""What hooks see of what is said: before it goes out, and how it went."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from gateway import records
from gateway.dispatcher.attachments import GetWorkspace, attach_allowed
from gateway.events import Deny
from gateway.hooks import HookRegistry
from gateway.messages import Attachment, Reply
from gateway.outbox import DeliveryReport, ReplyWithheld


class ReplyHooks:
    """The outbox's view of the hooks: `prepare` lets them change or withhold, `sent` and `failed` tell them."""

    def __init__(self, registry: HookRegistry, open_to_files: GetWorkspace) -> None:
        self._registry = registry
        self._open = open_to_files

    async def prepare(self, outbound: records.OwedReply) -> Reply:
        """The reply as its interceptors leave it.

        Raises:
            Withheld: one of them denied it.
        """
        if not self._registry.wants("message:sending"):
            return outbound.reply
        event = await self._registry.run("message:sending", **build_reply_fields(outbound, outbound.reply))
        if isinstance(event.outcome, Deny):
            raise ReplyWithheld(event.outcome.text or "a hook denied it")
        wanted = msgspec.convert(event["attachments"], tuple[Attachment, ...])
        return await attach_allowed(dataclasses.replace(outbound.reply, text=str(event["text"])), wanted, self._open())

    def sent(self, delivery: DeliveryReport) -> None:
        ids = [one for part in delivery.message_ids for one in part]
        self._tell("message:sent", delivery, message_ids=ids)

    def failed(self, delivery: DeliveryReport) -> None:
        self._tell("message:failed", delivery, error=delivery.error)

    def _tell(self, name: str, delivery: DeliveryReport, **more: Any) -> None:
        emit: Callable[..., None] = self._registry.emit
        emit(name, **build_reply_fields(delivery.outbound, delivery.reply), attempts=delivery.attempts, **more)


def build_reply_fields(outbound: records.OwedReply, reply: Reply) -> dict[str, Any]:
    at = reply.address
    return {
        "platform": at.platform,
        "chat_id": at.chat_id,
        "thread_id": at.thread_id,
        "session_id": "",
        "session_key": outbound.session_key,
        "turn_id": outbound.turn_id,
        "text": reply.text,
        "attachments": [dataclasses.asdict(one) for one in reply.attachments],
    }
