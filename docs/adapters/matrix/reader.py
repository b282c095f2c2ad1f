"""What people did in a room, as messages of the gateway. A room of two is a direct chat."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from nio import AsyncClient, MatrixRoom

from gateway.adapters import (
    AdapterHost,
    Address,
    Attachment,
    IncomingMessage,
    Message,
    add_context,
    decode_button,
    describe_parts,
    describe_reply,
    kind_of,
    make_reaction,
)

from .connection import fetch_event
from .format import BUTTONS
from .parts import POLL, STICKER, part_of

PLATFORM = "matrix"
TEXTS = ("m.text", "m.emote")
FILES = {
    "m.image": kind_of("image/any"),
    "m.audio": kind_of("audio/any"),
    "m.video": kind_of("video/any"),
    "m.file": kind_of(""),
}
VOICE = "org.matrix.msc3245.voice"
QUOTED = re.compile(r"> (?:\* )?<@")  # with which the repetition of what is answered begins

Event: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """A file that came in: what the sender says of it, where it lies, and which event brought it."""

    about: Attachment
    place: str
    event: str


@dataclass(frozen=True, slots=True)
class MatrixIncoming:
    """What is taken; `asked` is whom a button was for that was pressed."""

    incoming: IncomingMessage[MatrixFile]
    asked: str = ""


class MatrixReader:
    """Reads for one account."""

    def __init__(self, client: AsyncClient, host: AdapterHost[MatrixFile]) -> None:
        self._client = client
        self._host = host

    async def read(self, room: MatrixRoom, event: Event) -> MatrixIncoming | None:
        """None: it is not for us."""
        if event["sender"] == self._client.user_id:
            return None
        if event["type"] in ("m.room.message", STICKER, POLL):
            return await self._read_message(room, event)
        if event["type"] == "m.reaction":
            return await self._read_reaction(room, event)
        return None

    async def _read_message(self, room: MatrixRoom, event: Event) -> MatrixIncoming | None:
        related = event["content"].get("m.relates_to") or {}
        is_edit = related.get("rel_type") == "m.replace"
        content = event["content"]["m.new_content"] if is_edit else without_quote(event["content"])
        part = part_of(event)
        if part is None and content.get("msgtype") not in (*TEXTS, *FILES):
            return None  # what bots say is a notice; and what has lost its content was taken back
        parts, files = (part,) if part else (), () if is_edit else files_of(content, event["event_id"])
        text = describe_parts(parts) or self._text_of(content)
        if not text and not files:
            return None
        address = address_of(room, {} if is_edit else related)
        answered = "" if is_edit else str((related.get("m.in_reply_to") or {}).get("event_id") or "")
        if related.get("rel_type") == "m.thread" and related.get("is_falling_back"):
            answered = ""
        quoted = await fetch_event(self._client, room.room_id, answered) if answered else None
        is_own = quoted is not None and quoted["sender"] == self._client.user_id
        is_command = self._host.is_command(text)
        is_called = is_own or self._is_called(content)
        is_overheard = not self._host.is_for_us(address, is_called=is_called, is_command=is_command)
        if is_overheard and not (text and part is None and self._host.is_heard(address)):
            return None
        said = str(without_quote(quoted["content"]).get("body", "")) if quoted else ""
        message = Message(
            f"{related['event_id']}:edit:{event['event_id']}" if is_edit else event["event_id"],
            address,
            event["sender"],
            text if is_own or is_command or is_overheard else add_context(text, quoted=said),
            user_name=str(room.user_name(event["sender"]) or ""),
            kind="edit" if is_edit else "command" if is_command else "text",
            reply_to=answered,
            sent_at=event["origin_server_ts"] / 1000,
            extra=describe_reply(said, quoted["sender"], is_own=is_own) if quoted else {},
            parts=parts,
            is_overheard=is_overheard,
        )
        about = files_of(quoted["content"], quoted["event_id"]) if quoted else ()
        shown = tuple(one for one in about if one.about.kind in ("image", "document"))
        return MatrixIncoming(IncomingMessage(message, files, partial(dict, event), shown))

    async def _read_reaction(self, room: MatrixRoom, event: Event) -> MatrixIncoming | None:
        """A sign of somebody's; under a question of ours it may be a button."""
        related = event["content"]["m.relates_to"]
        target, sign, sender = related["event_id"], related["key"], event["sender"]
        shown = await fetch_event(self._client, room.room_id, target)
        if shown is None:
            return None
        address = address_of(room, shown["content"].get("m.relates_to") or {})
        carried = buttons_of(shown).get(sign) if shown["sender"] == self._client.user_id else None
        if carried is None:
            return MatrixIncoming(IncomingMessage(make_reaction(address, sender, target, added=[sign])))
        value, asked = decode_button(carried)
        message = Message(
            f"{target}:pressed",  # one press counts
            address,
            sender,
            value,
            user_name=str(room.user_name(sender) or ""),
            kind="button",
            reply_to=target,
            sent_at=event["origin_server_ts"] / 1000,
        )
        return MatrixIncoming(IncomingMessage(message), asked)

    def _is_called(self, content: Event) -> bool:
        called = (content.get("m.mentions") or {}).get("user_ids") or ()
        return self._client.user_id in called or self._client.user_id in str(content.get("body", ""))

    def _text_of(self, content: Event) -> str:
        """What was said, without the call to us at its beginning; of a file, what was said to it."""
        text = str(content.get("body") or "")
        if content["msgtype"] in FILES:
            text = text if content.get("filename") not in (None, text) else ""
        me = self._client.user_id
        names = "|".join(re.escape(one) for one in (me, me.partition(":")[0], me.partition(":")[0][1:]))
        return re.sub(rf"\A(?:{names})[:,]\s*", "", text) if self._is_called(content) else text


def gone_from(event: Event) -> str:
    """The message that somebody took back by this, or left without words; empty: none."""
    if event["type"] == "m.room.redaction":
        return str(event.get("redacts") or event["content"]["redacts"])
    related = event["content"].get("m.relates_to") or {}
    new = event["content"].get("m.new_content") or {}
    is_empty = new.get("msgtype") in TEXTS and not str(new.get("body") or "").strip()
    return str(related["event_id"]) if is_empty and related.get("rel_type") == "m.replace" else ""


def without_quote(content: Event) -> Event:
    """The content of a message without the lines in which older clients repeat what it answers."""
    body = str(content.get("body") or "")
    if "m.in_reply_to" not in (content.get("m.relates_to") or {}) or not QUOTED.match(body):
        return content
    said = itertools.dropwhile(lambda line: line.startswith("> "), body.split("\n"))
    return {**content, "body": "\n".join(said).removeprefix("\n")}


def address_of(room: MatrixRoom, related: Event) -> Address:
    """The room, and in it the thread, if there is one."""
    thread = str(related["event_id"]) if related.get("rel_type") == "m.thread" else ""
    if room.member_count <= 2:
        return Address(PLATFORM, room.room_id, "dm", thread)
    return Address(PLATFORM, room.room_id, "thread" if thread else "group", thread)


def files_of(content: Event, event: str) -> tuple[MatrixFile, ...]:
    """The file of a message. One that is encrypted is none that we could read."""
    if content.get("msgtype") not in FILES or not content.get("url"):
        return ()
    info = content.get("info") or {}
    media_type = str(info.get("mimetype") or "application/octet-stream")
    kind = kind_of(media_type) if content["msgtype"] == "m.file" else FILES[content["msgtype"]]
    name = str(content.get("filename") or content.get("body") or "")
    size = info.get("size")
    about = Attachment(
        "voice" if VOICE in content else kind, "", name, media_type, size if isinstance(size, int) else 0
    )
    return (MatrixFile(about, str(content["url"]), event),)


def buttons_of(event: Event) -> Mapping[str, Any]:
    """The buttons of a message of ours as it stands now, by what is written on them."""
    edit = ((event.get("unsigned") or {}).get("m.relations") or {}).get("m.replace")
    content = edit["content"].get("m.new_content", {}) if edit else event["content"]
    found = content.get(BUTTONS)
    return found if isinstance(found, Mapping) else {}
