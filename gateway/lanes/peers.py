"""The other nodes, as lanes see them: whether one lives, and what is asked of the one that runs a turn.

Each node answers under a subject of its own. Whoever does not answer is dead, or stands still: by and by its lease is
over, and then its turn is anybody's. So who asks looks again, and needs nobody's answer for ever. One that answers that
it knows nothing of a turn that it had claimed was begun anew since then: its turn is anybody's at once.
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
LOOK_AGAIN = 0.5  # whether the node lives that runs the turn
ASK_AGAIN = 2.0  # whether it still runs it; a node has longer leases

Wish: TypeAlias = Literal["stop", "look"]


class LaneRequest(msgspec.Struct, frozen=True):
    """To stop the turn of a session, or to look for messages that want it to end."""

    session_key: str
    wish: Wish


class Peers:
    """All nodes but this one. That one lives is believed for a moment, so that thousands who wait ask once."""

    def __init__(self, engine: Engine, node: str) -> None:
        self._engine = engine
        self._node = node
        self._seen: dict[str, float] = {}  # until when we take it that this node lives

    async def run(self, turn: OpenTurn) -> bool:
        """Asks whether one of them has claimed this turn, and lives."""
        return bool(turn.by) and turn.by != self._node and await self._is_alive(turn.by)

    async def find_pause(self, turn: OpenTurn, key: str) -> float:
        """How long the turn is left to the node that runs it, which looks for new messages now; 0 where none does."""
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
        """Whether it had a turn of the session to do it with; None where it does not answer."""
        request = msgspec.json.encode(LaneRequest(key, wish))
        with suppress(TimeoutError, EngineError):
            answer = await self._engine.request(subjects.node_subject_of(node), request, ANSWER_SECONDS)
            return msgspec.json.decode(answer, type=bool)
        return None


def lease_key_of(node: str) -> str:
    """Returns the key of the lease that says that a node lives."""
    return f"worker.{node}"
