"""From Markdown to what Matrix shows: the text as it is, and beside it the same in HTML."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyromark

from gateway.adapters import LiteralText, split_markdown

LIMIT = 8000  # UTF-16 units of one message
MOST_BYTES = 24_000  # of its HTML: an event has at most 65,536 bytes, and an edit holds all of it beside the rest
OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
BUTTONS = "io.hermes_gateway.buttons"


@dataclass(frozen=True, slots=True)
class MatrixText:
    """One message: what it says, and how that looks; empty: as it is."""

    body: str
    html: str = ""


def render_messages(markdown: str) -> list[MatrixText]:
    """The messages that show this text."""
    return [MatrixText(one, to_html(one)) for one in split_markdown(markdown, LIMIT)]


def show_literals(literals: Sequence[LiteralText]) -> MatrixText | None:
    """The message that shows all of a question, each text in a block of its own; None where it takes more than one."""
    body = "\n".join(f"{one.words}\n{one.text}".rstrip() for one in literals)
    blocks = []
    for one in literals:
        blocks.append(f"<p>{escape(one.words)}</p>")
        blocks += [f"<pre><code>{escape(one.text)}</code></pre>"] if one.text else []
    if len(body.encode("utf-16-le")) // 2 > LIMIT:
        return None
    whole = "".join(blocks)
    return MatrixText(body, whole) if len(whole.encode()) <= MOST_BYTES else None


def to_html(markdown: str) -> str:
    """Markdown as HTML, in which nothing is HTML that somebody wrote; empty where that is too much."""
    source, found = markdown.encode(), bytearray()
    at = 0
    for event, where in pyromark.events_with_range(markdown, options=OPTIONS):
        if isinstance(event, dict) and event.keys() & {"Html", "InlineHtml"}:
            found += source[at : where["start"]]
            found += source[where["start"] : where["end"]].replace(b"<", b"&lt;")
            at = where["end"]
    found += source[at:]
    shown = pyromark.html(found.decode(), options=OPTIONS).strip()
    return shown if len(shown.encode()) <= MOST_BYTES else ""


def write_content(text: MatrixText) -> dict[str, Any]:
    """What a message holds. It calls nobody, whatever stands in it, and asks for no look at what it links to."""
    content: dict[str, Any] = {"msgtype": "m.text", "body": text.body, "m.mentions": {}, "com.beeper.linkpreviews": []}
    if text.html:
        content |= {"format": "org.matrix.custom.html", "formatted_body": text.html}
    return content


def write_edit(content: dict[str, Any], event: str) -> dict[str, Any]:
    """What makes a message show something else; clients that know no edits show its beginning."""
    beginning = {"msgtype": content["msgtype"], "body": f"* {content['body'][:200]}", "m.mentions": {}}
    return {**beginning, "m.new_content": content, "m.relates_to": {"rel_type": "m.replace", "event_id": event}}


def escape(text: str) -> str:
    """For HTML, as it is."""
    return html.escape(text, quote=False)
