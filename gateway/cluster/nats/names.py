"""Our subjects and patterns as those of the server.

A record stands under its subject with one segment more, made of its message id, or `-` where it has none. So the
server itself keeps a second record of that id away, for as long as the first one is there, and a pattern of ours is a
filter of the server's with one segment more.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

NO_ID = "-"
TAKEN = "taken-"  # begins the name of the pieces of a record that was taken along from another journal
STREAM_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
CONSUMER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one journal on a server that may hold several."""

    journal: str

    @property
    def stream(self) -> str:
        """The stream of records."""
        return self.journal

    @property
    def _skip(self) -> int:
        """How long the beginning of each subject is."""
        return len(self.journal) + 3

    @property
    def keys(self) -> str:
        """The stream of leases, and of what is to be removed later."""
        return f"{self.journal}-keys"

    @property
    def files(self) -> str:
        """The stream of files."""
        return f"{self.journal}-files"

    def stored(self, subject: str, msg_id: str | None) -> str:
        return f"{self.journal}.j.{subject}.{NO_ID if msg_id is None else digest_of(msg_id)}"

    def stored_filter(self, pattern: str) -> str:
        return f"{self.journal}.j.{_widen(pattern)}"

    def piece(self, stored: str, piece_id: str) -> str:
        """Where what is too large for one message lies, but for the numbers of its pieces."""
        return f"{self.journal}.b.{stored[self._skip :]}.{piece_id}"

    def piece_filter(self, pattern: str) -> str:
        """All pieces of the records under a pattern."""
        widened = _widen(pattern)
        beginning = f"{self.journal}.b"
        return f"{beginning}.{widened[:-2]}.*.*.>" if widened.endswith(".>") else f"{beginning}.{widened}.*.*"

    @property
    def gap(self) -> str:
        """Under which stands what holds the place of a record that is no more."""
        return f"{self.journal}.b.{NO_ID}"

    def live(self, subject: str) -> str:
        return f"{self.journal}.l.{subject}"

    @property
    def purged(self) -> str:
        """Where whoever removed something tells all others."""
        return f"{self.journal}.p"

    @property
    def shown(self) -> str:
        """All that the server publishes of what it stored."""
        return f"{self.journal}.r.>"

    @property
    def all_records(self) -> str:
        return f"{self.journal}.j.>"

    @property
    def all_pieces(self) -> str:
        return f"{self.journal}.b.>"

    @property
    def leases(self) -> str:
        return f"{self.journal}.k.*"

    def lease(self, key: str) -> str:
        return f"{self.journal}.k.{digest_of(key)}"

    def removal(self, due: int | str, name: str) -> str:
        return f"{self.journal}.d.{due}.{name}"

    def subject_of_stored(self, name: str) -> str:
        """The subject of ours under which the server has a record, or shows it."""
        return name[self._skip :].rpartition(".")[0]

    def stored_of_shown(self, name: str) -> str:
        return f"{self.journal}.j.{name[self._skip :]}"

    def subject_of_live(self, name: str) -> str:
        return name[self._skip :]

    def due_of_removal(self, name: str) -> int:
        return int(name[self._skip :].partition(".")[0])

    def pattern_of_filter(self, where: str) -> str:
        """The pattern of ours that a filter of the server's was made of."""
        widened = where[self._skip :]
        if widened.endswith(".>"):
            return ">" if widened == "*.>" else f"{widened[:-4]}.>"
        return widened.rpartition(".")[0]


def _widen(pattern: str) -> str:
    if pattern == ">":
        return "*.>"
    return f"{pattern[:-2]}.*.>" if pattern.endswith(".>") else f"{pattern}.*"


def sequence_of_piece(name: str) -> int:
    """The sequence of the record whose piece this is, where that was taken along; else 0."""
    piece_id = name.split(".")[-2]
    return int(piece_id.removeprefix(TAKEN)) if piece_id.startswith(TAKEN) else 0


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def consumer_name_of(name: str) -> str:
    """The server takes few characters in the name of a consumer."""
    return name if CONSUMER_NAME.fullmatch(name) else f"x-{digest_of(name)}"


def merge_patterns(patterns: Iterable[str]) -> list[str]:
    """The patterns without those that another one says too: the server refuses them together."""
    kept: list[str] = []
    for pattern in dict.fromkeys(patterns):
        if not any(has_pattern(one, pattern) for one in kept):
            kept = [one for one in kept if not has_pattern(pattern, one)] + [pattern]
    return kept


def has_pattern(wide: str, narrow: str) -> bool:
    """Asks whether all subjects under the second pattern are under the first one."""
    wanted, given = wide.split("."), narrow.split(".")
    for place, segment in enumerate(wanted):
        if segment == ">":
            return len(given) > place
        if place >= len(given) or given[place] == ">" or segment not in ("*", given[place]):
            return False
    return len(wanted) == len(given)
