"""Stickers, places and polls, as clients of Matrix write them: to and from what the gateway has of the kind.

Of polls that is what clients write today, which is not what the standard will say.
"""

import re
from collections.abc import Mapping
from typing import Any

from gateway.adapters import (
    Location,
    MessagePart,
    Poll,
    describe_parts,
    make_location,
    make_poll,
    make_sticker,
)

STICKER, PLACE = "m.sticker", "m.location"
POLL, POLL_TEXT = "org.matrix.msc3381.poll.start", "org.matrix.msc1767.text"
DEGREES = r"(-?\d{1,3}(?:\.\d{1,20})?)"
GEO = re.compile(rf"geo:{DEGREES},{DEGREES}(?![\d.])")
NAMED = "org.matrix.msc3488.location"


def part_of(event: Mapping[str, Any]) -> MessagePart | None:
    """What it is beside text and files; None: nothing of the kind."""
    content = event["content"]
    if event["type"] == STICKER:
        return make_sticker("", content.get("body"))
    if event["type"] == POLL and POLL in content:
        asked = content[POLL]
        return make_poll(asked["question"].get(POLL_TEXT), (one.get(POLL_TEXT) for one in asked["answers"]))
    if content.get("msgtype") == PLACE and (found := GEO.match(str(content.get("geo_uri")))):
        return make_location(float(found[1]), float(found[2]), (content.get(NAMED) or {}).get("description"))
    return None


def write_part(part: MessagePart) -> tuple[str, dict[str, Any]]:
    """The kind of event that shows it, and what that holds."""
    words = describe_parts([part])[1:-1]
    match part:
        case Poll():
            answers = [{"id": str(at), POLL_TEXT: one} for at, one in enumerate(part.options, 1)]
            asked = {"question": {POLL_TEXT: part.question}, "answers": answers, "max_selections": 1}
            shown = {**asked, "kind": "org.matrix.msc3381.poll.disclosed"}
            return POLL, {POLL: shown, POLL_TEXT: words, "m.mentions": {}}
        case Location():
            place = f"geo:{part.latitude:.6f},{part.longitude:.6f}"
            named = {NAMED: {"uri": place, "description": part.title}} if part.title else {}
            return "m.room.message", {"msgtype": PLACE, "body": words, "geo_uri": place, "m.mentions": {}, **named}
    raise AssertionError(f"{part} is said in words")
