"""What the outbox needs of a chat network: parts that can be sent, and if the network can, edited and found again."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from gateway.engine.interface import HELD_SECONDS, NewRecord
from gateway.errors import GatewayError
from gateway.messages.message import Address, Reply
from gateway.records import records, subjects

DoubtPolicy: TypeAlias = Literal["none", "resend", "drop", "nonce", "lookup"]
MessageIds: TypeAlias = tuple[tuple[str, ...], ...]
"""The network's own ids of what appeared, for each part of a reply."""


class LiveCapability(msgspec.Struct, frozen=True):
    """What a chat can show of a reply while it is written.

    `can_grow`: a message that was sent can become longer; without that nothing is shown. `can_draft`: what is not whole
    yet can also be shown as a draft, which is no message and passes by itself.
    """

    can_grow: bool = False
    can_draft: bool = False


class Transport(Protocol):
    """A network's sending end. What fails is an `AdapterError`: permanent, or with the network's own `retry_after`.

    `doubt` says what is done about a part of which nobody knows whether it arrived, because the process died in the
    very call: send it again, let it be, send it again under the same nonce (the network knows it), or look for it.
    Where the call does nothing that anybody could see twice there is no doubt (`none`), and no `SendIntent` before it.
    """

    @property
    def platform(self) -> str:
        """The name of the bot that sends: an account of a platform stands beside it as one of its own."""

    @property
    def doubt(self) -> DoubtPolicy: ...

    def capability(self, address: Address) -> LiveCapability:
        """What this chat can show now of a reply while it is written: what a network has refused, it cannot."""

    def parts(self, reply: Reply) -> int:
        """Into how many messages the network splits this reply; the same at every call."""

    def texts(self, reply: Reply) -> int:
        """How many of them are texts: these come first and can be edited, files cannot."""

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Send one part; the network's ids of what appeared. The nonce is the part's own over all attempts."""

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Make what was sent show this part of this reply."""

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None: ...

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        """Looks for a part, and returns the ids if it did arrive; called only where `doubt` is `lookup`."""

    async def draft(self, reply: Reply, part: int) -> bool:
        """Show a part as a draft, in place of the last one; false where the network refuses drafts there."""

    async def begin(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Send a part that will grow; as `send` does."""

    async def find_begun(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        """Looks for a part that was begun, as `find` does for one that was sent."""

    async def grow(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        """Make what was begun show what the part is now.

        `before` is the reply as it stands there; None: nobody knows, as after a crash.
        """

    async def finish(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        """Make what was begun show this part of the reply, and end its growing; the same however often it is done."""

    async def close(self, address: Address, message_ids: tuple[str, ...]) -> None:
        """End the growing of what was begun, as it stands."""


class LiveTransport:
    """How a reply grows where the network has no way of its own: it is sent, and then edited, if `can_edit`."""

    can_edit: bool = False

    def capability(self, _address: Address) -> LiveCapability:
        return LiveCapability(can_grow=self.can_edit)

    async def draft(self, _reply: Reply, _part: int) -> bool:
        return False

    async def begin(self: Transport, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        return await self.send(reply, part, nonce)

    async def find_begun(self: Transport, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        return await self.find(reply, part, nonce)

    async def grow(
        self: Transport, reply: Reply, part: int, message_ids: tuple[str, ...], _before: Reply | None
    ) -> None:
        await self.edit(reply, part, message_ids)

    async def finish(
        self: Transport, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None
    ) -> None:
        if before is None or before.text != reply.text or reply.buttons:
            await self.edit(reply, part, message_ids)

    async def close(self, _address: Address, _message_ids: tuple[str, ...]) -> None:
        """What was sent stands there, and is not growing unless it is edited."""


class JournalTransport(LiveTransport):
    """A sending end without a network: what is journalled is there to be read, so every reply has arrived."""

    doubt: DoubtPolicy = "none"

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def list_shown(self, _reply: Reply) -> list[NewRecord] | None:
        """List the records beside a reply that arrives with its own record; None: each reply is sent."""
        return []

    def texts(self, _reply: Reply) -> int:
        return 1

    def parts(self, _reply: Reply) -> int:
        return 1

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        return (reply.id,)

    async def edit(self, _reply: Reply, _part: int, _message_ids: tuple[str, ...]) -> None:
        """Nothing is shown before it is whole."""

    async def delete(self, _address: Address, _message_ids: tuple[str, ...]) -> None:
        """What was journalled stays."""

    async def find(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        return (reply.id,)


def nonce_of(reply_id: str, part: int) -> str:
    """Returns the name of one part of a reply, the same at every attempt to send it."""
    return subjects.token_of(f"{reply_id}:{part}")


class OutboxSettings(msgspec.Struct, frozen=True):
    """Times in seconds. A place that refused `strikes` replies in a row is tried once in `rarely` seconds.

    A reply is tried for `give_up` seconds while the network is ill. Where other places get theirs meanwhile, the
    network is well: then it is given up after `stubborn` seconds, and those behind it in its place get their turn.
    """

    first_pause: float = 1.0
    longest_pause: float = 300.0
    give_up: float = 86400.0
    stubborn: float = 3600.0
    odd_attempts: int = 5  # of a call that fails in a way no network explains
    strikes: int = 3
    rarely: float = 3600.0
    senders: int = 8  # calls at a time, a platform
    ack_wait: float = HELD_SECONDS
    shutdown: float = 5.0  # what a call that has begun may still take when the gateway stops
    edit_pause: float = 0.8
    stream_after: float = 0.7  # an answer that is whole by then is sent once, and not streamed
    stream_rests: float = 5.0  # after the last word, until what no reply has followed grows no more
    stream_silence: float = 15.0  # a writer that is not heard for so long writes no more
    draft_lasts: float = 20.0  # then it is shown again: networks forget it


class DeliveryReport(msgspec.Struct, frozen=True):
    """How the delivery of a reply ended: `message_ids` of each part, or an error.

    It is given to the listeners once, after it stands in the journal. `is_at_once`: it arrived with its own record.
    """

    outbound: records.OwedReply
    reply: Reply
    message_ids: MessageIds = ()
    attempts: int = 0
    error: str = ""
    is_at_once: bool = False


class ReplyWithheld(GatewayError):
    """Raised by `prepare`: this reply shall not be sent, for this reason."""


class DeliveryCallbacks:
    """Who looks at a reply before it is sent, and who hears how its delivery ended. This one leaves all as it is."""

    async def prepare(self, outbound: records.OwedReply) -> Reply:
        """The reply as it shall be sent. Raises ReplyWithheld when it shall not."""
        return outbound.reply

    def leaves(self, _outbound: records.OwedReply) -> bool:
        """Asks whether `prepare` is sure to leave it as it is."""
        return True

    def owe(self, _delivery: DeliveryReport) -> Sequence[NewRecord]:
        """What is to stand in the journal with this end of a delivery, in one append. Asked before `sent`, `failed`."""
        return ()

    def sent(self, delivery: DeliveryReport) -> None:
        """It has arrived."""

    def failed(self, delivery: DeliveryReport) -> None:
        """It is given up."""
