"""Data of a forgotten person beyond the gateway's reach: listed, so that you can look there."""

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.config.home import Home
from gateway.people.person import Person

LONGEST_READ = 4 << 20


def list_leftovers(home: Home, person: Person) -> list[str]:
    """List them with their places: lines that still authorize the person, copies, logs, data of hooks."""
    return [*_list_lines(home, person), *_list_copies(home), *_list_logs(home, person), *_list_hook_data(home)]


def _list_lines(home: Home, person: Person) -> Iterator[str]:
    for path in (home.config, home.hermes_config, home.env):
        for number, line in enumerate(_read(path).splitlines(), 1):
            if has_word(line, person.user_id):
                yield f"{path}:{number}: this line names them, and may still let them in"


def _list_copies(home: Home) -> Iterator[str]:
    for path in sorted((*home.backups.glob("*"), *home.replaced.glob("*"))):
        yield f"{path}: a copy from before"


def _list_logs(home: Home, person: Person) -> Iterator[str]:
    for path in sorted((*home.logs.rglob("*"), *home.hermes_logs.rglob("*"))):
        if path.is_file() and has_word(_read(path), person.user_id):
            yield f"{path}: a log that has their id; logs go with their age and size"


def _list_hook_data(home: Home) -> Iterator[str]:
    for path in sorted(home.hook_data.glob("*")):
        yield f"{path}: data that a hook keeps itself; the event `person:forgotten` asks the hook to remove it"


def _read(path: Path) -> str:
    """Return the readable start of a file."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def has_word(text: str, word: str) -> bool:
    """Return True if the word occurs on its own, and not as a part of another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
