"""The other nodes, as lanes see them: whether a node is alive, and requests to the node that runs a turn.

Each node answers under a subject of its own. A node that does not answer is dead or hangs: when its lease expires, any
node may take its turn. So the asking node does not depend on an answer, and checks the lease again. If a node answers
that it does not run a turn that it had claimed, it was restarted after the claim: any node may take the turn at once.
"""

import time
from contextlib import suppress
from typing import Literal, TypeAlias

import msgspec

from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.records import subjects
from gateway.sessions.session import OpenTurn

ANSWER_SECONDS = 1.0
LOOK_AGAIN = 0.5  # until the next check of the lease of the node that runs the turn
ASK_AGAIN = 2.0  # if the node answers that it still runs the turn; its lease is longer

Wish: TypeAlias = Literal["stop", "look"]


class LaneRequest(msgspec.Struct, frozen=True):
    """A request to stop a session's turn, or to read new messages that may end the turn."""

    session_key: str
    wish: Wish


class Peers(msgspec.Struct, eq=False):
    """All nodes but this one.

    A node that is alive counts as alive for half a second, so that thousands of waiting lanes look up its lease once.
    """

    _engine: Engine
    _node: str
    _seen: dict[str, float] = {}  # until when a node counts as alive

    async def run(self, turn: OpenTurn) -> bool:
        """Return True if another node has claimed this turn and is alive."""
        return bool(turn.by) and turn.by != self._node and await self._is_alive(turn.by)

    async def find_pause(self, turn: OpenTurn, key: str) -> float:
        """Return how long to leave the turn to the node that runs it, and make that node read new messages."""
        if not await self.run(turn):
            return 0.0
        has_it = await self.ask(turn.by, key, "look")
        return LOOK_AGAIN if has_it is None else ASK_AGAIN * has_it

    async def _is_alive(self, node: str) -> bool:
        if self._seen.get(node, 0.0) > time.monotonic():
            return True
        if await self._engine.holder(lease_key_of(node)) is None:
            self._seen.pop(node, None)
            return False
        self._seen[node] = time.monotonic() + LOOK_AGAIN
        return True

    async def ask(self, node: str, key: str, wish: Wish) -> bool | None:
        """Send a request; return True if the node runs a turn of the session, None if the node does not answer."""
        request = msgspec.json.encode(LaneRequest(key, wish))
        with suppress(TimeoutError, EngineError):
            answer = await self._engine.request(subjects.node_subject_of(node), request, ANSWER_SECONDS)
            return msgspec.json.decode(answer, type=bool)
        return None


def lease_key_of(node: str) -> str:
    """Return the key of the lease that shows that a node is alive."""
    return f"worker.{node}"
