"""The page's chat over HTTP: messages arrive by POST, and updates leave on a stream of the chat's own.

The chat has a stream beside the one of events: it belongs to one session, its numbers are the journal's and so
outlive the daemon, and people who may only chat have it too. A POST is answered once its content is in the journal.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Annotated, TypeVar
from urllib.parse import quote

import msgspec

from gateway.adapters.page.chat import (
    LARGEST_FILE,
    MEDIA_TYPE,
    ButtonPress,
    FileRefused,
    MessageId,
    PageChat,
    PageMessage,
    Thread,
)
from gateway.adapters.page.places import address_of
from gateway.adapters.page.stream import MOST_SHOWN, ChatStream, ChatUpdate
from gateway.adapters.shared.files import read_attachment
from gateway.control.server import encode_message
from gateway.dispatcher.commands import Command
from gateway.errors import AdapterError, EngineError, GatewayError
from gateway.messages.message import Receipt
from gateway.records.records import NEWEST, Login
from gateway.web.http_request import JSON, HttpRequest, HttpResponse, HttpStream, SendPiece, answer_json
from gateway.web.live_stream import LiveStreams, encode_event
from gateway.web.request_body import WebRefusal

log = logging.getLogger(__name__)

LARGEST_SAID = 4_200_000  # bytes of JSON
LARGEST_SENT = 100_000_000
# The types that a browser may show or play by itself, since nothing in them runs. It saves all others.
SHOWN_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp"}
    | {"audio/ogg", "audio/mpeg", "audio/wav", "audio/mp4", "audio/flac", "audio/webm"}
)
SAVED_TYPE = "application/octet-stream"
NOT_NOW = "the gateway cannot take this now; it is tried again"
NOTHING = "the chat has nothing of that name"

QueryT = TypeVar("QueryT", bound=msgspec.Struct)


class ChatQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query for a part of one session, behind or before a number."""

    thread: Thread = ""
    seen: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    before: Annotated[int, msgspec.Meta(ge=1, le=NEWEST)] = NEWEST


class NewFileQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The description of an uploaded file, beside its bytes; uploads under the same `id` are one file."""

    id: MessageId
    name: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    type: Annotated[str, msgspec.Meta(pattern=rf"^({MEDIA_TYPE})?\Z")] = ""


class ShownFileQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query for one file of the message with this id."""

    message: str
    number: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    thread: Thread = ""


class ChatRoom(msgspec.Struct, eq=False):
    """Answers the requests of the page's chat, from people whom the page has authorized."""

    chat: PageChat
    stream: ChatStream
    streams: LiveStreams
    headers: Mapping[str, str]
    redact: Callable[[str], str]

    async def answer(self, request: HttpRequest, login: Login) -> HttpResponse | HttpStream:
        """Answer a request; raises WebRefusal."""
        person = login.person
        if self.chat.find_role(person) is None:
            raise WebRefusal(HTTPStatus.FORBIDDEN, "you may not chat here")
        try:
            return await (self._take(request, person) if request.method == "POST" else self._show(request, login))
        except WebRefusal:
            raise
        except FileRefused as error:
            raise WebRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error)) from None
        except AdapterError as error:
            if error.retry_after:
                what, pause = str(error), f"{error.retry_after:.0f}"
                raise WebRefusal(HTTPStatus.TOO_MANY_REQUESTS, what, Retry_After=pause) from None
            raise WebRefusal(HTTPStatus.CONFLICT, self.redact(str(error))) from None
        except EngineError as error:  # the error names files: only the operator may see it
            log.warning("the page's chat: %s", error)
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_NOW, Retry_After="2") from None
        except GatewayError as error:
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, self.redact(str(error)), Retry_After="2") from None

    async def _take(self, request: HttpRequest, person: str) -> HttpResponse:
        match request.path:
            case "/chat/say":
                return answer_receipt(await self.chat.say(person, await read_json(request, PageMessage)))
            case "/chat/press":
                return answer_receipt(await self.chat.press(person, await read_json(request, ButtonPress)))
            case "/chat/file":
                return await self._keep_file(request, person)
        raise WebRefusal(HTTPStatus.NOT_FOUND, NOTHING)

    async def _show(self, request: HttpRequest, login: Login) -> HttpResponse | HttpStream:
        person = login.person
        match request.path:
            case "/chat/live":
                return self._open_stream(request, login)
            case "/chat/past":
                return await self._show_past(request, person)
            case "/chat/file":
                return await self._send_file(request, person)
            case "/chat/list":
                return answer_json({"chats": await self.stream.list_chats(person)})
            case "/chat/commands":
                return answer_json({"commands": list(map(describe_command, self.chat.list_commands(person)))})
        raise WebRefusal(HTTPStatus.NOT_FOUND, NOTHING)

    async def _keep_file(self, request: HttpRequest, person: str) -> HttpResponse:
        about = read_query(request, NewFileQuery)
        async with aclosing(request.body.take(LARGEST_FILE)) as pieces:
            kept = await self.chat.keep_file(person, about.id, about.name, about.type, pieces)
        return answer_json({"file": kept.path.rpartition("/")[2], "name": kept.name, "type": kept.media_type})

    def _open_stream(self, request: HttpRequest, login: Login) -> HttpStream:
        asked = read_query(request, ChatQuery)
        last = request.headers.get("last-event-id", "")
        seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else asked.seen
        tell = partial(self._tell, login.person, asked.thread, seen)
        return self.streams.open(login, tell, lambda: self.chat.find_role(login.person) is not None, self.headers)

    async def _tell(self, person: str, thread: str, seen: int, send: SendPiece) -> None:
        await send(b"retry: 1000\n\n")
        async with aclosing(self.stream.follow(address_of(person, thread), seen)) as told:
            async for news in told:
                await send(b"".join(map(encode_update, news)))

    async def _show_past(self, request: HttpRequest, person: str) -> HttpResponse:
        asked = read_query(request, ChatQuery)
        past = await self.stream.read_past(address_of(person, asked.thread), asked.before)
        shown = [{"number": one.number, **one.data} for one in past]
        return answer_json({"past": shown, "more": len(past) == MOST_SHOWN})

    async def _send_file(self, request: HttpRequest, person: str) -> HttpResponse:
        """Send a file of a message, by its number there; a browser saves it unless its type is safe to show."""
        asked = read_query(request, ShownFileQuery)
        shown = await self.stream.find_shown(address_of(person, asked.thread), asked.message)
        if shown is None or asked.number >= len(shown.attachments):
            raise WebRefusal(HTTPStatus.NOT_FOUND, "this conversation has no such file")
        (file,) = await self.chat.files.find_all([shown.attachments[asked.number]])
        name, data = await read_attachment(file, LARGEST_SENT, "the page")
        kind = file.media_type if file.media_type in SHOWN_TYPES else SAVED_TYPE
        how = "inline" if kind != SAVED_TYPE else f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        return HttpResponse(body=data, content_type=kind, headers={**self.headers, "Content-Disposition": how})


def describe_command(command: Command) -> dict[str, str]:
    """Return a row of the menu."""
    return {"name": command.name, "usage": command.usage, "summary": command.summary}


def encode_update(news: ChatUpdate) -> bytes:
    return encode_event(news.kind, encode_message(news.data), str(news.number or ""))


def answer_receipt(receipt: Receipt) -> HttpResponse:
    """Answer that the message was taken; raises WebRefusal if it was not."""
    match receipt.decision:
        case "too_fast":
            raise WebRefusal(HTTPStatus.TOO_MANY_REQUESTS, receipt.settled or "", Retry_After="60")
        case "stranger" | "forbidden":
            raise WebRefusal(HTTPStatus.FORBIDDEN, receipt.settled or "you may not chat here")
    return answer_json({"decision": receipt.decision})


async def read_json(request: HttpRequest, kind: type[QueryT], limit: int = LARGEST_SAID) -> QueryT:
    """Decode a JSON body of this shape; decoding stops at the first thing that has another one.

    Raises:
        WebRefusal: the body does not have the shape.
    """
    if request.content_type != JSON:
        raise WebRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"this takes {JSON}")
    try:
        return msgspec.json.decode(await request.body.read(limit), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, f"this: {error}") from None


def read_query(request: HttpRequest, kind: type[QueryT]) -> QueryT:
    """Convert the query of a request; raises WebRefusal if it does not have this shape."""
    try:
        return msgspec.convert(request.fields, kind, strict=False)
    except (msgspec.ValidationError, OverflowError, ValueError) as error:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, f"this: {error}") from None
