"""Telegram's Bot API on loopback, as far as a bot uses it; as strict about lengths and entities as the real one."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from gateway.messages.parts import Contact, Location, MessagePart, Poll, Sticker
from gateway.testing.networks.wire import ANN, GROUP, Shown

TOKEN = "4242:AAHfiqksKZ8WmR2zSjiQ7_v0pnWEvXyZabc"
BOT = {"id": 4242, "is_bot": True, "first_name": "Gate", "username": "gate_bot", "can_read_all_group_messages": True}


class Refused(Exception):
    """An error as the Bot API tells it."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters


@dataclass
class TelegramWire:
    """Fills `Wire`. `calls` has everything that the bot asked for; `ills` are told to the next calls of a method."""

    network: str = "telegram"
    settings: str = ""
    limit: int = 4096
    shown: list[Shown] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ills: dict[str, list[Refused]] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    token: str = TOKEN
    url: str = ""
    middlewares: list[Middleware] = field(default_factory=list)  # of the server
    tells_sizes: bool = True  # of files, with their messages
    files_flow: asyncio.Event = field(default_factory=asyncio.Event)
    webhook: str = ""
    forbid_edits: bool = False
    has_drafts: bool = True  # older servers have none
    holds_polls: bool = True
    strange: list[web.Response] = field(
        default_factory=list
    )  # what the next messages that were taken are answered with
    bot: dict[str, Any] = field(default_factory=lambda: dict(BOT))
    reactions: dict[str, list[str]] = field(default_factory=dict)  # of the bot's, under whose message
    reacted: list[str] = field(default_factory=list)
    _served: list[dict[str, Any]] = field(default_factory=list)
    _files: dict[str, bytes] = field(default_factory=dict)
    _texts: dict[str, dict[str, Any]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    _open: set[asyncio.Transport] = field(default_factory=set)
    _numbers: Any = field(default_factory=lambda: itertools.count(100))
    overlaps: int = 0  # polls that began while another one was waiting
    _polls: set[asyncio.Transport] = field(default_factory=set)
    polls: int = 0
    has_previews: bool = False  # nobody promised that there are none
    ago: float = 0.0  # seconds by which what happens now happened before
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": self.url,
            "TELEGRAM_BASE_FILE_URL": f"{self.url}/file",
        }

    def known_as(self, person: str) -> str:
        return person

    def own(self, person: str) -> str:
        return f"access: {{owners: {{telegram: ['{self.known_as(person)}']}}}}\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self.files_flow.set()
        app = web.Application(client_max_size=60_000_000, middlewares=self.middlewares)
        app.router.add_post("/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{name}", self._file)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            self.hang_up()
            await runner.cleanup()

    async def write(self, text: str, *, by: str = ANN, chat: str = "", thread: str = "", reply_to: str = "") -> str:
        return self.told(self.message(by, chat or by, text=text, **self._where(thread, reply_to)))

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None:
        edited = {**self._texts[message], "text": text, "edit_date": int(time.time())}
        self.update("edited_message", edited)

    async def delete(self, message: str, *, by: str = ANN) -> None:
        raise AssertionError(f"nobody is told that {by} took {message} back")

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN, chat: str = "") -> str:
        album = {"media_group_id": f"album{next(self._numbers)}"} if len(files) > 1 else {}
        ids: list[str] = []
        for name, data in files:
            file = f"file{next(self._numbers)}"
            self._files[file] = data
            about: dict[str, Any] = {"file_id": file, "file_unique_id": f"u-{file}"}
            about |= {"file_size": len(data)} if self.tells_sizes else {}
            if name.endswith(".jpg"):
                kind: dict[str, Any] = {"photo": [{**about, "width": 10, "height": 10}]}
            elif name.endswith(".ogg"):
                kind = {"voice": {**about, "duration": 1, "mime_type": "audio/ogg"}}
            else:
                kind = {"document": {**about, "file_name": name, "mime_type": "application/pdf"}}
            said = {"caption": caption} if caption and not ids else {}
            ids.append(self.told(self.message(by, chat or by, **kind, **said, **album)))
        return ids[0]

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        self.told(self.message(by, by, **said_of(part)))

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None:
        if label not in message.buttons:
            raise AssertionError(f"there is no button {label} under {message.text!r}")
        shown = {
            "message_id": int(message.id),
            "date": int(time.time()),
            "chat": chat_of(message.chat),
            "from": BOT,
            "text": message.text,
        }
        if message.reply_to:
            ours = {**shown, "message_id": int(message.reply_to)}
            shown["reply_to_message"] = self._texts.get(message.reply_to, ours)
        query = {"id": f"q{next(self._numbers)}", "from": user(by), "chat_instance": "c", "message": shown}
        self.update("callback_query", {**query, "data": message.buttons[label]})

    async def react(self, message: str, emoji: str, *, by: str = ANN, is_taken_back: bool = False) -> None:
        change = {"chat": chat_of(by), "message_id": int(message), "user": user(by), "date": int(time.time())}
        shown: list[dict[str, str]] = [{"type": "emoji", "emoji": emoji}]
        old, new = (shown, []) if is_taken_back else ([], shown)
        self.update("message_reaction", {**change, "old_reaction": old, "new_reaction": new})

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        name = f"@{BOT['username']}"
        entities = [{"type": "mention", "offset": 0, "length": len(name)}]
        return self.told(self.message(by, chat, text=f"{name} {text}", entities=entities))

    async def forward(self, text: str, *, by: str = ANN) -> str:
        origin = {"type": "user", "date": 1, "sender_user": user("55")}
        return self.told(self.message(by, by, text=text, forward_origin=origin))

    async def join(self, text: str, *, by: str = ANN) -> None:
        self.told(self.message(by, GROUP, new_chat_members=[{**user(by), "first_name": text}]))

    async def again(self) -> None:
        self.updates = [*self._served, *self.updates]
        self._wake()

    async def noise(self) -> None:
        self.update("quantum_poll", {"id": 1})
        self.update("channel_post", {"message_id": 1, "date": 1, "chat": {"id": -100, "type": "channel"}, "text": "x"})
        self.told({**self.message(ANN, ANN), "new_chat_title": "a title"})

    async def by_a_bot(self, text: str) -> None:
        for chat in (ANN, GROUP):
            self.told({**self.message("777", chat, text=text), "from": {**user("777"), "is_bot": True}})

    def flood(self, seconds: float) -> None:
        """Refuse the next message, with a file or without, and name a time to wait."""
        waiting = self.ills.setdefault("sendMessage", [])
        waiting.append(Refused(429, "Too Many Requests", retry_after=seconds))
        self.ills |= dict.fromkeys(("sendDocument", "sendPhoto", "sendMediaGroup"), waiting)

    def forbid(self, chat: str) -> None:
        self.forbidden.add(chat)

    def hang_up(self) -> None:
        for transport in list(self._open):
            transport.abort()

    def revoke(self) -> None:
        self.token = "none"
        self.hang_up()

    def signs(self, chat: str) -> int:
        return sum(1 for name, asked in self.calls if name == "sendChatAction" and str(asked["chat_id"]) == chat)

    def message(self, by: str, chat: str, **more: Any) -> dict[str, Any]:
        number = next(self._numbers)
        date = int(time.time() - self.ago)
        about = {"message_id": number, "date": date, "from": user(by), "chat": chat_of(chat), **more}
        self._texts[str(number)] = about
        if str(about.get("text", "")).startswith("/"):
            length = len(about["text"].split()[0])
            about["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        return about

    def told(self, message: dict[str, Any]) -> str:
        self.update("message", message)
        return str(message["message_id"])

    def update(self, kind: str, what: dict[str, Any]) -> None:
        self.updates.append({"update_id": 9_000_000 + next(self._numbers), kind: what})
        self._wake()

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [asked for name, asked in self.calls if name == method]

    def _where(self, thread: str, reply_to: str) -> dict[str, Any]:
        where: dict[str, Any] = {"message_thread_id": int(thread), "is_topic_message": True} if thread else {}
        if reply_to:
            bots = [one for one in self.shown if one.id == reply_to]
            known = self._texts.get(reply_to) or {
                "message_id": int(reply_to),
                "date": 1,
                "chat": chat_of(bots[0].chat),
                "from": BOT,
                "text": bots[0].text,
            }
            where["reply_to_message"] = known
        return where

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        transport = request.transport
        assert transport
        self._open.add(transport)
        if method == "getUpdates":
            self.overlaps += any(not one.is_closing() for one in self._polls)
            self._polls.add(transport)
        asked = {name: await plain(value) for name, value in (await request.post()).items()}
        self.calls.append((method, asked))
        try:
            if request.match_info["token"] != self.token:
                raise Refused(401, "Unauthorized")
            if self.ills.get(method):
                raise self.ills[method].pop(0)
            does: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_on_{method.lower()}", None)
            result = does(asked) if does else True
            result = await result if asyncio.iscoroutine(result) else result
        except Refused as error:
            told = {"ok": False, "error_code": error.status, "description": str(error), "parameters": error.parameters}
            return web.json_response(told, status=error.status)
        finally:
            self._open.discard(transport)
            self._polls.discard(transport)
        if method == "sendMessage" and self.strange:
            return self.strange.pop(0)
        return web.json_response({"ok": True, "result": result})

    async def _file(self, request: web.Request) -> web.Response:
        await self.files_flow.wait()
        return web.Response(body=self._files[request.match_info["name"]])

    def _on_getme(self, _asked: dict[str, Any]) -> Any:
        return self.bot

    def _on_getwebhookinfo(self, _asked: dict[str, Any]) -> Any:
        return {"url": self.webhook, "has_custom_certificate": False, "pending_update_count": len(self.updates)}

    async def _on_getupdates(self, asked: dict[str, Any]) -> Any:
        if self.webhook:
            raise Refused(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first")
        self.polls = mine = self.polls + 1
        self._wake()
        offset, until = int(asked.get("offset") or 0), time.monotonic() + float(asked.get("timeout") or 0)
        self.updates = [one for one in self.updates if one.get("update_id", offset) >= offset]
        while self.holds_polls and not self.updates and time.monotonic() < until:
            try:
                await asyncio.wait_for(self._news.wait(), until - time.monotonic())
            except TimeoutError:
                break
            if self.polls != mine:
                raise Refused(409, "Conflict: terminated by other getUpdates request")
        if self.updates:
            self._served = self.updates[: int(asked.get("limit") or 100)]
            return self._served
        return []

    def _on_getfile(self, asked: dict[str, Any]) -> Any:
        name = asked["file_id"]
        return {"file_id": name, "file_unique_id": f"u-{name}", "file_path": name, "file_size": len(self._files[name])}

    def _on_sendmessage(self, asked: dict[str, Any]) -> Any:
        return self._shows(asked, checked(asked, self.limit, has_previews=self.has_previews))

    def _on_sendmessagedraft(self, asked: dict[str, Any]) -> Any:
        chat, number = str(asked["chat_id"]), asked["draft_id"]
        if not self.has_drafts:
            raise Refused(404, "Not Found")
        if chat.startswith("-") or not number:
            raise Refused(400, "Bad Request: there is no such draft")
        text = checked({**asked, "link_preview_options": {"is_disabled": True}}, self.limit)
        drafts = [one for one in self.shown if one.is_draft and one.id == f"draft{number}"]
        if not drafts:
            drafts = [Shown(f"draft{number}", chat, text, str(asked.get("message_thread_id") or ""), is_draft=True)]
            self.shown += drafts
        drafts[0].text = text
        return True

    def _on_sendpoll(self, asked: dict[str, Any]) -> Any:
        names = [one["text"] for one in asked["options"]]
        if not 2 <= len(names) <= 12 or not all(0 < len(one) <= 100 for one in (*names, asked["question"][:100])):
            raise Refused(400, "Bad Request: this is not a poll")
        return self._shows({**asked, "entities": []}, "\n".join([asked["question"], *names]))

    def _on_sendlocation(self, asked: dict[str, Any]) -> Any:
        where = [str(asked.get(name, "")) for name in ("title", "address", "latitude", "longitude")]
        return self._shows(asked, " ".join(where))

    _on_sendvenue = _on_sendlocation

    def _on_senddocument(self, asked: dict[str, Any]) -> Any:
        caption = caption_of(asked)
        return self._shows(asked, caption, next(value for value in asked.values() if isinstance(value, tuple)))

    def _on_sendmediagroup(self, asked: dict[str, Any]) -> Any:
        """To people it is one message; to bots each picture is one."""
        media = asked["media"]
        kinds = {{"photo": "seen", "video": "seen"}.get(one["type"], one["type"]) for one in media}
        if not 2 <= len(media) <= 10 or len(kinds) > 1:
            raise Refused(400, "Bad Request: this is not an album")
        first, *others = [asked[one["media"].removeprefix("attach://")] for one in media]
        captions = [caption_of(one) for one in media]
        assert not any(captions[1:]), "then the caption is no longer that of the album"
        message = self._shows(asked, captions[0], first)
        self.shown[-1].more_files = others
        return [message, *({**message, "message_id": next(self._numbers)} for _ in others)]

    _on_sendphoto = _on_sendvideo = _on_sendaudio = _on_senddocument

    def _on_sendvoice(self, asked: dict[str, Any]) -> Any:
        """Telegram shows only Opus in Ogg as a voice note."""
        told = self._on_senddocument(asked)
        self.shown[-1].is_note = self.shown[-1].file.startswith(b"OggS") and b"OpusHead" in self.shown[-1].file[:64]
        return told

    def _on_editmessagetext(self, asked: dict[str, Any]) -> Any:
        shown = self._found(asked)
        text = checked(asked, self.limit, has_previews=self.has_previews)
        if (text, keys(asked)) == (shown.text, shown.buttons):
            raise Refused(400, "Bad Request: message is not modified")
        shown.text, shown.buttons = text, keys(asked)
        return self._as_message(shown)

    def _on_editmessagereplymarkup(self, asked: dict[str, Any]) -> Any:
        shown = self._found(asked)
        shown.buttons = keys(asked)
        return self._as_message(shown)

    def _on_setmessagereaction(self, asked: dict[str, Any]) -> Any:
        """A bot has one reaction under a message, and only of those that every chat has."""
        found = [one["emoji"] for one in asked.get("reaction") or []]
        if len(found) > 1 or not set(found) <= set("👍👎👀🤔🎉"):
            raise Refused(400, "Bad Request: REACTION_INVALID")
        if str(asked["message_id"]) not in self._texts:
            raise Refused(400, "Bad Request: message to react not found")
        self.reactions[str(asked["message_id"])] = found
        self.reacted += found
        return True

    def _on_deletemessages(self, asked: dict[str, Any]) -> Any:
        gone = {str(one) for one in asked["message_ids"]}
        self.shown = [one for one in self.shown if one.id not in gone]
        return True

    def _found(self, asked: dict[str, Any]) -> Shown:
        if self.forbid_edits:
            raise Refused(500, "Internal Server Error")
        for shown in self.shown:
            if shown.id == str(asked["message_id"]) and shown.chat == str(asked["chat_id"]):
                return shown
        raise Refused(400, "Bad Request: message to edit not found")

    def _shows(self, asked: dict[str, Any], text: str, file: tuple[str, bytes] = ("", b"")) -> dict[str, Any]:
        if str(asked["chat_id"]) in self.forbidden:
            raise Refused(403, "Forbidden: bot was blocked by the user")
        shown = Shown(
            str(next(self._numbers)),
            str(asked["chat_id"]),
            text,
            str(asked.get("message_thread_id") or ""),
            str((asked.get("reply_parameters") or {}).get("message_id") or ""),
            keys(asked),
            file[1],
            file[0],
            codes_of(text, asked.get("entities") or []),
        )
        self.shown = [one for one in self.shown if not one.is_draft or one.chat != shown.chat]
        self.shown.append(shown)
        return self._as_message(shown)

    def _as_message(self, shown: Shown) -> dict[str, Any]:
        about = {"message_id": int(shown.id), "date": int(time.time()), "from": BOT, "chat": chat_of(shown.chat)}
        return {**about, "text": shown.text}


def said_of(part: MessagePart) -> dict[str, Any]:
    """Return the content of a message that is neither text nor file; a titled place comes as a venue, too."""
    match part:
        case Sticker():
            about = {"file_id": "1", "file_unique_id": "1", "type": "regular", "is_animated": False, "is_video": False}
            return {"sticker": {**about, "width": 8, "height": 8, "emoji": part.emoji or None, "set_name": part.name}}
        case Location():
            place = {"latitude": part.latitude, "longitude": part.longitude}
            named = {"location": place, "title": part.title, "address": part.address}
            return {"location": place, **({"venue": named} if part.title else {})}
        case Contact():
            first, _, last = part.name.partition(" ")
            return {"contact": {"phone_number": part.phone, "first_name": first, "last_name": last}}
        case Poll():
            options = [{"text": name, "voter_count": 0, "persistent_id": name} for name in part.options]
            flags = ("is_closed", "is_anonymous", "allows_multiple_answers", "members_only", "allows_revoting")
            about = {"id": "1", "type": "regular", "total_voter_count": 0, **dict.fromkeys(flags, False)}
            return {"poll": {**about, "question": part.question, "options": options}}


def caption_of(asked: dict[str, Any]) -> str:
    caption = str(asked.get("caption") or "")
    if len(caption.encode("utf-16-le")) > 2 * 1024:
        raise Refused(400, "Bad Request: message caption is too long")
    return caption


async def plain(value: Any) -> Any:
    """A field as Python has it: a file with its name, JSON as what it means."""
    if isinstance(value, web.FileField):
        return value.filename, value.file.read()
    if value[:1] in '[{"' or value in ("true", "false"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def user(number: str) -> dict[str, Any]:
    return {"id": int(number), "is_bot": False, "first_name": f"Person {number}"}


def chat_of(number: str) -> dict[str, Any]:
    if number.startswith("-"):
        return {"id": int(number), "type": "supergroup", "title": "a group", "is_forum": True}
    return {"id": int(number), "type": "private", "first_name": f"Person {number}"}


def keys(asked: dict[str, Any]) -> dict[str, str]:
    rows = (asked.get("reply_markup") or {}).get("inline_keyboard", [])
    return {one["text"]: one["callback_data"] for row in rows for one in row}


def codes_of(text: str, entities: list[dict[str, Any]]) -> list[str]:
    """Return the code blocks that Telegram shows: entities count in UTF-16."""
    units = text.encode("utf-16-le")
    blocks = [
        units[2 * one["offset"] : 2 * (one["offset"] + one["length"])] for one in entities if one["type"] == "pre"
    ]
    return [block.decode("utf-16-le") for block in blocks]


def checked(asked: dict[str, Any], limit: int, *, has_previews: bool = False) -> str:
    """The text, if Telegram would take it and its entities."""
    text = str(asked["text"])
    units = len(text.encode("utf-16-le")) // 2
    if not text.strip():
        raise Refused(400, "Bad Request: message text is empty")
    if units > limit:
        raise Refused(400, "Bad Request: message is too long")
    for one in asked.get("entities") or []:
        if one["offset"] < 0 or one["length"] <= 0 or one["offset"] + one["length"] > units:
            raise Refused(400, "Bad Request: entity is out of bounds")
    if not has_previews and not (asked.get("link_preview_options") or {}).get("is_disabled"):
        raise Refused(400, "Bad Request: a link preview would be shown")
    return text
