"""The conversion of Markdown for Slack.

Slack renders Markdown itself, so little remains: no text may notify a whole channel, and no message may be longer than
Slack allows.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.adapters.shared.buttons import encode_button
from gateway.adapters.shared.markdown_split import Fence, count_utf16_units, find_open_fence, split_markdown
from gateway.messages.message import Button, LiteralText

LIMIT = 11_000  # Slack takes 12,000 in a text, and fails near that with buttons or other blocks beside it
LONGEST_QUESTION = 3000  # Slack documents no limit for such blocks; this much text fits into each block
LONGEST_VALUE = 2000
LONGEST_LABEL = 75
WRITTEN_MENTION = re.compile(r"<(?=!(?:channel|here|everyone|subteam))", re.IGNORECASE)  # Slack's own form
CONTAINED_FENCE = re.compile(r"[ \t]*(?:[-+*>]|\d{1,9}[.)])[^`~]*(?:`{3}|~{3})")
SPOKEN_MENTION = re.compile(r"@(?=(?:channel|here|everyone)\b)", re.IGNORECASE)
BACKTICKS = re.compile(r"`+")
ESCAPED_OR_BACKTICKS = re.compile(r"\\`+|\\.|`+")
PENDING = re.compile(r"(?:\n(?:`{3,20}|~{3,20})|[@<][^\s@<]{0,12})\Z")
LINK = re.compile(r"://|www\.|\]\(|\w\.[A-Za-z]{2,24}[/?:]")
WORD_JOINER = "\u2060"
ACTIONS = "gateway:actions"


def render_messages(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the messages that show this text; none for a text without visible content."""
    return split_markdown(disarm_mentions(markdown), limit)


def cut_pending(text: str) -> str:
    """Cut off the end that more text could change: the end of a code block, or the start of a mention."""
    return PENDING.sub("", text)


def has_link(text: str) -> bool:
    """Return True if a text may hold a link: a stream cannot switch off the previews of links."""
    return LINK.search(text) is not None


def find_difference(before: str | None, after: str) -> str | None:
    """Return the text that must be appended to the earlier one.

    Returns None if the earlier text is unknown, or is not the beginning of the new one.
    """
    return after.removeprefix(before) if before is not None and after.startswith(before) else None


class SlackQuestion(NamedTuple):
    """A whole question, as blocks that Slack does not interpret; `text` has our own words, for notifications."""

    text: str
    blocks: tuple[dict[str, Any], ...]


def show_literals(literals: Sequence[LiteralText]) -> SlackQuestion | None:
    """Return the message that shows a whole question; None if it is too long for one."""
    if sum(len(one.words) + count_utf16_units(one.text) for one in literals) > LONGEST_QUESTION:
        return None
    elements = []
    for one in literals:
        elements.append(make_text_part("rich_text_section", f"{one.words}\n"))
        if one.text:
            elements.append(make_text_part("rich_text_preformatted", one.text))
    words = "\n".join(one.words for one in literals)
    return SlackQuestion(words, ({"type": "rich_text", "elements": elements},))


def make_text_part(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "elements": [{"type": "text", "text": text}]}


def disarm_mentions(markdown: str) -> str:
    """Disarm mentions of whole channels in a text.

    Code notifies no person, and a program may well contain `@here`: so undoubted code stays as it is. `<!here>` has no
    meaning in a program, and is disarmed everywhere. A fence within a list or a quote ends with that, wherever its
    other end is: behind such a fence, all the rest is in doubt.
    """
    found = list[str]()
    fence: Fence | None = None
    is_open = is_in_doubt = False
    indent = 0
    for line in WRITTEN_MENTION.sub(disarm, markdown).split("\n"):
        before, fence = fence, find_open_fence(line, fence)
        here = len(line) - len(line.lstrip(" "))
        indent = here if fence and not before else indent
        is_in_doubt |= CONTAINED_FENCE.match(line) is not None if not before else bool(line.strip()) and here < indent
        if not is_in_doubt and (before or fence or not line.strip()):
            found.append(line)
            is_open = False
            continue
        parts, is_left_open = split_code(line)
        # If an earlier line left backticks open, text that looks like code may be between two spans.
        parts = ["".join(parts)] if is_open or is_in_doubt else parts
        parts[::2] = [SPOKEN_MENTION.sub(disarm, part) for part in parts[::2]]
        found.append("".join(parts))
        is_open |= is_left_open
    return "\n".join(found)


def disarm(mention: re.Match[str]) -> str:
    return f"{mention[0]}{WORD_JOINER}"


def split_code(line: str) -> tuple[list[str], bool]:
    """Split a line into text and code spans in turns, as CommonMark does; also return True if backticks stay open.

    A span ends at the next run of as many backticks as began it; a backslash removes a backtick from what may begin it.
    """
    ends = defaultdict[int, list[int]](list)
    for run in reversed(list(BACKTICKS.finditer(line))):
        ends[len(run[0])].append(run.end())
    parts, start, at, is_open = list[str](), 0, 0, False
    while sign := ESCAPED_OR_BACKTICKS.search(line, at):
        at = sign.end()
        if sign[0].startswith("\\``"):  # parsers differ on whether the remaining ones begin a span
            is_open = True
            break
        if sign[0].startswith("\\"):
            continue
        same = ends[len(sign[0])]
        while same and same[-1] <= at:
            same.pop()
        if same:
            parts += [line[start : sign.start()], line[sign.start() : same[-1]]]
            start = at = same[-1]
        else:
            is_open = True
    return [*parts, line[start:]], is_open


def build_actions(buttons: tuple[Button, ...], asked: str) -> list[dict[str, Any]]:
    """Make a block with the buttons; each has its value and the person it is meant for.

    Raises:
        AdapterError: a value is longer than Slack allows.
    """
    if not buttons:
        return []
    elements = []
    for number, button in enumerate(buttons):
        carried = encode_button(button, asked, LONGEST_VALUE, "Slack")
        label = {"type": "plain_text", "text": button.label[:LONGEST_LABEL]}
        elements.append({"type": "button", "action_id": f"gateway:{number}", "text": label, "value": carried})
    return [{"type": "actions", "block_id": ACTIONS, "elements": elements}]


def build_body(text: str | SlackQuestion, buttons: tuple[Button, ...], asked: str) -> dict[str, Any]:
    """Make the body of a message: plain Markdown, or with buttons blocks, and the same text for notifications."""
    if isinstance(text, SlackQuestion):
        return {"blocks": [*text.blocks, *build_actions(buttons, asked)], "text": text.text}
    if not buttons:
        return {"markdown_text": text}
    return {"blocks": [{"type": "markdown", "text": text}, *build_actions(buttons, asked)], "text": text[:3000]}
