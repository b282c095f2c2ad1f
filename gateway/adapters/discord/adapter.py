"""One bot at work: connected, receiving, sending, showing that it types, with its commands, until it is cancelled.

Discord answers heartbeats, which proves that the line is good. discord.py mends a line that breaks, and resumes where
it was; a line that it cannot mend in time is given up here, and built anew.
"""

import logging
import math
import time
from dataclasses import dataclass
from functools import partial

import anyio
import discord

from gateway.adapters.discord import menu
from gateway.adapters.discord.calls import Calls
from gateway.adapters.discord.connection import FAULTS, PLATFORM, in_words, point_at
from gateway.adapters.discord.line import Line
from gateway.adapters.discord.places import Places
from gateway.adapters.discord.presses import Presses
from gateway.adapters.discord.receive import Receiver
from gateway.adapters.discord.send import DiscordCarrier
from gateway.adapters.network import Ground, Presence
from gateway.adapters.network.faults import first
from gateway.adapters.network.menus import keep_shown
from gateway.adapters.network.recent import Recent
from gateway.adapters.network.typing_sign import TypingSign
from gateway.config.platforms import Discord
from gateway.errors import AdapterError
from gateway.messages import Address

log = logging.getLogger(__name__)

SIGN = 8.0  # seconds; Discord takes the sign away after ten


@dataclass(frozen=True, slots=True)
class Times:
    """In seconds. The line is looked at every `look`; `ready`, `silence`: after so long it is given up."""

    look: float = 5.0
    broken: float = 15.0
    silence: float = 180.0
    ready: float = 60.0
    alive: float = 60.0


class DiscordAdapter:
    """Fills `Adapter`."""

    def __init__(self, settings: Discord, ground: Ground, times: Times | None = None) -> None:
        self._settings = settings
        self._ground = ground
        self._times = times or Times()

    async def serve(self, presence: Presence) -> None:
        """Until cancelled.

        Raises:
            AdapterError: Discord cannot be used now; the message says why, and what helps.
        """
        point_at(self._settings)
        recent = Recent()
        receiver = Receiver(self._settings, self._ground, presence, recent)
        line = Line(receiver.ears)
        try:
            await line.login(self._settings.token.reveal())
            await self._work(line, receiver, recent, presence)
        except ExceptionGroup as group:
            error = first(group)
            raise in_words(error) if isinstance(error, FAULTS) else error from None
        except FAULTS as error:
            raise in_words(error) from None
        finally:
            with anyio.CancelScope(shield=True):
                await line.close()

    async def _work(self, line: Line, receiver: Receiver, recent: Recent, presence: Presence) -> None:
        calls, places = Calls(), Places(line, recent.title)
        assert line.user
        presses = Presses(self._settings, self._ground, calls, recent, str(line.user.id))
        carrier = DiscordCarrier(places, calls, recent, self._settings, presence)

        async def show_typing(address: Address) -> None:
            try:
                where, _ = await places.find(address)
                await where.typing()
            except FAULTS as error:  # the sign is worth no error
                log.debug("no typing sign in %s: %s", address.chat_id, in_words(error))

        async with anyio.create_task_group() as tasks:
            await receiver.begin(line, tasks, presses)
            tasks.start_soon(listen, line)
            with anyio.fail_after(self._times.ready):
                await receiver.is_ready.wait()
            presence.up(detail_of(line))
            await tasks.start(self._ground.outbox.serve_platform, carrier)
            tasks.start_soon(TypingSign(PLATFORM, show_typing, SIGN).run, self._ground.registry)
            show = partial(menu.show, line, self._ground.commands)
            tasks.start_soon(keep_shown, self._ground.registry, self._ground.commands, show)
            tasks.start_soon(self._keep_alive_note, receiver)
            await self._watch(line, presence)

    async def _watch(self, line: Line, presence: Presence) -> None:
        """A heartbeat that was answered has a new latency; a line without a new one is not alive, whatever it says."""
        heard, latency = time.monotonic(), math.nan
        while True:
            await anyio.sleep(self._times.look)
            if is_open(line) and line.latency not in (latency, math.inf):
                heard, latency = time.monotonic(), line.latency
                presence.answered()
            silent = time.monotonic() - heard
            if silent > self._times.silence:
                raise AdapterError(f"Discord's gateway has not answered for {silent:.0f} s; the line is built anew")
            if is_open(line):
                presence.up(detail_of(line))
            elif silent > self._times.broken:
                presence.down("the line to Discord broke, and is being mended")

    async def _keep_alive_note(self, receiver: Receiver) -> None:
        while True:
            await anyio.sleep(self._times.alive)
            await receiver.note_alive()


async def listen(line: Line) -> None:
    await line.connect()
    raise AdapterError("Discord ended the connection")


def is_open(line: Line) -> bool:
    return line.ws is not None and line.ws.open


def detail_of(line: discord.Client) -> str:
    count = len(line.guilds)
    return f"{line.user}, on {count} server{'' if count == 1 else 's'}, by the gateway"
