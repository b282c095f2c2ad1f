"""What comes from a server of tools, in the shape that models read: names, descriptions, results."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

LONGEST_NAME = 64  # so many characters models allow
LONGEST_DESCRIPTION = 4000
FORBIDDEN_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


def prefix_of(server: str) -> str:
    """What the names of a server's tools begin with."""
    return f"mcp_{FORBIDDEN_CHARACTERS.sub('_', server)}"


def make_tool_name(server: str, tool: str) -> str:
    """`mcp_<server>_<tool>`, in the characters that models allow; what had to be changed gets a mark of its own."""
    wanted = f"mcp_{server}_{tool}"
    name = FORBIDDEN_CHARACTERS.sub("_", wanted)
    if name == wanted and len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(wanted.encode()).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - 7]}_{mark}"


def description_of(tool: Any) -> str:
    """Cut, since a server could fill the model's window with it."""
    return str(tool.description or tool.title or tool.name)[:LONGEST_DESCRIPTION]


def is_repeatable(tool: Any) -> bool:
    """Does its server say that doing it twice does no harm?"""
    hints = tool.annotations
    return bool(hints and (hints.read_only_hint or hints.idempotent_hint))


def text_of(result: Any, limit: int) -> str:
    """A result as text; what is none is named."""
    text = "\n".join(_parts(result.content))
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    return text if len(text) <= limit else f"{text[:limit]}\n[cut after {limit} characters]"


def _parts(blocks: Iterable[Any]) -> Iterable[str]:
    for block in blocks:
        match block.type:
            case "text":
                yield block.text
            case "resource_link":
                yield f"[resource {block.uri}{f': {block.description}' if block.description else ''}]"
            case "resource":
                kept = block.resource
                yield getattr(kept, "text", None) or f"[resource {kept.uri}, {kept.mime_type or 'no text'}]"
            case kind:
                yield f"[{kind}, {getattr(block, 'mime_type', 'no text')}]"
