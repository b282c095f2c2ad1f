"""One Slack app at work: it connects, receives, sends and shows that it works, until cancelled.

Slack answers pings, which proves that the connection works. The library repairs a broken connection without asking why
it broke; so the adapter asks, and gives up a connection that is not repaired in time, and makes a new one.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import anyio
import anyio.abc
import msgspec
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.adapter_host import begin_transport
from gateway.adapters.shared.inbox import Inbox
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.network_routes import route_of
from gateway.adapters.shared.read_positions import ReadMarks
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.adapters.slack.connection import (
    ERRORS,
    PLATFORM,
    TIMEOUT,
    SlackIdentity,
    fetch_identity,
    fetch_socket_url,
    make_client,
)
from gateway.adapters.slack.files import fetch_file, list_parent_files
from gateway.adapters.slack.interactions import SlackInteractions
from gateway.adapters.slack.names import SlackNames
from gateway.adapters.slack.reactions import describe_reactions
from gateway.adapters.slack.reader import SlackReader, threads_of
from gateway.adapters.slack.receiver import SlackReceiver
from gateway.adapters.slack.route import SlackRoute
from gateway.adapters.slack.settings import SlackSettings
from gateway.adapters.slack.threads import AT_WORK_PAUSE, SlackThreads
from gateway.adapters.slack.transport import SlackTransport
from gateway.errors import AdapterError, describe_error
from gateway.messages.message import Message

log = logging.getLogger(__name__)


class SlackTimings(msgspec.Struct, frozen=True):
    """The limits in seconds; the connection is checked every `look`.

    A missing one is reported as down after `broken`, and given up after `given_up`. An app that Slack calls has no
    connection, and Slack gets a request every `asked` to see whether the token is still valid.
    """

    look: float = 1.0
    ping: float = 3.0
    broken: float = 10.0
    given_up: float = 45.0
    asked: float = 20.0
    alive: float = 60.0


class SlackAdapter(msgspec.Struct, eq=False):
    """The adapter of one app; fills `Adapter`."""

    _settings: SlackSettings
    _context: AdapterContext
    times: SlackTimings = SlackTimings()

    async def serve(self, presence: Presence) -> None:
        """Serve the app until cancelled.

        Raises:
            AdapterError: Slack cannot be used now; the message has the reason and the remedy.
        """
        web = make_client(self._settings)
        async with aiohttp.ClientSession(timeout=TIMEOUT) as web.session:
            with ERRORS.translated():
                await self._work(web, presence)

    async def _work(self, web: AsyncWebClient, presence: Presence) -> None:
        me, complaints = await fetch_identity(web)
        url = await fetch_socket_url(web, self._settings) if self._settings.mode == "socket" else ""
        bot = f"{me.team}:{me.user}"
        parts = self._context.parts
        marks, recent = ReadMarks(parts.engine, PLATFORM, bot), RecentMessages()
        reactions = StatusReactions(describe_reactions(web), parts.chats.find_display, presence)
        context = replace(self._context, receive=reactions.noting(self._context.receive))
        await marks.load()
        since = marks.since()
        await marks.begin(time.time())
        reader = SlackReader(me, self._settings, context, marks, partial(list_parent_files, web))
        presses = SlackInteractions(web, context, recent, bot)
        threads, names = SlackThreads(web, self._settings.prompts), SlackNames(web)

        def note(message: Message) -> None:
            recent.note(message)
            threads.note(message)

        fetch = partial(fetch_file, web=web)
        inbox = Inbox(context, bot, marks, note, fetch, threads_of, names.add_to)
        receiver = SlackReceiver(context, presence, reader, inbox, presses, threads)
        secret = self._settings.signing_secret.reveal()
        app = AsyncApp(client=web, authorize=KnownBot(me), process_before_response=True, signing_secret=secret or None)
        receiver.listen(app)
        carrier = SlackTransport(web, me, presses, recent, reactions, self._settings, presence)
        presence.complain(*complaints)
        presence.probe = partial(probe, web)
        presence.way_in = f"write `!start {{code}}` to {me.name}, in a direct message"
        if url:
            hearing = self._connected(url, app, web, presence, carrier, complaints)
        else:
            hearing = self._called(app, web, presence, me.name)
        async with anyio.create_task_group() as tasks:
            await tasks.start(reactions.run, parts.engine)
            async with hearing as watch:
                tasks.start_soon(receiver.read_again, web, marks, since)
                signs = threads.show_working, AT_WORK_PAUSE, threads.hide_working
                await begin_transport(tasks, context, carrier, *signs)
                tasks.start_soon(threads.run)
                tasks.start_soon(names.keep_listed, context)
                tasks.start_soon(inbox.note_alive, presence, self.times.alive)
                await watch()

    @asynccontextmanager
    async def _called(
        self, app: AsyncApp, web: AsyncWebClient, presence: Presence, name: str
    ) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Open the route for Slack's calls, and yield a watcher.

        Slack is silent while no person writes, so the watcher's requests prove that it answers.
        """

        async def watch() -> None:
            presence.up(f"{name}, by its calls to {route_of(self._context.served_as)}")
            while True:
                await anyio.sleep(self.times.asked)
                await web.auth_test()
                presence.answered()

        route = SlackRoute(app, presence, self._settings.signing_secret.reveal(), self._context.parts.engine)
        with self._context.routes.serving(self._context.served_as, route):
            yield watch

    @asynccontextmanager
    async def _connected(
        self,
        url: str,
        app: AsyncApp,
        web: AsyncWebClient,
        presence: Presence,
        carrier: SlackTransport,
        complaints: list[str],
    ) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Keep a Socket Mode connection open inside the block."""
        line = SlackLine(app, presence, self._settings.app_token.reveal(), ping_interval=self.times.ping)
        client: Any = line.client
        client.message_listeners.append(partial(receive_hello, presence, complaints))
        client.wss_uri = url
        await client.aiohttp_client_session.close()
        client.aiohttp_client_session = aiohttp.ClientSession(timeout=TIMEOUT)  # for connecting; the connection stays
        try:
            with anyio.fail_after(self.times.given_up):
                await client.connect()
            yield partial(self._watch, client, web, presence, carrier)
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()

    async def _watch(self, client: Any, web: AsyncWebClient, presence: Presence, carrier: SlackTransport) -> None:
        ponged, since = client.last_ping_pong_time, time.monotonic()
        detail = f"{carrier.me.name}, by Socket Mode"
        presence.up(detail)
        while True:
            await anyio.sleep(self.times.look)
            if carrier.refusal:
                raise carrier.refusal
            if await client.is_connected():
                since = time.monotonic()
                presence.up(detail)
                if client.last_ping_pong_time != ponged:
                    ponged = client.last_ping_pong_time
                    presence.answered()
                continue
            away = time.monotonic() - since
            if away > self.times.given_up:
                raise AdapterError("the connection to Slack was not restored in time; the gateway connects again")
            if away > self.times.broken:
                presence.down("the connection to Slack broke; the gateway reconnects")
            await web.auth_test()  # a revoked token would be the reason


class KnownBot(AsyncAuthorize):
    """The known identity of the bot; by itself Bolt would ask Slack, once for each event before the first answer."""

    def __init__(self, me: SlackIdentity) -> None:
        self._known = AuthorizeResult(enterprise_id=None, team_id=me.team, bot_id=me.bot, bot_user_id=me.user)

    async def __call__(self, **_event: Any) -> AuthorizeResult:
        return self._known


class SlackLine(AsyncSocketModeHandler):
    """Bolt's handler, which also acknowledges events without a listener, or they would come again."""

    def __init__(self, app: AsyncApp, presence: Presence, *args: Any, **kwargs: Any) -> None:
        super().__init__(app, *args, **kwargs)
        self._presence = presence

    async def handle(self, client: Any, req: SocketModeRequest) -> None:
        begun = time.time()
        response = BoltResponse(status=404, body="")
        with self._presence.skipping("envelope", lambda: req.payload):
            response = await run_async_bolt_app(self.app, req)
            if response.status == 404 and req.type == "events_api":  # other types have kinds that we do not want
                raise LookupError("its event has no type")
        if response.status == 404:
            response = BoltResponse(status=200, body="")
        try:
            await send_async_response(client, req, response, begun)
        except (OSError, SlackClientError) as error:
            log.info("an envelope is not acknowledged, and comes again: %s", describe_error(error))


async def receive_hello(
    presence: Presence, complaints: list[str], _client: Any, message: Mapping[str, Any], _raw: str | None
) -> None:
    """Report other connections of the app: Slack gives each one only a part of the messages."""
    if message.get("type") == "hello":
        count = int(message.get("num_connections") or 1)
        others = (
            f"{count} programs are connected with this app's token, and each gets only a part of what is said: "
            "stop the others, or give this gateway an app of its own"
        )
        presence.complain(*complaints, *([others] if count > 1 else []))


async def probe(web: AsyncWebClient) -> None:
    with ERRORS.translated():
        await web.auth_test()


ADAPTER = SlackAdapter
