"""Slash commands that wait for their answer. Until then Discord shows that we are at work, a quarter of an hour long.

A call is acknowledged once its message is in the journal or settled. The first reply to it becomes its answer; replies
that come later, or after a restart, are messages like all others.
"""

import logging
import time

import anyio
import discord

from gateway.adapters.discord.connection import ERRORS

log = logging.getLogger(__name__)

LIFETIME = 840.0  # seconds; Discord forgets a call after fifteen minutes
PATIENCE = 3.0


class PendingCommand:
    """One slash command. Its answer waits until Discord has the acknowledgement."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self.until = time.monotonic() + LIFETIME
        self._interaction = interaction
        self._is_open = False
        self._settled = anyio.Event()

    async def acknowledge(self) -> None:
        try:
            with ERRORS.logged(log.info, "a command could not be acknowledged, its answer comes as a message"):
                await self._interaction.response.defer(thinking=True)
                self._is_open = True
        finally:
            self._settled.set()

    async def hook(self) -> discord.Webhook | None:
        """What sends the answer; None: the call is no longer open."""
        with anyio.move_on_after(PATIENCE):
            await self._settled.wait()
        return self._interaction.followup if self._is_open else None

    async def drop(self) -> None:
        """There is no answer."""
        with ERRORS.logged(log.info, "a command still looks as if it were at work"):
            await self._interaction.delete_original_response()


class PendingCommands:
    """The calls that nobody has answered yet, by the ids of their messages."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingCommand] = {}

    def open(self, message_id: str, interaction: discord.Interaction) -> PendingCommand:
        now = time.monotonic()
        self._calls = {known: call for known, call in self._calls.items() if call.until > now}
        call = self._calls[message_id] = PendingCommand(interaction)
        return call

    def take(self, message_id: str) -> PendingCommand | None:
        """The call that a reply answers, once."""
        call = self._calls.pop(message_id, None)
        return call if call is not None and call.until > time.monotonic() else None


async def send_ephemeral(interaction: discord.Interaction, text: str) -> None:
    """Say something to whoever called or pressed, and to nobody else. What fails here changes nothing."""
    with ERRORS.logged(log.info, "%s was not told", interaction.user.id):
        await interaction.response.send_message(text, ephemeral=True)
