"""Replies, to Matrix: each part is an event under the part's own name, so that sending it again sends nothing twice.

Buttons are reactions of ours that people add to. What they stand for is kept in the message, which nobody else can
write; so a press is understood whenever it comes.
"""

import mimetypes
import uuid
from typing import Any

import anyio
from nio import AsyncClient

from gateway.adapters import (
    AdapterHost,
    Address,
    Button,
    DoubtPolicy,
    LoadedFile,
    NetworkTransport,
    Presence,
    Rate,
    RateLimiter,
    Reply,
    encode_button,
)

from .connection import ERRORS, expect, find_room, post, take_buttons_away
from .format import BUTTONS, LIMIT, MatrixText, render_messages, show_literals, write_content, write_edit
from .parts import write_part
from .reader import VOICE, MatrixFile
from .settings import MatrixSettings

LARGEST = 50_000_000
UPLOAD = 120.0  # seconds
OVERALL, POSTS, EDITS = Rate(20, 0.2), Rate(4, 1.0), Rate(4, 1.5)
LONGEST_VALUE = 1000
LONGEST_CAPTION = 2000
TYPING = 8000  # milliseconds that a sign lasts
KINDS = {"image": "m.image", "audio": "m.audio", "voice": "m.audio", "video": "m.video"}


class MatrixTransport(NetworkTransport[MatrixText]):
    """Fills `Transport`."""

    doubt: DoubtPolicy = "nonce"

    def __init__(
        self, client: AsyncClient, host: AdapterHost[MatrixFile], settings: MatrixSettings, presence: Presence
    ) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._client = client
        self._host = host
        self._pace = RateLimiter("Matrix", OVERALL)

    def can_caption(self, text: MatrixText) -> bool:
        return len(text.body) <= LONGEST_CAPTION

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "Matrix")
        await self._pace.wait(reply.address.chat_id, POSTS)
        with self._pace.heeded(reply.address.chat_id), self.calling():
            room = await find_room(self._client, reply.address.chat_id)
            if loaded.part:
                kind, content = write_part(loaded.part)
                return (await post(self._client, room, content | relate(reply, is_first=part == 0), nonce, kind),)
            contents = [await self._upload(file) for file in loaded.files]
            if contents and loaded.text is not None:
                said = write_content(loaded.text)
                contents[0] |= {name: said[name] for name in ("body", "format", "formatted_body") if name in said}
            contents += [self._write(reply, text, buttons) for text in loaded.texts]
            ids = list[str]()
            for number, content in enumerate(contents):
                related = relate(reply, is_first=part == 0 and number == 0)
                ids.append(await post(self._client, room, content | related, f"{nonce}.{number}"))
            for number, button in enumerate(buttons):
                sign = {"rel_type": "m.annotation", "event_id": ids[0], "key": button.label}
                name = f"{nonce}.sign{number}"
                ids.append(await post(self._client, room, {"m.relates_to": sign}, name, "m.reaction"))
        return tuple(ids)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if not isinstance(piece, MatrixText) or not message_ids:
            return
        await self._pace.wait(f"{reply.address.chat_id} edits", EDITS)
        with self._pace.heeded(f"{reply.address.chat_id} edits"), self.calling():
            room = await find_room(self._client, reply.address.chat_id)
            content = write_edit(self._write(reply, piece, buttons), message_ids[0])
            await post(self._client, room, content, uuid.uuid4().hex)
            if message_ids[1:] and not buttons:
                await take_buttons_away(self._client, room, message_ids[0])

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        with self._pace.heeded(address.chat_id), self.calling():
            room = await find_room(self._client, address.chat_id)
            for one in message_ids:
                expect(await self._client.room_redact(room, one))

    async def show_typing(self, address: Address) -> None:
        """For a while. What fails here changes nothing."""
        with ERRORS.logged(lambda *_: None, "typing"):
            room = await find_room(self._client, address.chat_id)
            expect(await self._client.room_typing(room, timeout=TYPING))

    def _write(self, reply: Reply, text: MatrixText, buttons: tuple[Button, ...]) -> dict[str, Any]:
        content = write_content(text)
        if buttons:
            asked = self._asked(reply)
            content[BUTTONS] = {one.label: encode_button(one, asked, LONGEST_VALUE, "Matrix") for one in buttons}
        return content

    def _asked(self, reply: Reply) -> str:
        """Whom the buttons are for: where many talk, whoever wrote what is answered; nobody known: admins alone."""
        if reply.address.chat_type == "dm":
            return ""
        return self._host.recent.author(reply.reply_to.partition(":")[0]) or "?"

    async def _upload(self, file: LoadedFile) -> dict[str, Any]:
        """What a message of this file holds, which the homeserver has and shows nobody yet."""
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        with anyio.fail_after(UPLOAD):
            sent, _keys = await self._client.upload(
                lambda _limited, _timed_out: file.data, media_type, file.name, filesize=len(file.data)
            )
        info = {"mimetype": media_type, "size": len(file.data)}
        content = {
            "msgtype": KINDS.get(file.kind, "m.file"),
            "body": file.name,
            "filename": file.name,
            "url": expect(sent).content_uri,
            "info": info,
            "m.mentions": {},
        }
        return content | ({VOICE: {}} if file.kind == "voice" else {})


def relate(reply: Reply, *, is_first: bool) -> dict[str, Any]:
    """What a message of a reply belongs to: its thread, and where many talk what it answers."""
    answered = reply.reply_to.partition(":")[0]
    if not is_first or reply.address.chat_type == "dm" or not answered.startswith("$"):
        answered = ""
    if thread := reply.address.thread_id:
        back = {"event_id": answered or thread}
        about = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": not answered, "m.in_reply_to": back}
        return {"m.relates_to": about}
    return {"m.relates_to": {"m.in_reply_to": {"event_id": answered}}} if answered else {}
