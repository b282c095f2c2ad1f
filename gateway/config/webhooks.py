"""The settings of webhooks, and the message that a webhook makes of a request.

A template is a text with paths into the payload, such as `{issue.title}`, and nothing else. A path is looked up in
mappings and lists alone, part by part, so that no text of a sender reaches anything but data. The value is quoted as a
JSON text: the model always sees where it begins and ends.
"""

import json
import re
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from gateway.config.fields import VARIABLE_PATTERN, describe
from gateway.yaml_source.units import Size

WEBHOOK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
LONGEST_VALUE = 4000  # characters of what one path finds
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PATH = re.compile(r"[A-Za-z0-9_-]{1,100}(?:\.[A-Za-z0-9_-]{1,100}){0,20}")

WebhookSigner: TypeAlias = Literal["github", "stripe", "slack", "standard", "token"]


class WebhookKeys(Struct, frozen=True, kw_only=True):
    """The way in which the sender of `/webhooks/NAME` is verified; a HOOK.yaml has the same keys."""

    secret_env: Annotated[
        str, describe("the variable with the secret; its value belongs into `.env`", pattern=VARIABLE_PATTERN)
    ]
    verify: Annotated[
        WebhookSigner, describe("who signs: `standard` is Standard Webhooks, `token` the secret in a header")
    ]


class WebhookSettings(WebhookKeys, frozen=True, kw_only=True):
    """A URL, `POST /webhooks/NAME`, that emits an event for hooks and, with a template, sends a message to an agent."""

    template: Annotated[
        str, describe("makes it a message to an agent; `{issue.title}` is that value of the call, quoted")
    ] = ""
    when: Annotated[dict[str, Any], describe("make a message only if these fields fit: `{kind: issues.opened}`")] = {}
    session: Annotated[
        str,
        describe(
            "where the answer goes: `PLATFORM:CHAT`, a platform for its home channel, or `home`; a key `agent:...` is "
            "that conversation itself. By default the answer stays in a conversation of its own"
        ),
    ] = ""
    agent: Annotated[str, describe("the agent that answers, a name under `agents`; by default as `routes` says")] = ""
    role: Annotated[Literal["guest", "user"], describe("the role whose tools the agent has for it")] = field(
        default="guest", name="as"
    )
    max_size: Annotated[Size, describe("the largest size of one call", ge=1000, le=8_000_000)] = 1_000_000
    rate: Annotated[int, describe("accepted calls a minute", ge=1)] = 120


class PayloadPath(NamedTuple):
    """The path of a value in a payload."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


MessageTemplate: TypeAlias = tuple[str | PayloadPath, ...]


def parse_template(text: str) -> MessageTemplate:
    """Split a template into its pieces. Raises ValueError, which names the fault and its place."""
    pieces: list[str | PayloadPath] = []
    at = 0
    for found in _PIECE.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        if found[0] in ("{{", "}}"):
            pieces.append(found[0][0])
        elif found[1] is not None and _PATH.fullmatch(found[1]):
            pieces.append(PayloadPath(tuple(found[1].split("."))))
        else:
            line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
            raise ValueError(f"has `{found[0][:60]}` in its line {line}, at {column}, which is not a path")
    return tuple(piece for piece in (*pieces, text[at:]) if piece)


def render_template(template: MessageTemplate, payload: Any) -> tuple[str, list[str]]:
    """Fill the template. Return the message and the paths without a value, which become an empty text."""
    missing: list[str] = []
    pieces: list[str] = []
    for piece in template:
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        value = _find_value(piece, payload)
        if value is None:
            missing.append(str(piece))
        pieces.append(quote_value(value))
    return "".join(pieces), missing


def quote_value(value: Any) -> str:
    """Quote a foreign text for the model."""
    written = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    cut = written if len(written) <= LONGEST_VALUE else f"{written[:LONGEST_VALUE]}…"
    return json.dumps(cut, ensure_ascii=False)


def _find_value(path: PayloadPath, payload: Any) -> Any:
    found = payload
    for part in path.parts:
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isascii() and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found
