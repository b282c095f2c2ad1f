"""Discord on loopback, as far as a bot uses it: the HTTP API and the gateway, with sessions that can be resumed.

As strict as the real one about lengths, nonces and interactions, and stricter where we promise more: no message of the
bot's may ping anybody, or show what a link leads to.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Middleware

from gateway.messages.parts import MessagePart
from gateway.testing.networks.wire import ANN, GROUP, Shown, media_type_of
from tests.adapters.discord_facts import (
    BOT,
    CHANNEL,
    GUILD,
    channel_of,
    chat_of,
    dm_of,
    guild,
    interaction,
    keys,
    known_as,
    member,
    passed_on,
    reaction,
    said_of,
    thread,
    user,
)
from tests.adapters.discord_rest import REST, VOICE, Refused, answered
from tests.spine import until

CODE_BLOCK = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)  # as its clients do
TOKEN = "MTA0MjQy.GabcDE.discord-token-on-loopback-0123456789"


@dataclass
class Session:
    """One client's, over as many connections as it needs."""

    id: str
    told: list[dict[str, Any]] = field(default_factory=list)
    socket: web.WebSocketResponse | None = None


@dataclass
class DiscordWire:
    """Fills `Wire`. `calls` has everything that the bot asked for; `ills` are told to the next calls that match.

    One server can be that of several bots, of which each has a wire: see `serving_beside`.
    """

    network: str = "discord"
    settings: str = ""
    limit: int = 2000
    shown: list[Shown] = field(default_factory=list)
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    whispers: list[str] = field(default_factory=list)
    suggested: dict[str, list[str]] = field(default_factory=dict)  # by the ids of interactions
    ills: list[tuple[str, Refused]] = field(default_factory=list)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    interactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    sessions: dict[str, Session] = field(default_factory=dict)
    identified: int = 0
    on_identify: Callable[[], object] = lambda: None  # before it is told that it is ready
    resumed: int = 0
    token: str = TOKEN
    ago: float = 0.0  # seconds by which what happens now happened before
    given_token: str = TOKEN  # what the gateway is told; one that was revoked is not `token` any more
    bot: dict[str, Any] = field(default_factory=lambda: BOT)
    beside: list["DiscordWire"] = field(default_factory=list)
    url: str = ""
    middlewares: list[Middleware] = field(default_factory=list)  # of the server
    auto_thread: bool = False
    intents_granted: bool = True
    is_deaf: bool = False
    lose_answers: int = 0
    flags: int = 1 << 19
    no_threads: bool = False
    heartbeat: int = 41_250
    windows: dict[str, list[int]] = field(default_factory=dict)  # what a path holds -> how many are left in a minute
    roles: dict[str, list[str]] = field(default_factory=dict)
    reactions: dict[str, list[str]] = field(default_factory=dict)  # of the bot's, under whose message
    reacted: list[str] = field(default_factory=list)
    no_reactions: bool = False
    _open: set[asyncio.Transport] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def environ(self) -> dict[str, str]:
        return {
            "DISCORD_BOT_TOKEN": self.given_token,
            "DISCORD_API_URL": f"{self.url}/api/v10",
            "DISCORD_GATEWAY_URL": f"{self.url.replace('http', 'ws')}/gateway",
            "DISCORD_AUTO_THREAD": str(self.auto_thread).lower(),
        }

    def known_as(self, person: str) -> str:
        return known_as(person)

    def own(self, person: str) -> str:
        return f"access: {{owners: {{discord: ['{self.known_as(person)}']}}}}\n"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self.channels = {CHANNEL: channel_of(CHANNEL)}
        app = web.Application(client_max_size=60_000_000, middlewares=self.middlewares)
        app.router.add_get("/gateway", self._gateway)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._rest)
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

    @asynccontextmanager
    async def serving_beside(self, first: "DiscordWire") -> AsyncIterator[None]:
        """As another bot on its server, which knows by the token whose a call is."""
        self.channels, self.url = {CHANNEL: channel_of(CHANNEL)}, first.url
        first.beside.append(self)
        yield
        self.hang_up()

    async def write(self, text: str, *, by: str = ANN, chat: str = "", thread: str = "", reply_to: str = "") -> str:
        """Who types a slash is offered the bot's commands, here as old menus had them, and does not write a message."""
        where = self.place(chat or by, thread)
        if text.startswith("/"):
            name, _, given = text[1:].partition(" ")
            return self.call(name, {"arguments": given} if given else {}, by=by, chat=chat, thread=thread)
        more: dict[str, Any] = {}
        if reply_to:
            more = {
                "type": 19,
                "message_reference": {"message_id": reply_to, "channel_id": where},
                "referenced_message": self.messages.get(reply_to),
            }
        return self.told(self.message(by, where, text, **more))

    def call(
        self,
        command: str,
        given: Mapping[str, Any],
        *,
        typing: str = "",
        by: str = ANN,
        chat: str = "",
        thread: str = "",
    ) -> str:
        """A command with what is given for its options; while one is `typing`, suggestions are wanted for that."""
        kinds = {bool: 5, int: 4, str: 3}
        options: list[dict[str, Any]] = [
            {"type": kinds[type(value)], "name": name, "value": value} for name, value in given.items()
        ]
        for one in options:
            if one["name"] == typing:
                one["focused"] = True
        data = {"id": "77", "name": command, "type": 1, "options": options}
        return self.interact(4 if typing else 2, by, self.place(chat or by, thread), data)

    async def suggestions(self, command: str, typing: str, **more: Any) -> list[str]:
        """Return the suggestions for a person who has typed that much of a command's only option."""
        name, _, typed = typing.partition("=")
        asked = self.call(command, {**more.pop("given", {}), name: typed}, typing=name, **more)
        await until(lambda: asked in self.suggested, f"suggestions for /{command}")
        return self.suggested[asked]

    async def edit(self, message: str, text: str, *, by: str = ANN) -> None:
        stamp = now()
        self.messages[message] = {**self.messages[message], "content": text, "edited_timestamp": stamp}
        self.event("MESSAGE_UPDATE", self.messages[message])

    async def delete(self, message: str, *, by: str = ANN) -> None:
        """Delete a message; Discord reports neither its author nor the person who deleted it."""
        gone = self.messages.pop(message)
        where: dict[str, Any] = {name: gone[name] for name in ("channel_id", "guild_id") if name in gone}
        self.event("MESSAGE_DELETE", {"id": message, **where})

    async def upload(self, *files: tuple[str, bytes], caption: str = "", by: str = ANN) -> str:
        found = []
        for name, data in files:
            number = self.number()
            self.files[number] = data
            kind = media_type_of(name)
            where: dict[str, Any] = {"url": f"{self.url}/files/{number}", "proxy_url": f"{self.url}/files/{number}"}
            if kind == "audio/ogg":
                where |= {"duration_secs": 1.0, "waveform": "AAAA"}
            found.append({"id": number, "filename": name, "size": len(data), "content_type": kind, **where})
        return self.told(self.message(by, self.place(by), caption, attachments=found))

    async def send(self, part: MessagePart, *, by: str = ANN) -> None:
        self.told(self.message(by, self.place(by), "", **said_of(part)))

    async def press(self, message: Shown, label: str, *, by: str = ANN) -> None:
        if label not in message.buttons:
            raise AssertionError(f"there is no button {label} under {message.text!r}")
        shown = self.messages[message.id]
        data = {"component_type": 2, "custom_id": message.buttons[label]}
        self.interact(3, by, shown["channel_id"], data, message=shown)

    async def react(self, message: str, emoji: str, *, by: str = ANN) -> None:
        about = self.reaction(message, emoji, by)
        told = {"member": self.member(by)} if "guild_id" in about else {}
        self.event("MESSAGE_REACTION_ADD", {**about, **told})

    def reaction(self, message: str, emoji: str, by: str) -> dict[str, Any]:
        return reaction(self.channels[self.messages[message]["channel_id"]], message, emoji, known_as(by))

    async def mention(self, text: str, *, by: str = ANN, chat: str = GROUP) -> str:
        said = f"<@{self.bot['id']}> {text}"
        return self.told(self.message(by, self.place(chat), said, mentions=[{**self.bot, "member": member(self.bot)}]))

    async def forward(self, text: str, *, by: str = ANN) -> str:
        return self.told(self.message(by, self.place(by), "", **passed_on(text, now())))

    async def join(self, text: str, *, by: str = ANN) -> None:
        self.event("GUILD_MEMBER_ADD", {**self.member(by), "guild_id": GUILD})
        self.told(self.message(by, CHANNEL, text, type=7))

    async def again(self) -> None:
        self.event("MESSAGE_CREATE", self.messages[max(self.messages, key=int)])

    async def noise(self) -> None:
        self.event("QUANTUM_POLL", {"id": "1"})
        self.event("MESSAGE_CREATE", self.message(ANN, CHANNEL, "", type=7))
        self.event("MESSAGE_UPDATE", self.message(ANN, dm_of(ANN), "https://example.com", embeds=[{"title": "x"}]))
        for session in self.sessions.values():
            if session.socket:
                await session.socket.send_json({"op": 99, "d": None, "s": None, "t": None})

    async def by_a_bot(self, text: str) -> None:
        for where in (dm_of(ANN), CHANNEL):
            self.told({**self.message("777", where, text), "author": {**user("777"), "bot": True}})

    def flood(self, seconds: float) -> None:
        said = {"message": "You are being rate limited.", "retry_after": seconds, "global": False}
        self.ills.append(("messages", Refused(429, 0, "", said)))

    def forbid(self, chat: str) -> None:
        self.forbidden.add(self.place(chat))

    def hang_up(self) -> None:
        for transport in list(self._open):
            transport.abort()

    def revoke(self) -> None:
        self.token = "none"
        self.hang_up()

    def signs(self, chat: str) -> int:
        path = f"channels/{self.place(chat)}/typing"
        return sum(1 for _, asked, _ in self.calls if asked == path)

    def asked(self, method: str, path: str) -> list[dict[str, Any]]:
        return [body for how, asked, body in self.calls if how == method and path in asked]

    def number(self) -> str:
        """An id as Discord makes them: its time, and a number."""
        return str((int((time.time() - self.ago) * 1000) - 1_420_070_400_000 << 22) + next(self._numbers))

    def place(self, chat: str, inside: str = "") -> str:
        """The channel of a chat, or the thread in it."""
        if inside and inside not in self.channels:
            self.channels[inside] = thread(inside, owner="55")
            self.event("THREAD_CREATE", self.channels[inside])
        where = inside or (CHANNEL if chat == GROUP else dm_of(chat))
        self.channels.setdefault(where, channel_of(where))
        return where

    def message(self, by: str, where: str, text: str, **more: Any) -> dict[str, Any]:
        """A message in a channel, not told to anybody yet."""
        about = {
            "id": self.number(),
            "channel_id": where,
            "author": self.bot if by == self.bot["id"] else user(known_as(by)),
            "content": text,
            "timestamp": now(),
            "edited_timestamp": None,
            "type": 0,
            "flags": 0,
            **dict.fromkeys(("tts", "mention_everyone", "pinned"), False),
            **{name: [] for name in ("mentions", "mention_roles", "attachments", "embeds", "components")},
            **more,
        }
        if "guild_id" in self.channels.setdefault(where, channel_of(where)):
            about |= {"guild_id": GUILD, "member": self.member(by)}
        return about

    def member(self, by: str) -> dict[str, Any]:
        return member(user(known_as(by)), self.roles.get(by, []))

    def told(self, message: dict[str, Any]) -> str:
        self.messages[message["id"]] = message
        self.channels[message["channel_id"]]["last_message_id"] = message["id"]
        self.event("MESSAGE_CREATE", message)
        return str(message["id"])

    def interact(self, kind: int, by: str, where: str, data: dict[str, Any], **more: Any) -> str:
        about = interaction(self.number(), kind, self.member(by), self.channels[where], data)
        about |= {"application_id": self.bot["id"], **more}
        self.interactions[about["id"]] = self.interactions[about["token"]] = {**about, "answer": None}
        self.event("INTERACTION_CREATE", about)
        return str(about["id"])

    def shows(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message of the bot's, as people see it from now on."""
        where, files = self.channels[message["channel_id"]], message["attachments"]
        inside = where["id"] if where["type"] == 11 else ""
        replied = str((message.get("message_reference") or {}).get("message_id", ""))
        self.shown.append(
            Shown(
                message["id"],
                chat_of(where),
                message["content"],
                inside,
                replied,
                keys(message),
                self.files[files[0]["id"]] if files else b"",
                files[0]["filename"] if files else "",
                [block[1] for block in CODE_BLOCK.findall(message["content"])],
                is_note=bool(message["flags"] & VOICE),
                more_files=[(one["filename"], self.files[one["id"]]) for one in files[1:]],
            )
        )
        self.told(message)
        return message

    def event(self, name: str, data: dict[str, Any]) -> None:
        """Tell every session; one whose connection is broken learns it when it resumes."""
        for session in self.sessions.values():
            payload = {"op": 0, "t": name, "d": data, "s": len(session.told) + 1}
            session.told.append(payload)
            if session.socket is not None and not session.socket.closed and not self.is_deaf:
                self._tasks.add(task := asyncio.get_running_loop().create_task(tell(session.socket, payload)))
                task.add_done_callback(self._tasks.discard)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.Response(body=next(one.files[name] for one in (self, *self.beside) if name in one.files))

    async def _rest(self, request: web.Request) -> web.Response:
        """Handle a request by its token; a request without one has the number of an interaction."""
        shown, parts = request.headers.get("Authorization", ""), request.match_info["path"].split("/")
        for one in self.beside:
            if shown == f"Bot {one.token}" or any(part in one.interactions for part in parts):
                return await one._answer(request)
        return await self._answer(request)

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport
        self._open.add(request.transport)
        path = request.match_info["path"]
        try:
            body = await sent(self, request)
            self.calls.append((request.method, path, body))
            if request.headers.get("Authorization", f"Bot {self.token}") != f"Bot {self.token}":
                raise Refused(401, 0, "401: Unauthorized")
            for number, (part, ill) in enumerate(self.ills):
                if part in path and request.method in ill.methods:
                    del self.ills[number]
                    raise ill
            for method, pattern, does in REST:
                if method == request.method and (found := pattern.fullmatch(path)):
                    done = does(self, body, dict(request.query), *found.groups())
                    if self.lose_answers and path.endswith("messages") and method == "POST":
                        self.lose_answers -= 1
                        request.transport.abort()
                    return answered(done, more=self._count(path))
            raise Refused(404, 0, f"no route {request.method} {path}")
        except Refused as error:
            return answered(error.body, error.status)
        finally:
            self._open.discard(request.transport)

    def _count(self, path: str) -> dict[str, str]:
        """Return Discord's headers about the window of a route."""
        for part, left in self.windows.items():
            if part in path:
                left[0] -= 1
                told = {"Limit": 50, "Remaining": left[0], "Reset-After": 60, "Reset": time.time() + 60, "Bucket": part}
                return {f"X-RateLimit-{name}": str(value) for name, value in told.items()}
        return {}

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.transport
        self._open.add(request.transport)
        session: Session | None = None
        wire = self
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": self.heartbeat}, "s": None, "t": None})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            asked = json.loads(frame.data)
            if asked["op"] == 1 and not wire.is_deaf:
                await socket.send_json({"op": 11, "d": None, "s": None, "t": None})
            elif asked["op"] in (2, 6):
                wire = next((one for one in self.beside if one.token == asked["d"]["token"]), self)
                wire._open.add(request.transport)
                session = await wire._welcome(socket, asked)
        for one in (self, wire):
            one._open.discard(request.transport)
        if session is not None and socket.close_code == 1000:
            wire.sessions.pop(session.id, None)
        return socket

    async def _welcome(self, socket: web.WebSocketResponse, asked: dict[str, Any]) -> Session | None:
        """IDENTIFY or RESUME."""
        data = asked["d"]
        if data["token"] != self.token:
            await socket.close(code=4004)
            return None
        if asked["op"] == 2:
            if data["intents"] & 1 << 15 and not self.intents_granted:
                await socket.close(code=4014)
                return None
            return await self._begin(socket)
        session = self.sessions.get(data["session_id"])
        if session is None:
            await socket.send_json({"op": 9, "d": False, "s": None, "t": None})
            return None
        self.resumed += 1
        session.socket = socket
        for payload in session.told[data["seq"] :]:
            await socket.send_json(payload)
        self.event("RESUMED", {})
        return session

    async def _begin(self, socket: web.WebSocketResponse) -> Session:
        self.identified += 1
        self.on_identify()
        session = Session(f"session{self.identified}-{self.bot['id']}", socket=socket)
        ready = {
            "v": 10,
            "user": self.bot,
            "session_id": session.id,
            "resume_gateway_url": f"{self.url.replace('http', 'ws')}/gateway",
            "guilds": [{"id": GUILD, "unavailable": True}],
            "application": {"id": self.bot["id"], "flags": 1 << 19},
        }
        for number, (name, data) in enumerate([("READY", ready), ("GUILD_CREATE", guild(self.channels, self.bot))], 1):
            payload = {"op": 0, "t": name, "d": data, "s": number}
            session.told.append(payload)
            await socket.send_str(json.dumps(payload))
        self.sessions[session.id] = session
        return session


async def sent(wire: DiscordWire, request: web.Request) -> dict[str, Any]:
    """Return the body of a request; files are kept, and the body names them by their numbers."""
    if request.content_type == "application/json":
        body: Any = await request.json()
        return body if isinstance(body, dict) else {"all": body}
    if not request.content_type.startswith("multipart"):
        return {}
    form = await request.post()
    body, files = json.loads(str(form["payload_json"])), list[dict[str, Any]]()
    told = {str(one.get("id")): one for one in body.get("attachments") or []}
    for name, value in form.items():
        if isinstance(value, web.FileField):
            number = wire.number()
            wire.files[number] = value.file.read()
            about = told.get(name[6:-1], {})  # of `files[0]`
            files.append(
                {**about, "id": number, "filename": value.filename, "size": len(wire.files[number]), "url": "x"}
            )
    return {**body, "attachments": [{**one, "proxy_url": "x"} for one in files]}


async def tell(socket: web.WebSocketResponse, payload: dict[str, Any]) -> None:
    """Send an event; a disconnected bot gets it when it resumes."""
    with suppress(ConnectionError):
        await socket.send_str(json.dumps(payload))


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() * 1e6) % 1_000_000:06d}+00:00"
