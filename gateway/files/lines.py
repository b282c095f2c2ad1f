"""Lines of an answer that name a file to go with it, as agents for Hermes write them: `MEDIA:/path/of/chart.png`.

The line has nothing else, and is in no block of code; it may hold a path, a quoted one, or a `file:` address. A
sentence that begins alike names no file. The line is for the gateway, so people do not see it: it is removed from the
whole answer, and from its stream.
"""

import re

MARK = "MEDIA:"
FENCES = ("```", "~~~")
QUOTES = "`\"'<>"
PATH = re.compile(r"[/~.]|file:|[a-zA-Z]:[\\/]|\S*$|.*\.\w{1,8}$")  # how one begins or ends, or a word alone
BLANK_LINES = re.compile(r"\n{3,}")


def split_file_lines(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without those lines, and the files that they name, each once. Other texts stay as they are."""
    if MARK not in text:
        return text, ()
    left: list[str] = []
    names: list[str] = []
    is_code = False
    for line in text.split("\n"):
        is_code ^= line.lstrip().startswith(FENCES)
        name = "" if is_code else read_file_line(line)
        if name:
            names.append(name)
        else:
            left.append(line)
    if not names:
        return text, ()
    return BLANK_LINES.sub("\n\n", "\n".join(left)).strip(), tuple(dict.fromkeys(names))


def read_file_line(line: str) -> str:
    """Return the file that the line names, or an empty text."""
    line = line.strip().strip(QUOTES)
    name = line.removeprefix(MARK).strip().strip(QUOTES) if line.startswith(MARK) else ""
    return name if PATH.match(name) else ""


class FileLineFilter:
    """Passes on a text that comes in pieces, and keeps back any line that names a file, or may become one."""

    def __init__(self) -> None:
        self._line = ""  # as far as it has come
        self._passed = 0  # so much of it is passed on
        self._is_code = False

    def feed(self, piece: str) -> str:
        """Return the part of the text that can be shown now."""
        passed = []
        *whole, rest = piece.split("\n")
        for end in whole:
            self._line += end
            self._is_code ^= self._line.lstrip().startswith(FENCES)
            if self._is_code or not read_file_line(self._line):
                passed.append(f"{self._line[self._passed :]}\n")
            self._line, self._passed = "", 0
        self._line += rest
        if not self._may_name_a_file():
            passed.append(self._line[self._passed :])
            self._passed = len(self._line)
        return "".join(passed)

    def _may_name_a_file(self) -> bool:
        begun = self._line.lstrip().lstrip(QUOTES)
        return not self._is_code and (begun.startswith(MARK) or MARK.startswith(begun))
