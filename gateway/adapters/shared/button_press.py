"""Who may press a button: whoever is asked, and admins. What pressing means is decided here, alike for all networks.

The value of a button comes back as the text of a message of kind `button`, and goes the way of all messages: the gate,
then the dispatcher, which knows whether the question is still open. So a button that was left standing does nothing.
"""

import dataclasses

from gateway.adapters.shared import AdapterContext
from gateway.messages import Message
from gateway.sessions import session_key_of

NOT_YOURS = "This is for somebody else to decide."


def resolve_press(message: Message, asked: str, ground: AdapterContext) -> Message | None:
    """The message that a press becomes; None: it is not for this person, and does nothing.

    `asked` is the id of the person to whom the buttons were shown, empty where that is everybody in the chat. An admin
    who presses in somebody's stead answers in the session of whoever was asked.
    """
    if not asked or asked == message.user_id:
        return message
    if ground.access.scope(message) not in ("owner", "admin"):
        return None
    return dataclasses.replace(
        message, session=session_key_of(dataclasses.replace(message, user_id=asked), ground.keys)
    )
