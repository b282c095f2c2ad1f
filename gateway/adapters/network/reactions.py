"""Reactions under messages: told to hooks, if whoever reacts may speak there. They are no messages."""

from collections.abc import Collection

from gateway.adapters.network import Ground
from gateway.messages import Address, Message


async def tell(
    ground: Ground, address: Address, user_id: str, message_id: str, *, added: Collection[str], removed: Collection[str]
) -> None:
    """Tell `reaction:added` and `reaction:removed`: through the same gate, and within the same pace, as messages."""
    message = Message(f"{message_id}:reaction", address, user_id, "", kind="reaction")
    if ground.access.scope(message) is None:
        await ground.receive(message)  # the one place where strangers are turned away
        return
    if ground.access.is_too_fast(message):
        return
    for name, reactions in (("reaction:added", added), ("reaction:removed", removed)):
        for reaction in sorted(reactions):
            ground.registry.emit(
                name,
                platform=address.platform,
                user_id=user_id,
                chat_id=address.chat_id,
                message_id=message_id,
                reaction=reaction,
            )
