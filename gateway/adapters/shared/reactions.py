"""Reactions under messages: told to hooks, if whoever reacts may speak there. They are no messages."""

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
    """Tell `reaction:added` and `reaction:removed`: through the same gate, and within the same pace, as messages."""
    address, user_id, message_id = change.address, change.user_id, change.message_id
    extra = {"roles": list(change.roles)} if change.roles else {}
    message = Message(f"{message_id}:reaction", address, user_id, "", kind="reaction", extra=extra)
    if ground.access.scope(message) is None:
        await ground.receive(message)  # the one place where strangers are turned away
        return
    if ground.access.is_too_fast(message):
        return
    for name, reactions in (("reaction:added", change.added), ("reaction:removed", change.removed)):
        for reaction in sorted(reactions):
            ground.registry.emit(
                name,
                platform=address.platform,
                user_id=user_id,
                chat_id=address.chat_id,
                message_id=message_id,
                reaction=reaction,
            )
