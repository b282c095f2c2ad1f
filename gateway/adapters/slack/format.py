"""From Markdown to what Slack shows of it. Slack renders Markdown itself, so little is to be done: nobody may be called
together by a text, and no message may be longer than Slack takes.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.adapters.shared.buttons import encode_button
from gateway.adapters.shared.markdown_split import FENCE, count_utf16_units, split_markdown
from gateway.messages import Button, LiteralText

LIMIT = 11_000  # Slack takes 12,000 of a text, and fails near that once anything stands beside it
LONGEST_QUESTION = 3000  # Slack says no number for such blocks; this much of a text it takes in every block
LONGEST_VALUE = 2000
LONGEST_LABEL = 75
CHANNEL_MENTION = re.compile(r"<(?=!(?:channel|here|everyone|subteam))|@(?=(?:channel|here|everyone)\b)", re.IGNORECASE)
CODE = re.compile(r"(`[^`\n]*`)")
WORD_JOINER = "\u2060"
ACTIONS = "gateway:actions"


def render_messages(markdown: str, limit: int = LIMIT) -> list[str]:
    """The messages that show this text; none for a text of which nothing can be seen."""
    return split_markdown(disarm_mentions(markdown), limit)


class SlackQuestion(NamedTuple):
    """All of a question as blocks in which nothing is looked for; `text` are our own words, for notifications."""

    text: str
    blocks: tuple[dict[str, Any], ...]


def show_literals(literals: Sequence[LiteralText]) -> SlackQuestion | None:
    """The message that shows all of a question; None where it is too long for one."""
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
    """The same text, with nothing in it that calls a whole channel. Code calls nobody, and is left as it is."""
    found, fence = list[str](), ""
    for line in markdown.split("\n"):
        if mark := FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and CHANNEL_MENTION.search(line):
            parts = CODE.split(line)
            parts[::2] = [CHANNEL_MENTION.sub(lambda one: f"{one[0]}{WORD_JOINER}", part) for part in parts[::2]]
            line = "".join(parts)
        found.append(line)
    return "\n".join(found)


def build_actions(buttons: tuple[Button, ...], asked: str) -> list[dict[str, Any]]:
    """A block with the buttons; each carries its value and who is asked.

    Raises:
        AdapterError: a value is longer than Slack carries.
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
    """What is sent: plain Markdown, or where there are buttons, blocks with the same text for notifications."""
    if isinstance(text, SlackQuestion):
        return {"blocks": [*text.blocks, *build_actions(buttons, asked)], "text": text.text}
    if not buttons:
        return {"markdown_text": text}
    return {"blocks": [{"type": "markdown", "text": text}, *build_actions(buttons, asked)], "text": text[:3000]}
