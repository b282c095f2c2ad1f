"""A text with every sign made visible, for people who decide by it: an invisible one is shown as its code, `⟨U+202E⟩`.

Signs that take no room or look like nothing, signs that reverse the direction of writing, and blanks that would be cut
away are shown by their codes. So no part of the text moves or hides its neighbours, and the shown form can be read
back.
"""

import re
import unicodedata
from functools import lru_cache, partial

ODD_SIGN = re.compile(r"[^ -~\n]")
LOST_BLANK = re.compile(r"\A[ \n]+|[ \n]+\Z| +(?=\n)")  # networks cut them away
UNSEEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Me"})
# Letters and marks by their kind, which show nothing all the same; U+27E8 opens our own way of showing a sign.
UNSEEN_SIGNS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U0001d159\u27e8") | {
    chr(number) for numbers in (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)) for number in numbers
}
TO_THE_LEFT = frozenset({"R", "AL", "AN"})
MOST_MARKS = 2  # upon one letter
LONGEST_NAME = 60
LONGEST_READ = 1000  # characters of a name, before it is cleaned


def show_signs(text: str) -> str:
    """Show the text without invisible signs, and without signs that move or hide their neighbours."""
    shown = "\n".join(ODD_SIGN.sub(partial(_show_sign, is_turned=_is_turned(line)), line) for line in text.split("\n"))
    return LOST_BLANK.sub(lambda found: "".join(map(code_of, found[0])), shown)


def as_shown_name(text: str) -> str:
    """Return a foreign name as it is shown: one line without invisible signs and heaps of marks, and not too long."""
    seen, marks = list[str](), 0
    for sign in unicodedata.normalize("NFC", " ".join(text[:LONGEST_READ].split())):
        marks = marks + 1 if unicodedata.category(sign) == "Mn" else 0
        if sign == " " or not (_is_unseen(sign) or marks > MOST_MARKS):
            seen.append(sign)
    return " ".join("".join(seen).split())[:LONGEST_NAME].rstrip()


def code_of(sign: str) -> str:
    """Return the visible code of an invisible sign."""
    return f"\u27e8U+{ord(sign):04X}\u27e9"


def _show_sign(found: re.Match[str], *, is_turned: bool) -> str:
    sign, before = found[0], found.string[max(found.start() - MOST_MARKS, 0) : found.start()]
    is_seen = not (_is_unseen(sign) or (is_turned and unicodedata.bidirectional(sign) in TO_THE_LEFT))
    if is_seen and unicodedata.category(sign) == "Mn":
        is_seen = any(unicodedata.category(one)[0] == "L" for one in before)
    return sign if is_seen else code_of(sign)


@lru_cache(4096)
def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in UNSEEN_KINDS or sign in UNSEEN_SIGNS


def _is_turned(line: str) -> bool:
    """Return True if the line has letters of both directions, which the eye would read in another order."""
    if line.isascii():
        return False
    found = {unicodedata.bidirectional(sign) for sign in line}
    return "L" in found and not found.isdisjoint(TO_THE_LEFT)
