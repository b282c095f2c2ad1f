"""One Discord bot at work: it connects, receives, sends, types and offers commands, until cancelled.

Discord answers heartbeats, which proves that the connection works. Its own pace is one in 41 seconds, so a frozen
connection would pass for a quiet one; so the adapter sends more of them. discord.py repairs a broken connection, and
resumes where it was; the adapter gives up one that is not repaired in time, and makes a new one.
"""

import logging
import math
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

import aiohttp
import anyio
import discord
import msgspec

from gateway.adapters.discord import menu
from gateway.adapters.discord.channels import DiscordChannels
from gateway.adapters.discord.client import DiscordClient
from gateway.adapters.discord.connection import ERRORS, configure_library
from gateway.adapters.discord.interactions import DiscordInteractions
from gateway.adapters.discord.pending_commands import PendingCommand, PendingPress
from gateway.adapters.discord.reactions import describe_reactions
from gateway.adapters.discord.receiver import DiscordReceiver
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.discord.transport import DiscordTransport
from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.adapter_host import begin_transport
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.errors import AdapterError
from gateway.messages.message import Address

log = logging.getLogger(__name__)

LONGEST_SEND = 1.0
TYPING_PAUSE = 8.0  # seconds; Discord hides the sign after ten


class DiscordTimings(msgspec.Struct, frozen=True):
    """The limits in seconds; the connection is checked every `look`.

    An open one without an answer is frozen after `silence`. A closed one is reported as down after `broken`, and given
    up after `given_up`; a new one must be ready within `ready`.
    """

    look: float = 5.0
    silence: float = 20.0
    broken: float = 15.0
    given_up: float = 180.0
    ready: float = 60.0
    login: float = 20.0
    alive: float = 60.0


class DiscordAdapter(msgspec.Struct, eq=False):
    """The adapter of one bot; fills `Adapter`."""

    _settings: DiscordSettings
    _context: AdapterContext
    times: DiscordTimings = DiscordTimings()

    async def serve(self, presence: Presence) -> None:
        """Serve the bot until cancelled.

        Raises:
            AdapterError: Discord cannot be used now; the message has the reason and the remedy.
        """
        configure_library(self._settings)
        line = DiscordClient()
        try:
            with ERRORS.translated():
                with anyio.fail_after(self.times.login):
                    await line.login(self._settings.token.reveal())
                await self._work(line, presence)
        finally:
            with anyio.CancelScope(shield=True):
                await line.close()

    async def _work(self, line: DiscordClient, presence: Presence) -> None:
        recent = RecentMessages()
        calls: dict[str, PendingCommand] = {}  # commands without an answer yet, by the ids of their messages
        pressed: dict[str, PendingPress] = {}  # presses without an answer yet, by the ids of the messages
        places = DiscordChannels(line, recent.title)
        assert line.user
        parts = self._context.parts
        reactions = StatusReactions(describe_reactions(line), parts.chats.find_display, presence)
        context = replace(self._context, receive=reactions.noting(self._context.receive))
        presses = DiscordInteractions(self._settings, context, calls, pressed, recent, str(line.user.id))
        carrier = DiscordTransport(places, calls, pressed, recent, self._settings, presence, reactions)

        async def show_typing(address: Address) -> None:
            with ERRORS.logged(log.debug, "no typing sign in %s", address.chat_id):
                where, _ = await places.find(address)
                await where.typing()

        async with anyio.create_task_group() as tasks:
            receiver = DiscordReceiver(line, tasks, presses, self._settings, context, presence, recent)
            await receiver.history.load()
            await tasks.start(reactions.run, parts.engine)
            with line.telling(receiver.listeners, presence.skip):
                tasks.start_soon(listen, line)
                with anyio.fail_after(self.times.ready):
                    await receiver.history.is_ready.wait()
                receiver.learn_channels()
                presence.probe = partial(probe, line)
                presence.way_in = f"write `!start {{code}}` to @{line.user.name}, in a direct message"
                show_menu = partial(menu.send_menu, line, parts.commands)
                await begin_transport(tasks, context, carrier, show_typing, TYPING_PAUSE, show_menu=show_menu)
                presence.up(detail_of(line))
                tasks.start_soon(receiver.inbox.note_alive, presence, self.times.alive)
                await self._watch(line, presence)

    async def _watch(self, line: DiscordClient, presence: Presence) -> None:
        """Watch the heartbeats: an answered one changes the latency, and a connection without a new latency is dead."""
        heard, latency = time.monotonic(), math.nan
        while True:
            await anyio.sleep(self.times.look)
            if is_open(line) and line.latency not in (latency, math.inf):
                heard, latency = time.monotonic(), line.latency
                presence.answered()
            silent = time.monotonic() - heard
            if silent > (self.times.silence if is_open(line) else self.times.given_up):
                raise AdapterError(f"Discord's gateway has not answered for {silent:.0f} s; the gateway connects again")
            if is_open(line):
                presence.up(detail_of(line))
                await self._beat(line)
            elif silent > self.times.broken:
                presence.down("the connection to Discord broke; the gateway reconnects")

    async def _beat(self, line: DiscordClient) -> None:
        """Send one heartbeat beyond the library's own. The connection's reader notices a failure of it too."""
        with suppress(discord.ConnectionClosed, aiohttp.ClientError, OSError, RuntimeError):
            with anyio.move_on_after(LONGEST_SEND):
                if (keep_alive := line.ws._keep_alive) is not None:  # noqa: SLF001 - it counts the time to the answer
                    await line.ws.send_as_json(keep_alive.beat())


async def listen(line: DiscordClient) -> None:
    await line.connect()
    raise AdapterError("Discord ended the connection")


def is_open(line: DiscordClient) -> bool:
    return line.ws is not None and line.ws.open


def detail_of(line: discord.Client) -> str:
    count = len(line.guilds)
    return f"{line.user}, on {count} server{'' if count == 1 else 's'}, by the gateway"


async def probe(line: DiscordClient) -> None:
    with ERRORS.translated():
        await line.http.request(discord.http.Route("GET", "/users/@me"))


ADAPTER = DiscordAdapter
