"""Slack on loopback, as far as an app uses it: the Web API and Socket Mode, with events that are delivered until acked.

As strict as the real one about texts, and stricter where we promise more: no link may be shown, nobody called together.
"""

import asyncio
import html
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Middleware

from gateway.adapters.slack.manifest import SCOPES
from gateway.messages.parts import MessagePart
from gateway.testing.networks.wire import ANN, GROUP, Shown, media_type_of
from tests.adapters.slack_web import BOT, METHODS, Refused, rich_texts

BOT_TOKEN, APP_TOKEN = "xoxb-1111-2222-loopbackloopback", "xapp-1-A1-2222-loopbackloopback"
CHANNEL = "C00002001"
NAMES = {"👍": "+1"}


@dataclass
class SlackWire:
    """Fills `Wire`. `calls` has everything that the app asked for; `ills` are told to the next calls of a method."""

    network: str = "slack"
    settings: str = ""
    limit: int = 11_000
    ago: float = 0.0  # seconds by which what happens now happened before
    shown: list[Shown] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    whispers: list[str] = field(default_factory=list)
    ills: dict[str, list[Refused]] = field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    forbidden: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    growing: set[str] = field(default_factory=set)
    threads: dict[str, dict[str, Any]] = field(default_factory=dict)  # that people opened with the app
    has_threads: bool = True
    tokens: tuple[str, ...] = (BOT_TOKEN, APP_TOKEN)
    given_tokens: tuple[str, str] = (BOT_TOKEN, APP_TOKEN)  # what the gateway is told; `tokens` are those that are good
    bot: str = BOT
    bot_id: str = "B1"
    scopes: str = ",".join(SCOPES)
    connections: int = 0
    others: int = 0
    is_deaf: bool = False
    reactions: dict[str, list[str]] = field(default_factory=dict)  # of the app's, under whose message
    reacted: list[str] = field(default_factory=list)
    lose_answers: int = 0
    is_mute: bool = False  # a stream is begun, and nobody is told
    url: str = ""
    middlewares: list[Middleware] = field(default_factory=list)  # of the server
    _last: dict[str, Any] = field(default_factory=dict)
    _sockets: list[web.WebSocketResponse] = field(default_factory=list)
    _open: set[asyncio.Transport] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _stamp: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def environ(self) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.given_tokens[0],
            "SLACK_APP_TOKEN": self.given_tokens[1],
            "SLACK_API_URL": f"{self.url}/api",
        }

    def known_as(self, person: str) -> str:
        return f"U0000{person}"

    def own(self, person: str) -> str:
        return f"access: {{owners: {{slack: ['{self.known_as(person)}']}}}}\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=60_000_000, middlewares=self.middlewares)
        app.router.add_route("*", "/api/{method}", self._answer)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files/{number}", self._file)
        app.router.add_post("/upload/{number}", self._upload)
        app.router.add_post("/respond", self._respond)
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
        """Write a message; a slash command reaches no thread, so people there write an exclamation mark."""
        where = self.place(chat or by)
        if text.startswith("/") and not thread:
            return self.call(text, by, where)
        text = f"!{text[1:]}" if text.startswith("/") else text
        if reply_to:
            thread = self.messages[reply_to].get("thread_ts") or reply_to
        return self.told(self.message(by, where, html.escape(text, quote=False), thread))

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None:
        before = self.messages[message]
        after = {**before, "text": html.escape(text, quote=False), "edited": {"user": by, "ts": self.stamp()}}
        self.messages[message] = after
        about = {name: before[name] for name in ("channel", "channel_type")}
        changed = {"type": "message", "subtype": "message_changed", "hidden": True, "ts": self.stamp(), **about}
        self.event({**changed, "message": after, "previous_message": before})

    async def delete(self, message: str, *, by: str = ANN) -> None:
        """Delete a message; one with answers in its thread leaves a tombstone."""
        before = self.messages.pop(message)
        about = {name: before[name] for name in ("channel", "channel_type")}
        gone = {"type": "message", "hidden": True, "ts": self.stamp(), **about, "previous_message": before}
        if any(one.get("thread_ts") == message for one in self.messages.values()):
            stone = {"type": "message", "subtype": "tombstone", "text": "This message was deleted.", "hidden": True}
            self.messages[message] = {**stone, "user": "USLACKBOT", "ts": message, "thread_ts": message, **about}
            self.event({**gone, "subtype": "message_changed", "message": self.messages[message]})
        else:
            self.event({**gone, "subtype": "message_deleted", "deleted_ts": message})

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        return self.told(self.with_files(self.message(by, self.place(by), caption), files))

    def attach(self, by: str, where: str, *files: tuple[str, bytes]) -> str:
        """Attach files without a notice about them."""
        message = self.with_files(self.message(by, where, ""), files)
        self.messages[message["ts"]] = message
        return str(message["ts"])

    def with_files(self, message: dict[str, Any], files: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
        found = []
        for name, data in files:
            number = f"F{next(self._numbers)}"
            self.files[number] = (name, data)
            kind = media_type_of(name)
            where = f"{self.url}/files/{number}"
            found.append({"id": number, "name": name, "mimetype": kind, "size": len(data), "url_private": where})
            if kind == "audio/ogg":
                found[-1]["subtype"] = "slack_audio"
        return {**message, "subtype": "file_share", "files": found}

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        raise AssertionError(f"{by} cannot send {part} there")

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None:
        if label not in message.buttons:
            raise AssertionError(f"there is no button {label} under {message.text!r}")
        about = self.messages[message.id]
        action = {"type": "button", "action_id": "gateway:0", "value": message.buttons[label], "block_id": "b"}
        payload: dict[str, Any] = {
            "type": "block_actions",
            "user": {"id": self.known_as(by), "username": by, "team_id": "T1"},
        }
        payload |= {"channel": {"id": about["channel"]}, "message": about, "actions": [action], "team": {"id": "T1"}}
        self.envelope("interactive", {**payload, "trigger_id": self.stamp(), "response_url": f"{self.url}/respond"})

    async def react(self, message: str, emoji: str, *, by: str = ANN) -> None:
        item = {"type": "message", "channel": self.messages[message]["channel"], "ts": message}
        self.event({"type": "reaction_added", "user": self.known_as(by), "reaction": NAMES[emoji], "item": item})

    def open_app(self, by: str = ANN, tab: str = "messages") -> dict[str, Any]:
        """A person opens the app, in Slack's view of agents; what is offered there."""
        channel = self.place(by)
        event = {"type": "app_home_opened", "user": self.known_as(by), "channel": channel, "tab": tab}
        self.event({**event, "event_ts": self.stamp()})
        return self.threads.setdefault(channel, {})

    def open_thread(self, by: str = ANN) -> str:
        """A person opens Slack's view of assistants."""
        thread = self.stamp()
        self.threads[thread] = {}
        about = {"user_id": self.known_as(by), "channel_id": self.place(by), "thread_ts": thread, "context": {}}
        self.event({"type": "assistant_thread_started", "assistant_thread": about, "event_ts": self.stamp()})
        return thread

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        """Slack tells of it twice: as a message, and as a mention."""
        message = self.message(by, self.place(chat), f"<@{self.bot}> {html.escape(text, quote=False)}")
        number = self.told(message)
        self.event({**message, "type": "app_mention"})
        return number

    async def forward(self, text: str, *, by: str = ANN) -> str:
        passed_on = {"is_share": True, "is_msg_unfurl": True, "author_name": "Carol", "text": text}
        return self.told({**self.message(by, self.place(by), ""), "attachments": [passed_on]})

    async def join(self, text: str, *, by: str = ANN) -> None:
        self.event({"type": "member_joined_channel", "user": self.known_as(by), "channel": CHANNEL, "team": "T1"})
        self.told({**self.message(by, CHANNEL, text), "subtype": "channel_join"})

    async def again(self) -> None:
        self.event(self._last)

    async def noise(self) -> None:
        self.event({"type": "quantum_poll", "user": self.known_as(ANN)})
        self.event({**self.message(ANN, CHANNEL, "joined"), "subtype": "channel_join"})
        unfurled = self.message(ANN, self.place(ANN), "https://example.com")
        changed = {"type": "message", "subtype": "message_changed", "channel": unfurled["channel"], "ts": self.stamp()}
        self.event({**changed, "message": unfurled, "previous_message": unfurled})
        for socket in self._sockets:
            await socket.send_json({"type": "quantum", "payload": 1})

    async def by_a_bot(self, text: str) -> None:
        for where in (self.place(ANN), CHANNEL):
            self.told({**self.message("777", where, text), "bot_id": "B777", "subtype": "bot_message"})

    def flood(self, seconds: float) -> None:
        """Refuse the next message, with a file or without, and name a time to wait."""
        waiting = self.ills.setdefault("chat.postMessage", [])
        waiting.append(Refused("ratelimited", status=429, retry_after=seconds))
        self.ills["files.getUploadURLExternal"] = waiting

    def forbid(self, chat: str) -> None:
        self.forbidden[self.place(chat)] = "restricted_action"

    def hang_up(self) -> None:
        for transport in list(self._open):
            transport.abort()

    def revoke(self) -> None:
        self.tokens = ()
        self.hang_up()

    def signs(self, chat: str) -> int:
        return sum(1 for asked in self.asked("reactions.add") if asked["channel"] == self.place(chat))

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [asked for name, asked in self.calls if name == method]

    def place(self, chat: str) -> str:
        return CHANNEL if chat == GROUP else f"D0000{chat}"

    def stamp(self) -> str:
        """A time stamp as Slack makes them: of one channel no two are the same."""
        self._stamp = max(self._stamp + 1, int((time.time() - self.ago) * 1_000_000))
        return f"{self._stamp // 1_000_000}.{self._stamp % 1_000_000:06d}"

    def message(self, by: str, where: str, text: str, thread: str = "", **more: Any) -> dict[str, Any]:
        """A message in a channel, not told to anybody yet."""
        about = {"type": "message", "channel": where, "text": text, "ts": self.stamp(), "team": "T1", **more}
        about |= {
            "user": by if by == self.bot else self.known_as(by),
            "channel_type": "im" if where[0] == "D" else "channel",
        }
        root = self.messages.get(thread, {})
        within = {"thread_ts": thread, **({"parent_user_id": root["user"]} if "user" in root else {})}
        return about | (within if thread else {})

    def told(self, message: dict[str, Any]) -> str:
        self.messages[message["ts"]] = message
        self.event(message)
        return str(message["ts"])

    def call(self, text: str, by: str, where: str) -> str:
        name, _, given = text.partition(" ")
        name = "/gateway-status" if name == "/status" else name
        number = f"{self.stamp()}.trigger"
        about = {"command": name, "text": given, "user_id": self.known_as(by), "user_name": by, "team_id": "T1"}
        about |= {"channel_id": where, "trigger_id": number, "response_url": f"{self.url}/respond"}
        self.envelope("slash_commands", about)
        return number

    def event(self, event: dict[str, Any]) -> None:
        self._last = event if event["type"] == "message" else self._last
        about = {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": self.stamp()}
        self.envelope("events_api", {**about, "event": event})

    def envelope(self, kind: str, payload: dict[str, Any]) -> None:
        """Delivered to one connection; again to the next, until it is acknowledged."""
        number = f"e{next(self._numbers)}"
        self.pending[number] = {"envelope_id": number, "type": kind, "payload": payload}
        if self._sockets:
            self._tell(self._sockets[-1], self.pending[number])

    def shows(self, asked: dict[str, Any], text: str, buttons: dict[str, str]) -> dict[str, Any]:
        """A message of the app's, as people see it from now on."""
        thread = str(asked.get("thread_ts") or "")
        more = {"bot_id": self.bot_id, "metadata": asked.get("metadata"), "blocks": asked.get("blocks") or []}
        message = self.message(self.bot, asked["channel"], text, thread, **more)
        shown = Shown(message["ts"], self.chat_of(asked["channel"]), text, thread, thread, buttons)
        shown.codes = [words for kind, words in rich_texts(asked) if kind == "rich_text_preformatted"]
        self.shown.append(shown)
        self.told(message)
        return message

    def chat_of(self, channel: str) -> str:
        return GROUP if channel == CHANNEL else channel.removeprefix("D0000")

    def _tell(self, socket: web.WebSocketResponse, envelope: dict[str, Any]) -> None:
        self._tasks.add(task := asyncio.get_running_loop().create_task(tell(socket, envelope)))
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport
        self._open.add(request.transport)
        method = request.match_info["method"]
        body = await sent(request)
        self.calls.append((method, body))
        if method in self.silent:
            await asyncio.Event().wait()
        headers = {"X-OAuth-Scopes": self.scopes}
        try:
            if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
                raise Refused("invalid_auth")
            if self.ills.get(method):
                raise self.ills[method].pop(0)
            if method not in METHODS:
                raise Refused("unknown_method")
            done = METHODS[method](self, body)
            if self.lose_answers and method in ("chat.postMessage", "chat.startStream"):
                self.lose_answers -= 1
                request.transport.abort()
            if self.is_mute and method == "chat.startStream":
                await asyncio.Event().wait()
            return web.json_response({"ok": True, **done}, headers=headers)
        except Refused as error:
            return web.json_response(error.body, status=error.status, headers={**headers, **error.headers})
        finally:
            self._open.discard(request.transport)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        assert request.transport
        self._open.add(request.transport)
        self.connections += 1
        await socket.send_json({"type": "hello", "num_connections": 1 + self.others})
        self._sockets.append(socket)
        for envelope in list(self.pending.values()):
            self._tell(socket, {**envelope, "retry_attempt": 1})
        with suppress(ConnectionError):
            async for frame in socket:
                if frame.type is WSMsgType.PING and not self.is_deaf:
                    await socket.pong(frame.data)
                elif frame.type is WSMsgType.TEXT:
                    answer = json.loads(frame.data)
                    self.answers.append(answer)
                    if said := (answer.get("payload") or {}).get("text"):
                        self.whispers.append(said)
                    self.pending.pop(answer["envelope_id"], None)
        self._sockets.remove(socket)
        self._open.discard(request.transport)
        return socket

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.given_tokens[0]}":
            return web.Response(text="<html>sign in</html>", content_type="text/html")
        return web.Response(body=self.files[request.match_info["number"]][1])

    async def _upload(self, request: web.Request) -> web.Response:
        number = request.match_info["number"]
        self.files[number] = (self.files[number][0], await request.read())
        return web.Response(text="OK")

    async def _respond(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.whispers.append(body["text"])
        return web.Response(text="ok")


async def tell(socket: web.WebSocketResponse, envelope: dict[str, Any]) -> None:
    """Send an event; a disconnected app gets it when it is back."""
    with suppress(ConnectionError):
        await socket.send_str(json.dumps(envelope))


async def sent(request: web.Request) -> dict[str, Any]:
    """Return the request, however the library sent it."""
    if request.content_type == "application/json":
        return dict(await request.json())
    given = {**request.query, **(await request.post() if request.method == "POST" else {})}
    return {name: decoded(value) for name, value in given.items()}


def decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "[{":
        with suppress(ValueError):
            return json.loads(value)
    return value
