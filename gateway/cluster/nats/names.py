"""The server's names for our subjects and patterns.

A record is stored under its subject with one more segment, made from its message id, or `-` if the record has no id. So
the server itself refuses a second record of that id for as long as the first record exists, and each of our patterns
becomes a filter of the server with one more segment.
"""

import hashlib
import re
from collections.abc import Iterable

import msgspec

NO_ID = "-"
TAKEN = "taken-"  # starts the names of the pieces of a migrated record
STREAM_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
CONSUMER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Names(msgspec.Struct, frozen=True):
    """The names of one journal on a server that may hold several."""

    journal: str

    @property
    def stream(self) -> str:
        """The stream of records."""
        return self.journal

    @property
    def _skip(self) -> int:
        """The length of every subject's prefix."""
        return len(self.journal) + 3

    @property
    def keys(self) -> str:
        """The stream of leases, and of removal notes."""
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
        """Return the start of the names of a large record's pieces; the number of the piece follows."""
        return f"{self.journal}.b.{stored[self._skip :]}.{piece_id}"

    def piece_filter(self, pattern: str) -> str:
        """Return the filter of all pieces of the records under a pattern."""
        widened = _widen(pattern)
        beginning = f"{self.journal}.b"
        return f"{beginning}.{widened[:-2]}.*.*.>" if widened.endswith(".>") else f"{beginning}.{widened}.*.*"

    @property
    def gap(self) -> str:
        """The subject of placeholders for missing records."""
        return f"{self.journal}.b.{NO_ID}"

    def live(self, subject: str) -> str:
        return f"{self.journal}.l.{subject}"

    @property
    def purged(self) -> str:
        """The live subject on which purges are announced."""
        return f"{self.journal}.p"

    @property
    def shown(self) -> str:
        """The filter of the messages by which the server shows new records to listeners."""
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
        """Return our subject for a stored or shown record's name."""
        return name[self._skip :].rpartition(".")[0]

    def stored_of_shown(self, name: str) -> str:
        return f"{self.journal}.j.{name[self._skip :]}"

    def subject_of_live(self, name: str) -> str:
        return name[self._skip :]

    def due_of_removal(self, name: str) -> int:
        return int(name[self._skip :].partition(".")[0])

    def pattern_of_filter(self, where: str) -> str:
        """Return our pattern for a filter of the server."""
        widened = where[self._skip :]
        if widened.endswith(".>"):
            return ">" if widened == "*.>" else f"{widened[:-4]}.>"
        return widened.rpartition(".")[0]


def _widen(pattern: str) -> str:
    if pattern == ">":
        return "*.>"
    return f"{pattern[:-2]}.*.>" if pattern.endswith(".>") else f"{pattern}.*"


def sequence_of_piece(name: str) -> int:
    """Return the sequence of the record that a migrated piece belongs to; 0 for other pieces."""
    piece_id = name.split(".")[-2]
    return int(piece_id.removeprefix(TAKEN)) if piece_id.startswith(TAKEN) else 0


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def consumer_name_of(name: str) -> str:
    """Return a consumer's name on the server, which allows fewer characters than the gateway."""
    return name if CONSUMER_NAME.fullmatch(name) else f"x-{digest_of(name)}"


def merge_patterns(patterns: Iterable[str]) -> list[str]:
    """Return the patterns without each pattern that another covers: the server refuses overlapping filters."""
    kept: list[str] = []
    for pattern in dict.fromkeys(patterns):
        if not any(has_pattern(one, pattern) for one in kept):
            kept = [one for one in kept if not has_pattern(pattern, one)] + [pattern]
    return kept


def has_pattern(wide: str, narrow: str) -> bool:
    """Return True if the first pattern covers all subjects of the second."""
    wanted, given = wide.split("."), narrow.split(".")
    for place, segment in enumerate(wanted):
        if segment == ">":
            return len(given) > place
        if place >= len(given) or given[place] == ">" or segment not in ("*", given[place]):
            return False
    return len(wanted) == len(given)
