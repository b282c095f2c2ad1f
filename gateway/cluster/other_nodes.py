"""The other nodes that share the journal, by their last announcements."""

import logging
import time

import anyio
import msgspec

from gateway.daemon.nodes import NodeFacts, OtherNodes
from gateway.engine.interface import Tail

log = logging.getLogger(__name__)


class HeardNodes(OtherNodes):
    """The nodes that announced themselves within `seconds`. `run` is this node's id, by which it skips itself."""

    def __init__(self, name: str, run: str, seconds: float) -> None:
        self.has_twin = False  # whether another gateway uses our name
        self.news = anyio.Event()  # set when the leases or waits of a node have changed
        self._name, self._run, self._seconds = name, run, seconds
        self._heard: dict[str, tuple[float, NodeFacts]] = {}
        self._ahead: dict[str, float] = {}

    async def listen(self, heard: Tail) -> None:
        """Listen until the tail ends."""
        async for record in heard:
            try:
                facts = msgspec.json.decode(record.data, type=NodeFacts)
            except msgspec.DecodeError as error:
                log.warning("another node says what this version cannot read: %s", error)
                continue
            if facts.run != self._run:
                self.has_twin |= facts.name == self._name and not facts.is_gone
                self._ahead[facts.name] = facts.clock - time.time() if facts.clock else 0.0
                self._note(facts)

    def list_living(self) -> list[NodeFacts]:
        oldest = anyio.current_time() - self._seconds
        return [facts for at, facts in self._heard.values() if at > oldest]

    def list_clocks(self) -> dict[str, float]:
        """Return by how many seconds the clock of each living node is ahead of ours."""
        return {one.name: self._ahead[one.name] for one in self.list_living()}

    def list_waiting(self, key: str) -> list[NodeFacts]:
        return [one for one in self.list_living() if key in one.waits]

    def count_seconds(self, key: str) -> float:
        """Return the seconds until the holder of the key counts as gone."""
        said = max((at for at, facts in self._heard.values() if key in facts.holds), default=0.0)
        return max(said + self._seconds - anyio.current_time(), 0.0)

    def wake(self) -> None:
        """Wake all tasks that wait for `news`."""
        self.news.set()
        self.has_twin = False  # whether another gateway uses our name
        self.news = anyio.Event()

    def _note(self, facts: NodeFacts) -> None:
        before = self._heard.pop(facts.name, (0.0, None))[1]
        if not facts.is_gone or facts.holds:
            self._heard[facts.name] = (anyio.current_time(), facts)
        if before is None or (before.holds, before.waits) != (facts.holds, facts.waits):
            self.wake()
