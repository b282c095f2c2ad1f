"""The usage of today and this month, by person: in memory, so that a check before each call costs next to nothing.

Days begin and end in the time zone of the configuration. The wall clock determines the day, less any recent change of
it: setting the clock makes no new day. The journal holds the same, day by day (see `usage_journal`); these sums are
loaded from there, and calls since are added.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, datetime, timedelta, tzinfo
from functools import cache, partial
from heapq import nlargest
from weakref import WeakSet

import anyio
from msgspec.structs import replace

from gateway.agent.models.prices import TokenPrice, find_price_by_name
from gateway.config.settings import Settings, UsageLimit
from gateway.messages.transcript import Usage
from gateway.records.records import DayUsage, RecordedCall, UsageRow
from gateway.usage.budgets import (
    EVERYBODY,
    NO_LIMIT,
    Budget,
    Budgets,
    BudgetState,
    BudgetUnit,
    UsageTotal,
    list_total_names,
)
from gateway.usage.turn_usage import TurnUsage

MONTH = len("2026-01")
MOST_LISTED = 50  # people


class RunningTotals:
    """Sums of the present day and month; `held` is the least usage of the running calls."""

    find_price: Callable[[str], TokenPrice]  # by a model's name at its provider

    def __init__(self, clock: Callable[[], float], settings: Settings = Settings()) -> None:  # noqa: B008 - frozen
        self.clock = clock
        self.zone: tzinfo | None = None  # the machine's own
        self._held: dict[str, UsageTotal] = defaultdict(UsageTotal)  # where there are limits
        self.apply_settings(settings)
        self.models: dict[str, Usage] = {}  # since this process began, by model
        self.warned: set[str] = set()
        self._sums: dict[str, dict[str, UsageTotal]] = {}  # by day or month, and person
        self.own: dict[str, tuple[str, UsageRow]] = {}  # calls that we counted, until the journal tells of them
        self._released: anyio.Event | None = None  # exists while a task waits for the end of a call
        self.turns: WeakSet[TurnUsage] = WeakSet()  # those that may call a model still

    def apply_settings(self, settings: Settings) -> None:
        """Apply these settings from now on."""
        self.zone = None
        if name := settings.gateway.timezone:
            from zoneinfo import ZoneInfo  # noqa: PLC0415 - few name one, and each start would load it

            self.zone = ZoneInfo(name)
        self.find_price = cache(partial(find_price_by_name, settings))
        groups = {name: frozenset(group.people) for name, group in settings.access.groups.items()}
        self.budgets = Budgets(settings.budgets, groups)
        if not self.budgets.has_limits:
            self._held.clear()

    def today(self) -> date:
        return datetime.fromtimestamp(self.clock(), self.zone).date()

    def windows(self) -> tuple[str, str]:
        """Return the present day and month."""
        day = self.today().isoformat()
        return day, day[:MONTH]

    def add(self, day: str, row: UsageRow) -> None:
        """Add the usage of a day."""
        for window in (day, day[:MONTH]):
            sums = self._sums.setdefault(window, {})
            for person in list_total_names(row.person):
                sums[person] = sums.get(person, UsageTotal()).add(row.usage.tokens, row.usage.cost)
        if len(self._sums) > 4:  # yesterday, today and their months; no other is needed
            for window in sorted(self._sums, key=lambda one: one in self.windows())[: len(self._sums) - 4]:
                del self._sums[window]

    def rename(self, people: Collection[str], name: str) -> None:
        """Move the usage of these people, and the future usage of their running turns, to another name."""
        for turn in self.turns:
            turn.rename(people, name)
        for one in people:  # what is held is so of others too, by whom they are
            if held := self._held.get(one):
                self.hold(one, -held.tokens, -held.money)
                self.hold(name, *held)
        for sums in self._sums.values():
            for moved in [sums.pop(one) for one in people if one in sums]:
                sums[name] = sums.get(name, UsageTotal()).add(*moved)
        self.warned = {replace_people(mark, people, name) for mark in self.warned}
        for call_id, (day, row) in self.own.items():
            if row.person in people:
                self.own[call_id] = day, replace(row, person=name)

    def list_names(self) -> set[str]:
        """Return the people with usage or a running turn."""
        summed = {name for sums in self._sums.values() for name in sums}
        return summed | {turn.origin.person for turn in self.turns}

    def count(self, call: RecordedCall) -> None:
        """Count a call."""
        row = call.row
        self.own[call.id] = call.day, row
        self.add(call.day, row)
        self.models[row.usage.model] = self.models.get(row.usage.model, Usage()) + row.usage

    def reset(self, days: Iterable[DayUsage], call_ids: Collection[str]) -> None:
        """Replace the sums by these, which include the calls of these ids, and add our calls that they lack."""
        self._sums = {}
        self.own = {call_id: call for call_id, call in self.own.items() if call_id not in call_ids}
        for day in days:
            self.warned |= {*day.warned}
            for row in day.rows:
                self.add(day.day, row)
        for own_day, row in self.own.values():
            self.add(own_day, row)

    def hold(self, person: str, tokens: float, money: float) -> None:
        """Hold the least usage of a call that begins; with negative numbers, release it at its end."""
        for one in list_total_names(person) if self.budgets.has_limits else ():
            self._held[one] = held = self._held[one].add(tokens, money)
            if held.tokens <= 0:
                del self._held[one]
        if tokens <= 0 and self._released:
            self._released.set()
            self._released = None

    async def wait_released(self) -> None:
        """Wait until a running call is over."""
        self._released = self._released or anyio.Event()
        await self._released.wait()

    def get(self, window: str, people: Collection[str] = (EVERYBODY,)) -> UsageTotal:
        """Return what these people used in a day or month."""
        sums = self._sums.get(window, {})
        return _sum_up(sums[one] for one in people if one in sums)

    def list_people(self, most: int) -> list[str]:
        """List the people under `each_person` who used most today and this month: `most` by tokens, and by money."""
        found: dict[str, None] = {}
        for window in self.windows():
            sums = [(name, used) for name, used in self._sums.get(window, {}).items() if self.budgets.is_of_all(name)]
            for by_unit in (lambda one: one[1].tokens, lambda one: one[1].money):
                found |= dict.fromkeys(name for name, _ in nlargest(most, sums, key=by_unit))
        return [*found]

    def get_held(self, people: Collection[str] = (EVERYBODY,)) -> UsageTotal:
        return _sum_up(self._held[one] for one in people if one in self._held)

    def list_budgets(
        self, person: str = EVERYBODY, *, held: bool = False, most: int = MOST_LISTED
    ) -> list[BudgetState]:
        """List the used part of each limit of this person; with `held`, also the least usage of running calls.

        For everybody it has every limit, and for `each_person` the `most` people with the highest usage.
        """
        if not self.budgets.has_limits:
            return []
        found = self.budgets.find(person) if person else self.budgets.list_all(self.list_people(most))
        return [state for budget in found for state in list_states(budget, self, held=held)]

    def take_warnings(self, person: str) -> list[BudgetState]:
        """Return the limits that have just become nearly used up: each comes once in its day or month."""
        near = [one for one in self.list_budgets(person) if one.is_nearly_used and one.mark not in self.warned]
        if near:
            windows = self.windows()
            self.warned = {mark for mark in self.warned if mark.startswith(windows)} | {one.mark for one in near}
        return near


def list_states(budget: Budget, totals: RunningTotals, *, held: bool) -> Iterator[BudgetState]:
    """List every limit of a budget, and its used part; with `held`, also the future usage of running calls."""
    day, month = totals.windows()
    for period, window, most in (("day", day, budget.limit.day), ("month", month, budget.limit.month)):
        if most == NO_LIMIT:
            continue
        used = totals.get(window, budget.people)
        running = totals.get_held(budget.people) if held else UsageTotal()
        for unit, limit in _list_limits(most):
            yield BudgetState(budget.name, window, period, unit, getattr(used, unit), limit, getattr(running, unit))


def _list_limits(most: UsageLimit) -> Iterator[tuple[BudgetUnit, float]]:
    if most.tokens is not None:
        yield "tokens", most.tokens
    if most.money is not None:
        yield "money", most.money


def describe_end(window: str, day: date) -> str:
    """Say when the day or month that contains this day ends, in words."""
    if len(window) > MONTH:
        return f"tomorrow ({day + timedelta(days=1)})"
    return f"next month ({(day.replace(day=28) + timedelta(days=4)).replace(day=1)})"


def replace_people(mark: str, people: Iterable[str], name: str) -> str:
    """Replace the names of these people in the mark of a limit."""
    for one in people:
        mark = mark.replace(f" {one} ", f" {name} ")
    return mark


def _sum_up(amounts: Iterable[UsageTotal]) -> UsageTotal:
    return UsageTotal(*map(sum, zip(*amounts, strict=True))) if (amounts := list(amounts)) else UsageTotal()
