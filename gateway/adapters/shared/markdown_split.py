"""Markdown in pieces, for networks that show Markdown but limit the length of a message.

A piece ends at a paragraph, a line or a word; never within a character of several code points, nor, if it can be
helped, within a link, a mark or a code span. A fence that is cut is closed in one piece and opened again, with its
language, in the next; so each piece can be read by itself. As a text grows, only its last piece changes.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r"[ ]{0,3}(`{3,20}(?![^\n]*`)|~{3,20}(?!~))([^\n]*)")  # backticks in the same line begin no block
UNBREAKABLE = re.compile(
    r"!?\[[^\[\]\n]{0,300}\]\([^)\s]{0,500}\)|https?://[^\s>)]+|<[^<>\s]{1,300}>|`[^`\n]+`|\*\*[^*\n]+\*\*|__[^_\n]+__"
)
JOINING = re.compile(r"[\u200d\ufe00-\ufe0f\u0300-\u036f\U0001f3fb-\U0001f3ff]")  # these belong to the sign before
LONGEST_NAME = 20  # characters of a language's name
LONGEST_UNBREAKABLE = 2500  # characters that are searched behind a cut for links and marks


class Fence(NamedTuple):
    """An open code block: its opening line, and the mark that closes it."""

    opening: str
    mark: str


def split_markdown(markdown: str, limit: int) -> list[str]:
    """Return the messages that show this text, each of at most `limit` UTF-16 units; none for a blank text."""
    return [piece for piece in _split(markdown.rstrip(), limit) if piece.strip()]


def _split(text: str, limit: int) -> Iterator[str]:
    start, fence = 0, None
    while start < len(text):
        opening = f"{fence.opening}\n" if fence else ""
        window, room = text[start : start + limit], limit - count_utf16_units(opening)
        end = start + find_furthest_end(window, room)
        if end < len(text) or find_open_fence(window, fence):
            end = start + find_furthest_end(window, room - fence_room_of(window, fence))
        if end < len(text):
            end = find_end_before_fence(text, start, find_break(text, start, end, fence), fence)
        body, after = text[start:end], find_open_fence(text[start:end], fence)
        body = body.rstrip() if after is None else body.rstrip("\n")
        body = body if fence else body.lstrip("\n")
        yield f"{opening}{body}" + (f"\n{after.mark}" if after else "") if body.strip() else ""
        start, fence = end, after


def fence_room_of(window: str, fence: Fence | None) -> int:
    """Return the room that closing a code block may need, wherever this window is cut."""
    marks = [found.group(1) for line in window.split("\n") if (found := FENCE.match(line))]
    return max((len(mark) + 1 for mark in [*marks, *([fence.mark] if fence else [])]), default=0)


def find_break(text: str, start: int, end: int, fence: Fence | None) -> int:
    """Return the last good break in the part that fits: a paragraph, a line or a word; or else all whole characters."""
    window = text[start:end]
    if find_open_fence(window, fence):
        at = window.rfind("\n")
        return start + at + 1 if at > 0 else find_whole_end(text, start, end)
    if text[end] == "\n":
        return end
    return find_whole_end(text, start, find_word_end(text, start, end) or end)


def find_word_end(text: str, start: int, end: int) -> int:
    """Return the end of the last paragraph, line or word that fits; 0 if none ends in its second half."""
    for mark in ("\n\n", "\n", " "):
        at = text.rfind(mark, start, end)
        if at > start + (end - start) // 2:
            return at + len(mark)
    return 0


def find_whole_end(text: str, start: int, end: int) -> int:
    """Return the same end, or the start of the link or mark that it would cut, unless that is the whole piece."""
    line = max(text.rfind("\n", 0, end) + 1, start)
    for found in UNBREAKABLE.finditer(text, line, min(len(text), end + LONGEST_UNBREAKABLE)):
        if found.start() < end < found.end():
            return found.start() if found.start() > start else end
        if found.start() >= end:
            break
    return find_sign_end(text, start, end)


def find_sign_end(text: str, start: int, end: int) -> int:
    """Return the same end, or the start of the character that it would cut, unless that is the whole piece."""
    first = end
    while start + 1 < end < len(text) and (JOINING.match(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return end if end > start + 1 or not JOINING.match(text[start + 1]) else first


def find_end_before_fence(text: str, start: int, end: int, fence: Fence | None) -> int:
    """Return the same end, or the start of a code block's first line: no piece ends within or right behind it."""
    line = max(text.rfind("\n", start, max(end - 1, start)) + 1, start)
    is_opening = FENCE.match(text, line) and find_open_fence(text[start:line], fence) is None
    return line if is_opening and line > start and text[start:line].strip() else end


def find_open_fence(text: str, fence: Fence | None) -> Fence | None:
    """Return the code block that is open after a text; `fence` was open before it."""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if found is None:
            continue
        mark, rest = found.group(1), found.group(2)
        if fence is None:
            fence = Fence(f"{mark}{rest.strip()[:LONGEST_NAME]}", mark)
        elif mark[0] == fence.mark[0] and len(mark) >= len(fence.mark) and not rest.strip():
            fence = None
    return fence


def find_furthest_end(text: str, limit: int) -> int:
    """Return how many whole characters fit into the limit of UTF-16 units; at least one."""
    if len(text) <= limit and count_utf16_units(text) <= limit:
        return len(text)
    end, count = 0, 0
    while end < len(text) and (count := count + (2 if text[end] > "\uffff" else 1)) <= limit:
        end += 1
    return max(end, 1)


def count_utf16_units(text: str) -> int:
    """Return the number of UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
