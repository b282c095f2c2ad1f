"""The server's names of files and their pieces, by journal and key."""

import msgspec


class FileNames(msgspec.Struct, frozen=True):
    """The file names of one journal."""

    journal: str

    @property
    def all(self) -> str:
        """The pattern of all file descriptions."""
        return f"{self._begin}.>"

    @property
    def _begin(self) -> str:
        return f"{self.journal}.f.h"

    def file(self, key: str) -> str:
        """Return the start of the name of a file's description; the size and time follow."""
        return f"{self._begin}.{_segments_of(key)}"

    def parse(self, name: str) -> tuple[str, int, int]:
        """Parse a description's name into key, size and time."""
        *segments, size, changed = name[len(self._begin) + 1 :].split(".")
        return _key_of(segments), int(size), int(changed)

    def pieces(self, file_id: str) -> str:
        """Return the subject of a file's pieces."""
        return f"{self.journal}.f.p.{file_id}"

    def pieces_below(self, prefix: str) -> str:
        """Return the pattern of the pieces of the file at a key and of all files below the key."""
        return self.pieces(f"{_segments_of(prefix)}.>")

    def key_of_pieces(self, name: str) -> str:
        """Return the key of a file by the name of its pieces; "" if an older gateway stored the file."""
        *segments, _ = name[len(self.pieces("")) :].split(".")
        return _key_of(segments)


def make_file_id(key: str, number: str) -> str:
    """Return an id for a file's pieces that contains the key; the number `*` makes a pattern."""
    return f"{_segments_of(key)}.{number}"


def _segments_of(key: str) -> str:
    """Return a key as segments of a subject; `=` replaces a dot, since keys contain no `=`."""
    return key.replace(".", "=").replace("/", ".")


def _key_of(segments: list[str]) -> str:
    return "/".join(segments).replace("=", ".")
