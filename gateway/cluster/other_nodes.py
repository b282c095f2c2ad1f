"""The other nodes that share the journal, as they were heard last: each says again and again what it holds."""

import logging
import time
from typing import NamedTuple

import anyio
import msgspec

from gateway.config.node_settings import NODE_ROLES, NodeRole
from gateway.engine.interface import Tail

BOT = "bot."  # begins the leases of bots

log = logging.getLogger(__name__)


class NodeFiles(NamedTuple):
    """What a node has in files: digests of its settings and hooks, and what it has not of the skills that conversations
    have loaded."""

    settings: str = ""
    hooks: str = ""
    missing_skills: tuple[str, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a node says of itself. `run` is another one after each start.

    `holds`: leases, and since when; `works`: under which of them all is well; `waits`: those that it stands by for.
    `settings`, `hooks` and `missing_skills` are those of `NodeFiles`. `roles`: what it does of the work; a
    node of an earlier version says nothing of them, and does all. `clock`: its wall clock, as it said this.
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
    """Those that were heard within `seconds`. `run` is that of this node, which hears itself too."""

    def __init__(self, name: str, run: str, seconds: float) -> None:
        self.news = anyio.Event()  # they hold or wait for something else now
        self.has_twin = False  # another gateway goes by our name
        self._name, self._run, self._seconds = name, run, seconds
        self._heard: dict[str, tuple[float, NodeFacts]] = {}
        self._ahead: dict[str, float] = {}

    async def listen(self, heard: Tail) -> None:
        """Until the tail ends."""
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
        """By how many seconds the clock of each is ahead of ours."""
        return {one.name: self._ahead[one.name] for one in self.list_living()}

    def find_holder(self, key: str) -> str:
        """The name of the one that holds it; "" where none says so."""
        return next((one.name for one in self.list_living() if key in one.holds), "")

    def has_role(self, role: NodeRole) -> bool:
        """Does one of them do this part of the work?"""
        return any(role in one.roles for one in self.list_living())

    def list_waiting(self, key: str) -> list[NodeFacts]:
        return [one for one in self.list_living() if key in one.waits]

    def count_seconds(self, key: str) -> float:
        """Until its holder has been silent for too long."""
        said = max((at for at, facts in self._heard.values() if key in facts.holds), default=0.0)
        return max(said + self._seconds - anyio.current_time(), 0.0)

    def wake(self) -> None:
        """Have those that wait look again."""
        self.news.set()
        self.news = anyio.Event()

    def _note(self, facts: NodeFacts) -> None:
        before = self._heard.pop(facts.name, (0.0, None))[1]
        if not facts.is_gone or facts.holds:
            self._heard[facts.name] = (anyio.current_time(), facts)
        if before is None or (before.holds, before.waits) != (facts.holds, facts.waits):
            self.wake()
