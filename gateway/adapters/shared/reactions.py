"""Reactions under messages: what a person added and took away, as a message of its own kind."""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.adapters.shared import AdapterContext
from gateway.messages import Address, Message


@dataclass(frozen=True, slots=True)
class ReactionChange:
    """What one person has changed under a message; `roles` are those that they have there, where a network has any."""

    address: Address
    user_id: str
    message_id: str
    added: Collection[str] = ()
    removed: Collection[str] = ()
    roles: Collection[str] = ()


async def emit_reactions(ground: AdapterContext, change: ReactionChange) -> None:
    """Hand the change to the dispatcher, which lets it through the same gate as messages and tells the hooks."""
    extra = {"added": list(change.added), "removed": list(change.removed), "roles": list(change.roles)}
    number, under = f"{change.message_id}:reaction", change.message_id
    await ground.receive(
        Message(number, change.address, change.user_id, "", kind="reaction", reply_to=under, extra=extra)
    )
