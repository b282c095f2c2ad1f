"""The other nodes that share the journal, by their last announcements."""

import logging
import time
from typing import NamedTuple

import anyio
import msgspec

from gateway.config.node_settings import NODE_ROLES, NodeRole
from gateway.engine.interface import Tail

BOT = "bot."  # starts the leases of bots

log = logging.getLogger(__name__)


class NodeFiles(NamedTuple):
    """The files of a node: digests of its settings and hooks, and the loaded skills that it lacks."""

    settings: str = ""
    hooks: str = ""
    missing_skills: tuple[str, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node's announcement about itself. `run` changes with each start.

    `holds`: leases, and since when; `works`: those whose work succeeds; `waits`: those that it stands by for.
    `settings`, `hooks` and `missing_skills` are those of `NodeFiles`. `roles`: its part of the work; a node of an
    earlier version does not send it, and does all. `clock`: its wall clock at the announcement.
    """

    name: str
    run: str
    since: float
    holds: dict[str, float]
    works: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    is_gone: bool = False
    settings: str = ""
    hooks: str = ""
    roles: tuple[str, ...] = NODE_ROLES
    clock: float = 0.0
    missing_skills: tuple[str, ...] = ()

    @property
    def bots(self) -> int:
        return sum(key.startswith(BOT) for key in self.holds)


class OtherNodes:
    """The nodes that announced themselves within `seconds`. `run` belongs to this node, which also hears itself."""

    def __init__(self, name: str, run: str, seconds: float) -> None:
        self.news = anyio.Event()  # their leases or waits have changed
        self.has_twin = False  # another gateway uses our name
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
        """Return by how many seconds the clock of each is ahead of ours."""
        return {one.name: self._ahead[one.name] for one in self.list_living()}

    def find_holder(self, key: str) -> str:
        """Return the name of the holder; "" if none is known."""
        return next((one.name for one in self.list_living() if key in one.holds), "")

    def has_role(self, role: NodeRole) -> bool:
        """Return True if one of them does this part of the work."""
        return any(role in one.roles for one in self.list_living())

    def list_waiting(self, key: str) -> list[NodeFacts]:
        return [one for one in self.list_living() if key in one.waits]

    def count_seconds(self, key: str) -> float:
        """Return the seconds until its holder counts as gone."""
        said = max((at for at, facts in self._heard.values() if key in facts.holds), default=0.0)
        return max(said + self._seconds - anyio.current_time(), 0.0)

    def wake(self) -> None:
        """Wake those that wait."""
        self.news.set()
        self.news = anyio.Event()

    def _note(self, facts: NodeFacts) -> None:
        before = self._heard.pop(facts.name, (0.0, None))[1]
        if not facts.is_gone or facts.holds:
            self._heard[facts.name] = (anyio.current_time(), facts)
        if before is None or (before.holds, before.waits) != (facts.holds, facts.waits):
            self.wake()
