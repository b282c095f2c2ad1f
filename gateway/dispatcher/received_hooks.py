"""The messages that one turn answers, as the hooks leave them: each is told of by itself, before the turn.

What a hook answers itself or refuses drops out; the others are answered together, as if it had not been said.
"""

import dataclasses
from dataclasses import dataclass

from gateway.dispatcher.event_fields import REFUSED, build_received_fields, join_messages
from gateway.events import Deny, End
from gateway.hooks import HookScope
from gateway.lanes import LaneResult, LaneTurn
from gateway.lanes.turn import TurnStatus
from gateway.messages import Message, Reply


@dataclass(frozen=True, slots=True)
class HookedMessages:
    """What is left, and what is said to the others; `status` is the turn's when nothing is left."""

    left: tuple[Message, ...]
    replies: tuple[Reply, ...]
    status: TurnStatus

    @property
    def message(self) -> Message:
        return join_messages(self.left)

    @property
    def outcome(self) -> LaneResult:
        """The end of a turn that has nothing to answer."""
        return LaneResult(replies=self.replies, status=self.status)

    def before(self, outcome: LaneResult) -> LaneResult:
        """The outcome of what is left. One that waits is no end: there the same hooks speak again."""
        return outcome if outcome.questions else dataclasses.replace(outcome, replies=(*self.replies, *outcome.replies))


async def run_received_hooks(turn: LaneTurn, view: HookScope) -> HookedMessages:
    """Tell of each message once, in their order.

    Raises:
        Pause: a hook asks the person first.
    """
    left: list[Message] = []
    replies: list[Reply] = []
    status: TurnStatus = "denied"
    for message in turn.messages:
        event = await view.run("message:received", **build_received_fields(message))
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
    return HookedMessages(tuple(left), tuple(replies), status)
