"""What is beyond the gateway's reach when somebody is forgotten: named, so that whoever forgets them can look there."""

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.config.home import Home
from gateway.people.person import Person

LONGEST_READ = 4 << 20


def list_leftovers(home: Home, person: Person) -> list[str]:
    """Each with its place: lines that still let them in, copies, logs, what hooks keep."""
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
        yield f"{path}: what a hook keeps itself; `person:forgotten` tells it"


def _read(path: Path) -> str:
    """As far as it can be read, and is no flood."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def has_word(text: str, word: str) -> bool:
    """Whether it stands there by itself, and not as a piece of another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
