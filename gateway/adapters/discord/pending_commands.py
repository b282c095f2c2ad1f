"""Slash commands that wait for their answer. Until then Discord shows that we are at work, a quarter of an hour long.

A call is acknowledged once its message is in the journal or settled. The first reply to it becomes its answer; replies
that come later, or after a restart, are messages like all others.
"""

import logging

import anyio
import discord

from gateway.adapters.discord.connection import ERRORS

log = logging.getLogger(__name__)

MOST = 500  # that wait at once; Discord forgets each after fifteen minutes
PATIENCE = 3.0


class PendingCommand:
    """One slash command. Its answer waits until Discord has the acknowledgement."""

    def __init__(self, interaction: discord.Interaction) -> None:
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


async def send_ephemeral(interaction: discord.Interaction, text: str) -> None:
    """Say something to whoever called or pressed, and to nobody else. What fails here changes nothing."""
    with ERRORS.logged(log.info, "%s was not told", interaction.user.id):
        await interaction.response.send_message(text, ephemeral=True)
