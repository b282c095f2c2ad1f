"""People on a real homeserver, and the line between it and the bot, on which a test can do what networks do."""

import asyncio
import io
import itertools
import json
import urllib.request
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import anyio
import anyio.abc
from aiohttp import web
from yarl import URL

from gateway.messages.parts import Location, MessagePart, Poll, Sticker
from gateway.testing.networks.wire import ANN, BEN, GROUP, SECOND_STRANGER, STRANGER, Shown, media_type_of
from tests.adapters.matrix_server import SERVER

ADAPTERS = Path(__file__).parent.parent.parent / "docs" / "adapters"
BOT, OTHER_BOT = "bot", "otherbot"
NAMES = {ANN: "ann", BEN: "ben", STRANGER: "stranger", SECOND_STRANGER: "stranger2"}
POLL = "org.matrix.msc3381.poll.start"
API = "/_matrix/client/v3"
LONG = {"room": {"timeline": {"limit": 1000}}}
UNLIMITED = aiohttp.ClientTimeout(total=None)


@dataclass
class MatrixLine:
    """A line that carries the bot's requests to the homeserver, except those that it answers itself."""

    there: str
    url: str = ""
    refusals: list[web.Response] = field(default_factory=list)  # of messages, before any other is passed on
    _last: bytes = b""  # what was new, when something was
    _again: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{rest:.*}", self._pass)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        async with aiohttp.ClientSession(timeout=UNLIMITED) as self._session:
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
            try:
                yield
            finally:
                self.cut()
                await self._runner.cleanup()

    def cut(self) -> None:
        """Every open connection breaks."""
        assert self._runner.server
        for one in self._runner.server.connections:
            if one.transport:
                one.transport.abort()

    def tell_again(self) -> None:
        """Deliver the last new events once more."""
        self._again.set()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        is_message = request.method == "PUT" and "/send/m.room.message/" in request.path
        body = await request.read()
        if is_message and self.refusals:
            return self.refusals.pop(0)
        if is_message and calls_somebody(json.loads(body)):
            return refuse(400, "M_BAD_JSON", "it calls people, or shows what a link leads to")
        passed = asyncio.create_task(self._ask(request, body))
        if not request.path.endswith("/sync"):
            status, kind, answer = await passed
            return web.Response(status=status, body=answer, content_type=kind)
        again = asyncio.create_task(self._again.wait())
        try:
            await asyncio.wait([passed, again], return_when=asyncio.FIRST_COMPLETED)
            if again.done() and self._last:
                self._again.clear()
                return web.Response(body=self._last, content_type="application/json")
            status, kind, answer = await passed
        finally:
            passed.cancel()
            again.cancel()
        if json.loads(answer).get("rooms", {}).get("join"):
            self._last = answer
        return web.Response(status=status, body=answer, content_type=kind)

    async def _ask(self, request: web.Request, body: bytes) -> tuple[int, str, bytes]:
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        url = f"{self.there}{request.raw_path}"
        data = io.BytesIO(body) if body else None
        async with self._session.request(request.method, exact(url), data=data, headers=headers) as answer:
            return answer.status, answer.content_type, await answer.read()


def exact(url: str) -> URL:
    """The address as it was sent, sign by sign."""
    return URL(url, encoded=True)


def said_of(part: MessagePart) -> tuple[str, dict[str, Any]]:
    """As a client writes what is neither text nor file, where Matrix has that: the kind of event, and what it holds."""
    match part:
        case Sticker():
            return "m.sticker", {"body": part.name, "url": "mxc://localhost/none", "info": {}}
        case Location():
            place = f"geo:{part.latitude},{part.longitude};u=35"
            return "m.room.message", {"msgtype": "m.location", "body": f"Location {place}", "geo_uri": place}
        case Poll():
            answers = [{"id": name, "org.matrix.msc1767.text": name} for name in part.options]
            asked = {"question": {"org.matrix.msc1767.text": part.question}, "answers": answers}
            return POLL, {POLL: {**asked, "kind": "org.matrix.msc3381.poll.undisclosed", "max_selections": 1}}
    raise AssertionError(f"nobody sends {part} there")


def text_of(kind: str, content: Mapping[str, Any]) -> str:
    """Return the text that people see of a message: of a place its position, of a poll its question."""
    if kind == POLL:
        asked = content[POLL]
        return "\n".join(one["org.matrix.msc1767.text"] for one in (asked["question"], *asked["answers"]))
    if content["msgtype"] == "m.location":
        return f"{content['org.matrix.msc3488.location']['description']} {content['geo_uri']}"
    return str(content["body"])


def calls_somebody(content: Mapping[str, Any]) -> bool:
    """Return True if a client would notify people, or had to guess, or would preview a link."""
    shown = content.get("m.new_content", content)
    return (
        content.get("m.mentions") != {}
        or shown.get("m.mentions") != {}
        or (shown["msgtype"] == "m.text" and shown.get("com.beeper.linkpreviews") != [])
    )


def refuse(status: int, code: str, why: str, **more: Any) -> web.Response:
    return web.json_response({"errcode": code, "error": why, **more}, status=status)


@dataclass
class MatrixWire:
    """Fills `Wire`."""

    there: str
    network: str = "matrix"
    settings: str = ""
    limit: int = 8000
    shown: list[Shown] = field(default_factory=list)
    looks: dict[str, str] = field(default_factory=dict)  # the HTML of a message, as it is now
    quoting: str = ""  # with which an older client begins what answers something
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _tokens: dict[str, str] = field(default_factory=dict)  # by who it is
    _rooms: dict[str, str] = field(default_factory=dict)  # by chat
    _chats: dict[str, str] = field(default_factory=dict)  # by what was written there
    _threads: dict[str, str] = field(default_factory=dict)
    _pressed: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _signs: dict[str, int] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _closed: set[str] = field(default_factory=set)  # chats that are to be closed before somebody writes there
    _buttons: dict[str, tuple[Shown, str]] = field(default_factory=dict)  # by the reaction of the bot's
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def environ(self) -> Mapping[str, str]:
        return {
            "GATEWAY_ADAPTERS_DIRS": str(ADAPTERS),
            "GATEWAY_PLATFORMS_MATRIX_ENABLED": "true",
            "MATRIX_HOMESERVER": self._line.url,
            "MATRIX_ACCESS_TOKEN": self._tokens[BOT],
        }

    def known_as(self, person: str) -> str:
        return f"@{NAMES.get(person, person)}-{self._mark}:{SERVER}"

    def own(self, person: str) -> str:
        return f"access: {{owners: {{matrix: ['{self.known_as(person)}']}}}}\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._line = MatrixLine(self.there)
        async with (
            aiohttp.ClientSession(timeout=UNLIMITED) as self._session,
            self._line.serving(),
            anyio.create_task_group() as self._tasks,
        ):
            await self._come(BOT)
            await self._come(ANN)
            group = {"preset": "public_chat", "name": "the group"}
            self._rooms[GROUP] = (await self._ask(ANN, "POST", "/createRoom", group))["room_id"]
            for one in (BOT, BEN):
                await self._enter_group(one)
            yield
            self._tasks.cancel_scope.cancel()

    async def write(self, text: str, *, by: str = ANN, chat: str = "", thread: str = "", reply_to: str = "") -> str:
        related: dict[str, Any] = {}
        if thread:
            if thread not in self._threads:
                self._threads[thread] = await self._send(ANN, GROUP, {"msgtype": "m.text", "body": "a thread"})
            related = {"rel_type": "m.thread", "event_id": self._threads[thread]}
        if reply_to:
            related |= {"m.in_reply_to": {"event_id": reply_to}}
            text = f"{self.quoting}{text}"
        about = {"m.relates_to": related} if related else {}
        return await self._send(by, chat, {"msgtype": "m.text", "body": text, **about})

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None:
        new = {"msgtype": "m.text", "body": text}
        related = {"rel_type": "m.replace", "event_id": message}
        where = self._chats[message]
        await self._send(by, where, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": related})

    async def delete(self, message: str, *, by: str = ANN) -> None:
        await self._redact(by, self._chats[message], message)

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        sent = ""
        for name, data in files:
            headers = {"Authorization": f"Bearer {self._tokens[by]}", "Content-Type": media_type_of(name)}
            url = f"{self.there}/_matrix/media/v3/upload?filename={quote(name, '')}"
            async with self._session.post(url, data=io.BytesIO(data), headers=headers) as answer:
                place = (await answer.json())["content_uri"]
            info = {"mimetype": media_type_of(name), "size": len(data)}
            content = {"msgtype": "m.file", "body": caption or name, "filename": name, "url": place, "info": info}
            sent = await self._send(by, "", content)
        return sent

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        kind, content = said_of(part)
        await self._send(by, "", content, kind)

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None:
        if before := self._pressed.get((message.id, label, by)):  # a second press takes the first one back
            await self._redact(by, message.chat, before)
        self._pressed[message.id, label, by] = await self._react(by, message.chat, message.id, label)

    async def react(self, message: str, emoji: str, *, by: str = ANN) -> None:
        await self._react(by, by, message, emoji)

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        called = {"user_ids": [self.known_as(BOT)]}
        return await self._send(
            by, chat, {"msgtype": "m.text", "body": f"{BOT}-{self._mark}: {text}", "m.mentions": called}
        )

    async def forward(self, text: str, *, by: str = ANN) -> str:
        raise NotImplementedError("Matrix passes nothing on")

    async def join(self, text: str, *, by: str = ANN) -> None:
        await self._enter_group(by)

    async def again(self) -> None:
        self._line.tell_again()

    async def noise(self) -> None:
        await self._send(ANN, "", {"tune": "a waltz"}, "org.example.tune")
        await self._send(ANN, "", {"msgtype": "org.example.dance", "body": "a waltz"})
        await self._send(ANN, "", {"msgtype": "m.text", "body": "?", "m.relates_to": {"rel_type": "m.replace"}})

    async def by_a_bot(self, text: str) -> None:
        for chat in (GROUP, ""):
            await self._send(OTHER_BOT, chat, {"msgtype": "m.notice", "body": text})

    def flood(self, seconds: float) -> None:
        said = refuse(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=int(seconds * 1000))
        self._line.refusals.append(said)

    def forbid(self, chat: str) -> None:
        self._closed.add(chat)

    def hang_up(self) -> None:
        self._line.cut()

    def revoke(self) -> None:
        headers = {"Authorization": f"Bearer {self._tokens[BOT]}"}
        urllib.request.urlopen(urllib.request.Request(f"{self.there}{API}/logout", b"{}", headers), timeout=30).close()
        self._line.cut()  # who waits for news there waits on

    async def invite_late(self, *said: str) -> None:
        """Ann has a room in which this was said, and asks the bot in."""
        self._rooms[ANN] = (await self._ask(ANN, "POST", "/createRoom", {"preset": "private_chat"}))["room_id"]
        for text in said:
            await self._send(ANN, "", {"msgtype": "m.text", "body": text})
        asked = {"user_id": self.known_as(BOT)}
        await self._ask(ANN, "POST", f"/rooms/{quote(self._rooms[ANN], '')}/invite", asked)

    async def encrypt(self) -> None:
        """Ann says what only other devices of Matrix can read."""
        sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "sender_key": "x", "device_id": "x"}
        await self._send(ANN, "", {**sealed, "session_id": "x"}, "m.room.encrypted")

    def room_of(self, chat: str) -> str:
        return self._rooms[chat]

    def signs(self, chat: str) -> int:
        return self._signs.get(chat, 0)

    async def _come(self, who: str) -> None:
        """Create a person's account, and sync their view."""
        account = {"username": self.known_as(who)[1:].partition(":")[0], "password": "known to all"}
        how = {"auth": {"type": "m.login.dummy"}, "inhibit_login": False}
        self._tokens[who] = (await self._ask("", "POST", "/register", {**account, **how}))["access_token"]
        if who != BOT:
            begun = (await self._sync(who, ""))["next_batch"]
            self._tasks.start_soon(self._look, who, begun)

    async def _enter_group(self, who: str) -> None:
        if who not in self._tokens:
            await self._come(who)
        await self._ask(who, "POST", f"/join/{quote(self._rooms[GROUP], '')}", {})

    async def _find_room(self, who: str, chat: str) -> str:
        if who not in self._tokens:
            await self._come(who)
        if chat == GROUP:
            await self._enter_group(who)
        elif who not in self._rooms:
            room = {"preset": "private_chat", "is_direct": True, "invite": [self.known_as(BOT)]}
            self._rooms[who] = (await self._ask(who, "POST", "/createRoom", room))["room_id"]
        return self._rooms[chat or who]

    async def _send(self, who: str, chat: str, content: Mapping[str, Any], kind: str = "m.room.message") -> str:
        room = quote(await self._find_room(who, chat), "")
        if (chat or who) in self._closed:
            self._closed.discard(chat or who)
            levels = await self._ask(who, "GET", f"/rooms/{room}/state/m.room.power_levels")
            levels["events_default"] = 50
            levels["users"] = {name: level for name, level in levels["users"].items() if name != self.known_as(BOT)}
            await self._ask(who, "PUT", f"/rooms/{room}/state/m.room.power_levels", levels)
        sent = await self._ask(who, "PUT", f"/rooms/{room}/send/{kind}/{next(self._numbers)}", content)
        self._chats[sent["event_id"]] = chat or who
        return str(sent["event_id"])

    async def _react(self, who: str, chat: str, message: str, sign: str) -> str:
        related = {"rel_type": "m.annotation", "event_id": message, "key": sign}
        return await self._send(who, chat, {"m.relates_to": related}, "m.reaction")

    async def _redact(self, who: str, chat: str, message: str) -> None:
        room = quote(self._rooms[chat], "")
        await self._ask(who, "PUT", f"/rooms/{room}/redact/{quote(message, '')}/{next(self._numbers)}", {})

    async def _sync(self, who: str, since: str) -> Any:
        begun = f"&since={since}" if since else ""
        return await self._ask(who, "GET", f"/sync?filter={quote(json.dumps(LONG))}&timeout=30000{begun}")

    async def _look(self, who: str, since: str) -> None:
        """Sync a person's view, in the chats that they have."""
        while True:
            news = await self._sync(who, since)
            since = news["next_batch"]
            for room in news.get("rooms", {}).get("invite", {}):
                await self._ask(who, "POST", f"/join/{quote(room, '')}", {})
            for room, what in news.get("rooms", {}).get("join", {}).items():
                chat = GROUP if room == self._rooms.get(GROUP) else who
                for event in what.get("ephemeral", {}).get("events", []):
                    if self.known_as(BOT) in event["content"].get("user_ids", ()):
                        self._signs[chat] = self.signs(chat) + 1
                for event in what["timeline"]["events"]:
                    if event["sender"] == self.known_as(BOT) and event["event_id"] not in self._seen:
                        self._seen.add(event["event_id"])
                        await self._see(who, chat, event)

    async def _see(self, who: str, chat: str, event: Any) -> None:
        content = event["content"]
        related = content.get("m.relates_to", {})
        if event["type"] == "m.room.message" and related.get("rel_type") == "m.replace":
            (message,) = [one for one in self.shown if one.id == related["event_id"]]
            message.text = content["m.new_content"]["body"]
            self.looks[message.id] = content["m.new_content"].get("formatted_body", "")
        elif event["type"] in ("m.room.message", POLL):
            self.looks[event["event_id"]] = content.get("formatted_body", "")
            self.shown.append(await self._read(who, chat, event))
        elif event["type"] == "m.reaction" and (asked := self._of(related["event_id"])):
            asked.buttons[related["key"]] = related["key"]
            self._buttons[event["event_id"]] = (asked, related["key"])
        elif event["type"] == "m.room.redaction" and (gone := self._buttons.pop(event["redacts"], None)):
            gone[0].buttons.pop(gone[1])
        elif event["type"] == "m.room.redaction":
            self.shown = [one for one in self.shown if one.id != event["redacts"]]

    def _of(self, message: str) -> Shown | None:
        return next((one for one in self.shown if one.id == message), None)

    async def _read(self, who: str, chat: str, event: Any) -> Shown:
        content = event["content"]
        related = content.get("m.relates_to", {})
        thread = next((name for name, root in self._threads.items() if root == related.get("event_id")), "")
        answered = related.get("m.in_reply_to", {}).get("event_id", "")
        shown = Shown(event["event_id"], chat, text_of(event["type"], content), thread, answered)
        if "url" in content:
            shown.file_name = content["filename"]
            shown.text = content["body"] if content["body"] != content["filename"] else ""
            headers = {"Authorization": f"Bearer {self._tokens[who]}"}
            url = f"{self.there}/_matrix/client/v1/media/download/{content['url'].removeprefix('mxc://')}"
            async with self._session.get(url, headers=headers) as answer:
                shown.file = await answer.read()
        return shown

    async def _ask(self, who: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._tokens[who]}"} if who else {}
        url = exact(f"{self.there}{API}{path}")
        async with self._session.request(method, url, json=body, headers=headers) as answer:
            said = await answer.json()
            assert answer.status == 200, f"{method} {path}: {said}"
            return said
