"""Recorders: hooks that record events before any other code acts on the events.

When an event is fired, the registry calls a recorder with the event as the observers see it. Events of a turn, or of a
delivery, wait in the `OwedEvents` of this turn or delivery for its next append: so a fact and its pending events are
one append, and after a crash the journal has both or neither. The recorder itself appends all other events;
`is_written` waits for these appends.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gateway.hooks.hook import Hook

MOST_DECISIONS = 200
PIECE = "llm:chunk"  # recorded only by its full name: a pattern would store an answer once for each of its pieces


class OwedEvent(NamedTuple):
    """An event as the journal records it: its id, its name, and the bytes of its record."""

    id: str
    name: str
    data: bytes


class HookDecision(NamedTuple):
    """A hook's decision about an event: `ask`, `change` with the names of the fields, or the outcome with its text.

    `call_id` and `hop` identify the operation of the turn.
    """

    event_id: str
    event: str
    hook: str
    decision: str
    reason: str
    call_id: str = ""
    hop: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the decision's key, which is the same when the turn runs again."""
        return self.event_id, self.hook, self.decision


class OwedEvents:
    """The recorded events of one turn or delivery, and the decisions of hooks about these events.

    `known` are the ids of events that are recorded, or wait for their append: a turn that runs again repeats its
    events. `decided` are the keys of decisions that the journal already has.
    """

    __slots__ = ("_decided", "_decisions", "_waiting", "is_over", "known")

    def __init__(self, known: Iterable[str] = (), decided: Iterable[tuple[str, str, str]] = ()) -> None:
        self.is_over = False  # no further events are accepted
        self.known = set(known)
        self._waiting: dict[str, OwedEvent] = {}
        self._decided = set(decided)
        self._decisions: list[HookDecision] = []

    def add_decision(self, decision: HookDecision) -> None:
        """Add a decision to the next append, up to a limit for each turn or delivery."""
        if decision.key not in self._decided and not self.is_over and len(self._decided) < MOST_DECISIONS:
            self._decided.add(decision.key)
            self._decisions.append(decision)

    @property
    def decisions(self) -> tuple[HookDecision, ...]:
        """Return the decisions that wait for the next append, in order."""
        return tuple(self._decisions)

    def add(self, event: OwedEvent) -> None:
        """Add an event to the next append, unless an append has taken it already."""
        if not self.is_over and event.id not in self.known:
            self.known.add(event.id)
            self._waiting[event.id] = event

    @property
    def waiting(self) -> tuple[OwedEvent, ...]:
        """Return the events that wait for the next append, in order."""
        return tuple(self._waiting.values())

    def forget(self, written: Iterable[OwedEvent], decisions: Sequence[HookDecision] = ()) -> None:
        """Forget events and decisions that the journal has now."""
        for event in written:
            self._waiting.pop(event.id, None)
        del self._decisions[: len(decisions)]

    def end(self) -> None:
        """Record no further events: the turn or delivery has ended, or another process continues it."""
        self.is_over = True
        self._waiting.clear()
        self._decisions.clear()


@dataclass(slots=True, eq=False)
class Recorder(Hook):
    """A hook whose `fn(event, owed)` records events; `owed` is None for events outside of turns and deliveries."""

    intercepts: ClassVar[bool] = False
    is_written: Callable[[], Awaitable[None]] = field(kw_only=True)
