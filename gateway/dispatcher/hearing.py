"""The messages that one turn answers, as the hooks leave them: each is told of by itself, before the turn.

What a hook answers itself or refuses drops out; the others are answered together, as if it had not been said.
"""

import dataclasses
from dataclasses import dataclass

from gateway.dispatcher.speech import REFUSED, joined, received_fields
from gateway.events.event import Deny, End
from gateway.hooks import Scope as HookScope
from gateway.lanes import LaneTurn, Outcome
from gateway.lanes.turn import Status
from gateway.messages import Message, Reply


@dataclass(frozen=True, slots=True)
class Heard:
    """What is left, and what is said to the others; `status` is the turn's when nothing is left."""

    left: tuple[Message, ...]
    replies: tuple[Reply, ...]
    status: Status

    @property
    def message(self) -> Message:
        return joined(self.left)

    @property
    def outcome(self) -> Outcome:
        """The end of a turn that has nothing to answer."""
        return Outcome(replies=self.replies, status=self.status)

    def before(self, outcome: Outcome) -> Outcome:
        """The outcome of what is left. One that waits is no end: there the same hooks speak again."""
        return outcome if outcome.questions else dataclasses.replace(outcome, replies=(*self.replies, *outcome.replies))


async def hear(turn: LaneTurn, view: HookScope) -> Heard:
    """Tell of each message once, in their order.

    Raises:
        Pause: a hook asks the person first.
    """
    left: list[Message] = []
    replies: list[Reply] = []
    status: Status = "denied"
    for message in turn.messages:
        event = await view.run("message:received", **received_fields(message))
        match event.outcome:
            case End(reply=text):
                status = "ended"
            case Deny(text=text):
                text = text or REFUSED
            case _:
                left.append(dataclasses.replace(message, text=event["text"]))
                continue
        if text:
            replies.append(Reply(f"{turn.turn_id}:{message.id}", message.address, text, reply_to=message.id))
    return Heard(tuple(left), tuple(replies), status)
