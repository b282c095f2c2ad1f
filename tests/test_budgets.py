"""No room of gateway/ has more code and files than its budget in `tests/budgets.toml`."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping

from bench.code_lines import BUDGETS, HOUSE, count_rooms


def find_excess(rooms: Mapping[str, Mapping[str, int]], budgets: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for room in sorted({*rooms} ^ {*budgets}):
        yield f"{room}: there is no such room" if room in budgets else f"{room}: a new room needs a budget"
    for room in sorted({*rooms} & {*budgets}):
        for what, most in budgets[room].items():
            if rooms[room][what] > most:
                yield f"{room}: {rooms[room][what]} {what}, and its budget is {most}"


def test_a_room_above_its_budget_is_found() -> None:
    rooms = {"hall": Counter(files=2, lines=10), "attic": Counter(files=1, lines=1)}
    budgets = {"hall": {"files": 2, "lines": 9}, "cellar": {"files": 1, "lines": 1}}
    assert list(find_excess(rooms, budgets)) == [
        "attic: a new room needs a budget",
        "cellar: there is no such room",
        "hall: 10 lines, and its budget is 9",
    ]


def test_every_room_stays_within_its_budget() -> None:
    excess = list(find_excess(count_rooms(HOUSE), tomllib.loads(BUDGETS.read_text("utf-8"))))
    assert not excess, "\n".join(["", *excess, "raise the budget in tests/budgets.toml, and say in the commit why"])
