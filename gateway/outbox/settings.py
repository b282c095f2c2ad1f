"""Limits and times of the outbox, and what is told of a delivery."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway import records
from gateway.messages import Reply
from gateway.outbox.send_position import MessageIds


@dataclass(frozen=True, slots=True)
class OutboxSettings:
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
    ack_wait: float = 30.0
    shutdown: float = 5.0  # what a call that has begun may still take when the gateway stops
    edit_pause: float = 0.8


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """How a reply's way ended: `message_ids` of each part, or an error. Told once, when it is in the journal."""

    outbound: records.OwedReply
    reply: Reply
    message_ids: MessageIds = ()
    attempts: int = 0
    error: str = ""


class ReplyWithheld(Exception):
    """Raised by `prepare`: this reply shall not be sent, for this reason."""


DeliveryListener: TypeAlias = Callable[[DeliveryReport], None]
PrepareReply: TypeAlias = Callable[[records.OwedReply], Awaitable[Reply]]


def ignore_delivery(_delivery: DeliveryReport) -> None:
    """The journal knows."""


async def keep_reply(outbound: records.OwedReply) -> Reply:
    return outbound.reply
