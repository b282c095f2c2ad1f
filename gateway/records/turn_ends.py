"""The wait of a job or a hook for the end of a turn, within a time. The wait for a person does not count."""

import math

import anyio

from gateway.engine.interface import Tail
from gateway.errors import GatewayError
from gateway.records import records


async def wait_for_turn_end(
    tail: Tail, seq: int, timer: anyio.CancelScope | None = None, left: float = math.inf
) -> records.TurnEnded:
    """Wait for the end of the turn that answers the message with this sequence, on the chain of its session.

    The `timer` pauses while the turn waits for a person. If it has no deadline, it begins with the turn, and ends after
    the seconds `left`.

    Raises:
        GatewayError: the gateway stops.
    """
    async for record in tail:
        match records.decode_readable(record.data):
            case records.TurnEnded(upto=upto) as end if upto >= seq:
                return end
            case records.QuestionsAsked() if timer and timer.deadline < math.inf:
                left, timer.deadline = timer.deadline - anyio.current_time(), math.inf
            case records.Claim(on=on) if timer and on >= seq and timer.deadline == math.inf:
                timer.deadline = anyio.current_time() + left
    raise GatewayError("the gateway stops")
