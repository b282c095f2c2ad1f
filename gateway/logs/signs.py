"""A text to the letter, for people who decide by it: each sign is seen, or its code is, as `⟨U+202E⟩`.

Shown by their codes are signs that take no room or look like nothing, that turn the direction of writing around, and
blanks where they would be cut away. So nothing in the text moves or hides what stands around it, and what is shown can
be read back.
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


def show_signs(text: str) -> str:
    """The same text with nothing in it that cannot be seen, and nothing that moves or hides what stands around it."""
    shown = "\n".join(ODD_SIGN.sub(partial(_show_sign, is_turned=_is_turned(line)), line) for line in text.split("\n"))
    return LOST_BLANK.sub(lambda found: "".join(map(code_of, found[0])), shown)


def code_of(sign: str) -> str:
    """How a sign is shown that cannot be."""
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
    """Does it hold letters of both directions? The eye would read them in another order than they stand in."""
    if line.isascii():
        return False
    found = {unicodedata.bidirectional(sign) for sign in line}
    return "L" in found and not found.isdisjoint(TO_THE_LEFT)
