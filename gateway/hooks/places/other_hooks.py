"""The hooks of other gateways on the same journal, as far as the hooks of this gateway depend on them."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from gateway.hooks.filters import compile_filter
from gateway.hooks.patterns import MOST_KNOWN, EventSelector
from gateway.hooks.places.sources import Source
from gateway.hooks.recorder import PIECE
from gateway.records.follower import RecordCopy
from gateway.records.records import HookFolder, HookGuard, NodeHooks, OwedHook

ListHooks: TypeAlias = Callable[[], tuple[dict[str, HookFolder], tuple[OwedHook, ...], dict[str, HookGuard]]]


class OwedFilter:
    """The filter of a durable hook, which tests events, and knows the fields that the hook does not read."""

    def __init__(self, owed: OwedHook, left_out: frozenset[str] = frozenset()) -> None:
        self.owed = owed
        self.left_out = left_out
        self._observes = EventSelector(owed.events)
        self._intercepts = EventSelector(owed.intercepts)
        self._matches = compile_filter(owed.when)
        self._wanted: dict[str, bool] = {}  # earlier results by name, of one look-up for each event

    def takes(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Return True if the hook wants the event; never an event about the hook, or an intercepted event."""
        if (is_wanted := self._wanted.get(name)) is None:
            if len(self._wanted) >= MOST_KNOWN:
                self._wanted.clear()
            is_named = name != PIECE or name in self.owed.events
            self._wanted[name] = is_wanted = is_named and name in self._observes and name not in self._intercepts
        if not is_wanted or (name[:5] == "hook:" and fields.get("hook") == self.owed.hook):
            return False
        return self._matches is None or self._matches(fields)


class OtherHooks:
    """The hooks of other gateways: none here; `SharedHooks` knows the hooks of a shared journal.

    `on_change` is called when the filters change, and `on_guards` gets the hooks whose guards change.
    """

    copies: Sequence[RecordCopy] = ()

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.on_guards: Callable[[Collection[str]], None] = lambda _names: None
        self.telling = anyio.CancelScope()

    def find(self, node: str) -> NodeHooks | None:  # noqa: ARG002 - there is no other one
        """Return the hooks of the gateway `node`, if the gateway has written them."""
        return None

    def list_filters(self, here: Collection[str]) -> Iterable[OwedFilter]:  # noqa: ARG002 - as above
        """List the filters of other gateways' durable hooks, except hooks whose consumers are `here`."""
        return ()

    def list_sources(self, path: Path) -> tuple[Source, ...]:  # noqa: ARG002 - as above
        """List the sources of other gateways' hooks; `path` is the folder that the hooks would have here."""
        return ()

    async def tell(self, settled: Callable[[], Awaitable[None]], list_here: ListHooks) -> None:
        """Once `settled` returns, publish our hooks for other gateways, until `telling` is cancelled."""
