"""What files and their pieces are called on the server, by the journal they belong to and by their keys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileNames:
    """Those of one journal."""

    journal: str

    @property
    def all(self) -> str:
        """Where it is said of all files what they are."""
        return f"{self._begin}.>"

    @property
    def _begin(self) -> str:
        return f"{self.journal}.f.h"

    def file(self, key: str) -> str:
        """Where it is said what a file is, but for its size and its time."""
        return f"{self._begin}.{_segments_of(key)}"

    def parse(self, name: str) -> tuple[str, int, int]:
        """The key, the size and the time of the file of which something is said there."""
        *segments, size, changed = name[len(self._begin) + 1 :].split(".")
        return _key_of(segments), int(size), int(changed)

    def pieces(self, file_id: str) -> str:
        """Under which lie all pieces of one file."""
        return f"{self.journal}.f.p.{file_id}"

    def pieces_below(self, prefix: str) -> str:
        """Those of all files whose keys have this before a slash, and of the file that has it as its key."""
        return self.pieces(f"{_segments_of(prefix)}.>")

    def key_of_pieces(self, name: str) -> str:
        """Empty where their file was put by an older gateway."""
        *segments, _ = name[len(self.pieces("")) :].split(".")
        return _key_of(segments)


def make_file_id(key: str, number: str) -> str:
    """Of one file under this key, so that its pieces say what they are of; `*`: of each."""
    return f"{_segments_of(key)}.{number}"


def _segments_of(key: str) -> str:
    """No key has a `=`."""
    return key.replace(".", "=").replace("/", ".")


def _key_of(segments: list[str]) -> str:
    return "/".join(segments).replace("=", ".")
