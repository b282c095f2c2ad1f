"""Budgets: the usage of models that people may reach in a day or a month, and the part of it that is used.

All people together have one, each person has the general one or one under their own name, and the people of a group
share one. The users of a program that calls with one key share one too: a program names them freely. The budgets of a
person are looked up in memory, and so is the usage.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from gateway.config.settings import BudgetLimit, BudgetSettings, UsageLimit

EVERYBODY = ""  # the name for all people together
KEY_USERS = "keys {}"  # the name for all people for whom a program calls with this key; an id always has a colon
NO_LIMIT = UsageLimit()
NO_BUDGET = BudgetLimit()
WARNED_AT = 0.8  # of a limit

BudgetUnit: TypeAlias = Literal["tokens", "money"]


class UsageTotal(NamedTuple):
    """A number of tokens, and their cost as far as the price is known."""

    tokens: float = 0
    money: float = 0.0

    def add(self, tokens: float, money: float) -> "UsageTotal":
        return UsageTotal(self.tokens + tokens, self.money + money)


class Budget(NamedTuple):
    """A budget, by its name in the settings, and the people who have it together."""

    name: str
    people: frozenset[str]
    limit: BudgetLimit


class BudgetState(NamedTuple):
    """The used part of one limit of a budget in the present day or month; `held` is the expected use of open calls."""

    budget: str
    window: str
    period: str  # day or month
    unit: BudgetUnit
    used: float
    limit: float
    held: float = 0

    @property
    def mark(self) -> str:
        """The name that distinguishes this limit in this day or month from all others."""
        return f"{self.window} {self.budget} {self.unit}"

    @property
    def is_exceeded(self) -> bool:
        return self.used + self.held >= self.limit

    @property
    def is_used_up(self) -> bool:
        """True if the limit is reached even without the running calls."""
        return self.used >= self.limit

    @property
    def is_nearly_used(self) -> bool:
        return self.used >= WARNED_AT * self.limit

    def as_fields(self) -> dict[str, Any]:
        return self._asdict()

    def describe(self) -> str:
        """Describe the used part of the budget in words."""
        used, limit = self._show(self.used), self._show(self.limit)
        return f"{used} of {limit} that may be used {'today' if self.period == 'day' else 'this month'}"

    def describe_held(self) -> str:
        return self._show(self.held)

    def _show(self, amount: float) -> str:
        return f"{amount:.2f}" if self.unit == "money" else f"{amount:,.0f} tokens"


class Budgets:
    """The budgets of the configuration. `groups` are the people of each."""

    def __init__(self, settings: BudgetSettings, groups: Mapping[str, frozenset[str]]) -> None:
        self._settings = settings
        self._groups = groups
        self.has_limits = settings != BudgetSettings()

    def find(self, person: str) -> Iterator[Budget]:
        """Yield the budgets of this person."""
        yield self._find_own(person)
        if (key := key_of(person)) in self._settings.keys:
            yield self._make_key_budget(key)
        for budget in self._list_groups():
            if person in budget.people:
                yield budget
        yield self._all

    def is_of_all(self, name: str) -> bool:
        """Return True for a person who is limited by `each_person`."""
        return ":" in name and name not in self._settings.people and self._settings.each_person != NO_BUDGET

    def list_all(self, people: Iterable[str]) -> Iterator[Budget]:
        """Yield all budgets of the settings, and those that these people have each."""
        yield self._all
        yield from self._list_groups()
        yield from map(self._make_key_budget, self._settings.keys)
        yield from map(self._find_own, dict.fromkeys((*self._settings.people, *people)))

    @property
    def _all(self) -> Budget:
        return Budget("all", frozenset((EVERYBODY,)), self._settings.all)

    def _list_groups(self) -> Iterator[Budget]:
        for name, limit in self._settings.groups.items():
            yield Budget(f"groups {name}", self._groups.get(name, frozenset()), limit)

    def _make_key_budget(self, key: str) -> Budget:
        name = KEY_USERS.format(key)
        return Budget(name, frozenset((name,)), self._settings.keys[key])

    def _find_own(self, person: str) -> Budget:
        settings, own = self._settings, frozenset((person,))
        if person in settings.people:
            return Budget(f"people {person}", own, settings.people[person])
        return Budget(f"each_person {person}", own, settings.each_person)


def key_of(person: str) -> str:
    """Return the key with which a program calls for this person (`api:KEY`, `api:KEY:USER`); "" for all others."""
    platform, _, rest = person.partition(":")
    return rest.partition(":")[0] if platform == "api" else ""


def list_total_names(person: str) -> tuple[str, ...]:
    """Return the names under which this person's usage is summed."""
    key = key_of(person)
    return (EVERYBODY, person, *([KEY_USERS.format(key)] if key else ()))
