"""Durations, sizes and counts as people write them: `30s`, `1h30m`, `64kB`, `1.5 GiB`, `1 file`."""

import re
from typing import Annotated, TypeAlias

from msgspec import Meta

Duration: TypeAlias = Annotated[float, Meta(extra={"unit": "duration"})]
"""Seconds; written with units, or as a bare number of seconds."""

Size: TypeAlias = Annotated[int, Meta(extra={"unit": "size"})]
"""Bytes; kB, MB, GB are powers of 1000 and KiB, MiB, GiB (also K, M, G) powers of 1024."""

DURATION_PATTERN = r"^[0-9]{1,12}(\.[0-9]{1,6})?$|^([0-9]{1,12}(\.[0-9]{1,6})?\s*(ms|s|m|h|d|w)\s*)+$"
SIZE_PATTERN = r"^[0-9]{1,15}(\.[0-9]{1,6})?\s*([kKMGT]i?)?B?$"

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DURATION = re.compile(DURATION_PATTERN)
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|d|w|$)")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(?:([kKMGT])(i?))?(B?)\Z")


def parse_duration(text: str) -> float | None:
    """Parse `1h30m` -> 5400.0; None for any other text."""
    if len(text) > 100 or not _DURATION.match(text):
        return None
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in _PART.findall(text))


def parse_size(text: str) -> int | None:
    """Parse `64kB` -> 64000, `64KiB` and `64K` -> 65536; None for any other text."""
    found = _SIZE.match(text)
    if not found:
        return None
    number, letter, binary, byte = found.groups("")
    step = 1024 if letter and (binary or not byte) else 1000
    scale: int = step ** _POWERS[letter.lower()]
    return round(float(number) * scale)


def format_duration(seconds: float) -> str:
    """Write a duration in the shortest exact way: 5400.0 -> `1h30m`."""
    milliseconds = round(seconds * 1000)
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, milliseconds = divmod(milliseconds, round(_SECONDS[unit] * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def format_size(count: int) -> str:
    """Write a size in the shortest exact way with a unit: 65536 -> `64KiB`, 64000 -> `64kB`, 1001 -> `1001`."""
    ways = []
    for power, letter in enumerate("kMGT", start=1):
        for step, suffix in ((1000, f"{letter}B"), (1024, f"{letter.upper()}iB")):
            if count and count % step**power == 0:
                ways.append(f"{count // step**power}{suffix}")
    return min(ways, key=len, default=str(count))


def format_count(number: int, noun: str, nouns: str = "") -> str:
    """Return `1 hook` or `2,000 hooks`; `nouns` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"
