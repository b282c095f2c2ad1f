"""People's decisions about hooks, for all gateways that share a journal: one record, which each gateway follows."""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from gateway.engine.interface import Engine
from gateway.errors import Conflict, EngineError
from gateway.hooks.places.switches import HookSwitches
from gateway.records import subjects
from gateway.records.follower import LastRecord
from gateway.records.records import HookDecisionState

log = logging.getLogger(__name__)


class SharedSwitches:
    """The writer of decisions to the journal, which applies the decisions of other gateways here.

    Load `last` before `join`.
    """

    def __init__(self, engine: Engine) -> None:
        self.last = LastRecord(engine, subjects.HOOK_DECISIONS_SUBJECT, HookDecisionState(), self._note_change)
        self._switches: HookSwitches | None = None
        self._touch: Callable[[Collection[str]], None] = lambda _names: None

    async def join(self, switches: HookSwitches, touch: Callable[[Collection[str]], None]) -> None:
        """Apply the shared decisions to these switches; `touch` gets the names of changed hooks.

        Decisions of this home that the journal lacks are added to the journal.
        """
        self._switches, self._touch = switches, touch
        own, kept = switches.decisions, self.last.value
        new_enabled = {name: one for name, one in own.enabled.items() if name not in kept.enabled}
        new_trusted = {name: one for name, one in own.trusted.items() if name not in kept.trusted}
        if new_enabled or new_trusted:
            try:
                await self.write(new_enabled, new_trusted)
            except EngineError as error:
                log.warning("what was decided about hooks counts in this home alone until the next start: %s", error)
        switches.adopt(self.last.value.enabled, self.last.value.trusted)

    async def write(self, enabled: Mapping[str, bool], trusted: Mapping[str, str]) -> None:
        """Write decisions for all gateways."""
        while True:
            kept = self.last.value
            with suppress(Conflict):
                await self.last.replace(
                    HookDecisionState(enabled={**kept.enabled, **enabled}, trusted={**kept.trusted, **trusted})
                )
                return

    def _note_change(self, _before: HookDecisionState, now: HookDecisionState) -> None:
        if self._switches:
            self._touch(self._switches.adopt(now.enabled, now.trusted))
