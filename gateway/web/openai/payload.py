"""The body of a request: a known shape, with messages that become the agent's input.

Settings of the model (`temperature` and the like) are ignored: the agent's models have their own. A field that would
change the kind of the answer is refused by its name.

Only the last message is the person's. Earlier ones are history; text of the program itself, or of its tools, is quoted
as such, so that the agent reads it without giving it power over its own instructions.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import msgspec

from gateway.messages.transcript import Entry
from gateway.web.http_request import JSON, HttpRequest
from gateway.web.openai.error import CallRefusal, refuse_field
from gateway.worker.json_decoder import JsonDecoder

MOST_BYTES = 4 << 20
LONGEST_USER = 256
TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}  # part -> its field
FROM_PROGRAM = "[The program that calls you says of this conversation, below your own instructions:]\n{}"
FROM_TOOL = "[A tool of the program that calls you said:]\n{}"
ROLES = {
    "user": ("user", "{}"),
    "assistant": ("assistant", "{}"),
    "system": ("user", FROM_PROGRAM),
    "developer": ("user", FROM_PROGRAM),
    "tool": ("user", FROM_TOOL),
    "function": ("user", FROM_TOOL),
}
_MISSING = re.compile(r"Object missing required field `([^`]+)`")

PayloadT = TypeVar("PayloadT")


class PayloadPart(msgspec.Struct):
    """A piece of a message."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class PayloadMessage(msgspec.Struct):
    """One message; without a content it was an answer with only tool calls."""

    role: str
    content: str | list[PayloadPart] | None = None


class StreamOptions(msgspec.Struct):
    """The options of a stream."""

    include_usage: bool | None = None


class PayloadFormat(msgspec.Struct):
    """The requested shape of an answer."""

    type: str = "text"


class CallPrompt(NamedTuple):
    """The agent's input, and the history."""

    text: str
    history: tuple[Entry, ...]


async def read_payload(request: HttpRequest) -> dict[str, Any]:
    """Read the body of a request.

    Raises:
        WebRefusal: it is not a JSON object, or too long.
    """
    if request.content_type != JSON:
        raise CallRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body is to be {JSON}")
    body = await request.body.read(MOST_BYTES)
    try:
        given = JsonDecoder[Any]().decode(body)
    except ValueError as error:
        raise CallRefusal(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise CallRefusal(HTTPStatus.BAD_REQUEST, "the body is not an object of JSON")
    return given


def parse_payload(given: dict[str, Any], kind: type[PayloadT]) -> PayloadT:
    """Convert a body; raises CallRefusal with the name of a field of the wrong type."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        missing = _MISSING.match(what)
        param = ".".join(filter(None, [place.rstrip("`").lstrip("."), missing[1] if missing else ""]))
        raise refuse_field(param, "this is missing" if missing else what) from None


def check_user(user: str | None) -> str:
    """Check the user's name; raises CallRefusal."""
    if user is None:
        return ""
    if not (0 < len(user) <= LONGEST_USER and user.isprintable() and user.strip() == user):
        raise refuse_field("user", f"1 to {LONGEST_USER} characters that can be seen")
    return user


def read_prompt(messages: Iterable[PayloadMessage], where: str) -> CallPrompt:
    """Split the messages: the last one of a person is the input, all others are history.

    Raises:
        CallRefusal: the last one is not a person's, or a part is not supported.
    """
    history: list[Entry] = []
    asked: int | None = None
    for at, message in enumerate(messages):
        role, form = find_role(message.role, f"{where}[{at}].role")
        text = read_content(message.content, f"{where}[{at}].content")
        if message.role == "user":
            asked = len(history)
        elif message.role not in ("system", "developer"):
            asked = None
        if text or message.role == "user":
            history.append(Entry(role, form.format(text) if form != "{}" else text))
    if asked is None:
        raise refuse_field(where, "the last message must be one of the user")
    text = history.pop(asked).content
    if not text.strip():
        raise refuse_field(where, "the last message of the user has no text")
    return CallPrompt(text, tuple(history))


def find_role(role: str, param: str) -> tuple[Any, str]:
    """Return our role, and the format of its text; raises CallRefusal."""
    if role not in ROLES:
        raise refuse_field(param, f"{role[:40]!r} is none of {', '.join(ROLES)}")
    return ROLES[role]


def read_content(content: str | list[PayloadPart] | None, param: str) -> str:
    """Return the text of a message; raises CallRefusal."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for at, part in enumerate(content):
        if part.type not in TEXTS:
            raise refuse_field(
                f"{param}[{at}]", f"only text is taken here, no {part.type[:40]!r}", "unsupported_content"
            )
        texts.append(getattr(part, TEXTS[part.type]) or "")
    return "\n".join(texts)


def check_format(form: PayloadFormat | None, param: str) -> None:
    """Raise CallRefusal for an unsupported format."""
    if form is not None and form.type != "text":
        raise refuse_field(param, "the agent answers in text; it promises no other shape", "unsupported_parameter")


def check_tool_choice(choice: Any, param: str = "tool_choice") -> None:
    """Refuse a demand for the program's own tools, which the agent never calls.

    Raises:
        CallRefusal: a tool call is demanded.
    """
    if choice not in (None, "none", "auto"):
        raise refuse_field(param, "the agent's tools are its own; it calls none of yours", "unsupported_parameter")


def refuse_fields(given: dict[str, Any], refused: Iterable[str]) -> None:
    """Refuse fields that would change the kind of the answer.

    Raises:
        CallRefusal: one of them is set.
    """
    for name in refused:
        if given.get(name) not in (None, False, 0, "", [], {}):
            raise refuse_field(name, "this cannot be honoured here", "unsupported_parameter")
