"""The outbox's view of a chat network: parts that can be sent and, if the network can, edited and found again."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from gateway.engine.interface import HELD_SECONDS, NewRecord
from gateway.errors import GatewayError
from gateway.messages.message import Address, Reply
from gateway.records import records, subjects

DoubtPolicy: TypeAlias = Literal["none", "resend", "drop", "nonce", "lookup"]
MessageIds: TypeAlias = tuple[tuple[str, ...], ...]
"""The network's own ids of the messages, for each part of a reply."""


class LiveCapability(msgspec.Struct, frozen=True):
    """The ways in which a chat can display a growing reply.

    `can_grow`: a sent message can become longer; without this nothing is displayed. `can_draft`: an unfinished part can
    also be a draft, which is not a message and disappears on its own.
    """

    can_grow: bool = False
    can_draft: bool = False


class Transport(Protocol):
    """A network's sending end. It raises `AdapterError` on failure: permanent, or with the network's own `retry_after`.

    `doubt` is the policy for a part that may or may not have arrived, because the process died in the call: send it
    again, drop it, send it again under the same nonce (which the network recognizes), or look for it. If a second call
    would go unnoticed, the policy is `none`, without a `SendIntent` before the call.
    """

    @property
    def platform(self) -> str:
        """The name of the sending bot: an account of a platform counts as a platform here."""

    @property
    def doubt(self) -> DoubtPolicy: ...

    def capability(self, address: Address) -> LiveCapability:
        """Return what this chat can display of a growing reply now, without what the network has refused."""

    def parts(self, reply: Reply) -> int:
        """Return the number of messages for this reply; the same at every call."""

    def texts(self, reply: Reply) -> int:
        """Return how many of them are texts: these come first and can be edited, files cannot."""

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Send one part and return the network's ids. The nonce belongs to the part, over all attempts."""

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Edit sent messages so that they show this part of this reply."""

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None: ...

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        """Look for a part, and return the ids if it arrived; called only if `doubt` is `lookup`."""

    async def draft(self, reply: Reply, part: int) -> bool:
        """Show a part as a draft, in place of the last one; return False if the network refuses drafts there."""

    async def begin(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Send a part that will grow, as `send` does."""

    async def find_begun(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        """Look for a growing part, as `find` does for a sent one."""

    async def grow(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        """Edit a growing part to its present text.

        `before` is the reply as displayed; None if unknown, as after a crash.
        """

    async def finish(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        """Edit a growing part to its final text, and end its growth; repeating this has the same effect."""

    async def close(self, address: Address, message_ids: tuple[str, ...]) -> None:
        """End the growth of a part as it is."""


class LiveTransport:
    """The way a reply grows on networks without their own: it is sent, and then edited, if `can_edit`."""

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
        """Do nothing: a sent message grows only by edits."""


class JournalTransport(LiveTransport):
    """A sending end without a network: the journal is the place to read, so every reply has arrived."""

    doubt: DoubtPolicy = "none"

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def list_shown(self, _reply: Reply) -> list[NewRecord] | None:
        """List the records beside a reply that arrives with its own record; None: replies are sent."""
        return []

    def texts(self, _reply: Reply) -> int:
        return 1

    def parts(self, _reply: Reply) -> int:
        return 1

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        return (reply.id,)

    async def edit(self, _reply: Reply, _part: int, _message_ids: tuple[str, ...]) -> None:
        """Do nothing: replies are shown only when complete."""

    async def delete(self, _address: Address, _message_ids: tuple[str, ...]) -> None:
        """Do nothing: the record stays."""

    async def find(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        return (reply.id,)


def nonce_of(reply_id: str, part: int) -> str:
    """Return the name of one part of a reply, the same at every attempt."""
    return subjects.token_of(f"{reply_id}:{part}")


class OutboxSettings(msgspec.Struct, frozen=True):
    """Times in seconds. A place that refused `strikes` replies in a row is tried once in `rarely` seconds.

    A reply is retried for `give_up` seconds while the network is ill. If other places receive theirs meanwhile, the
    network is well: then the reply is cancelled after `stubborn` seconds, and those behind it follow.
    """

    first_pause: float = 1.0
    longest_pause: float = 300.0
    give_up: float = 86400.0
    stubborn: float = 3600.0
    odd_attempts: int = 5  # of a call that fails for reasons outside the network
    strikes: int = 3
    rarely: float = 3600.0
    senders: int = 8  # calls at a time for each platform
    ack_wait: float = HELD_SECONDS
    shutdown: float = 5.0  # for a running call when the gateway stops
    edit_pause: float = 0.8
    stream_after: float = 0.7  # an answer complete by then is sent once, and not streamed
    stream_rests: float = 5.0  # after the last text, before a stream without a reply is ended
    stream_silence: float = 15.0  # a writer that is silent for so long has gone
    draft_lasts: float = 20.0  # then it is shown again: networks drop drafts


class DeliveryReport(msgspec.Struct, frozen=True):
    """The end of a reply's delivery: `message_ids` of each part, or an error.

    The listeners get it once, after it is in the journal. `is_at_once`: the reply arrived with its own record.
    """

    outbound: records.OwedReply
    reply: Reply
    message_ids: MessageIds = ()
    attempts: int = 0
    error: str = ""
    is_at_once: bool = False


class ReplyWithheld(GatewayError):
    """An exception of `prepare`: this reply must not be sent, for this reason."""


class DeliveryCallbacks:
    """Checks replies before delivery, and is notified of the end. This base changes nothing."""

    async def prepare(self, outbound: records.OwedReply) -> Reply:
        """Return the reply to send. Raises ReplyWithheld if it must not be sent."""
        return outbound.reply

    def leaves(self, _outbound: records.OwedReply) -> bool:
        """Return True if `prepare` surely changes nothing."""
        return True

    def owe(self, _delivery: DeliveryReport) -> Sequence[NewRecord]:
        """Return the records to append with this end of a delivery. Called before `sent` or `failed`."""
        return ()

    def sent(self, delivery: DeliveryReport) -> None:
        """Handle an arrived reply."""

    def failed(self, delivery: DeliveryReport) -> None:
        """Handle a cancelled reply."""
