"""Payloads that a network might send by mistake, or after a change of its own: one field missing, or replaced."""

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

Place = tuple[Any, Any]
"""What holds a value, and its key there."""

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308),
    *("", "x", "quantum", "0", "-1", "é" * 3000, "\x00", "\ud83d", "1e9999", "2026-99-99T00:00:00"),
    *([], {}, [None], [[]], {"": None}, {"id": {}}, [{"type": "quantum"}]),
)


def mutations(payloads: Sequence[tuple[str, dict[str, Any]]], count: int, seed: int = 14) -> Iterator[tuple[str, Any]]:
    """So many, each of one payload, in one or two places; the same ones for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        kind, payload = payloads[number % len(payloads)]
        changed = copy.deepcopy(payload)
        for _ in range(chance.choice((1, 1, 2))):
            change(chance, changed)
        yield kind, changed


def change(chance: random.Random, payload: dict[str, Any]) -> None:
    if not (there := list(places(payload))):
        return
    holder, key = chance.choice(there)
    match chance.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[f"new_{key}"] = holder.pop(key)
        case 2 if isinstance(holder[key], int | str) and not isinstance(holder[key], bool):
            holder[key] = str(holder[key]) if isinstance(holder[key], int) else [holder[key]]
        case _:
            holder[key] = copy.deepcopy(chance.choice(STRANGE))


def places(value: Any) -> Iterator[Place]:
    """Every place in it, at whatever depth."""
    keys: Any = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])
