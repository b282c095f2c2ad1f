"""Slash commands and button presses that wait for their answer. Discord waits for three seconds.

A reply within half of that is itself the answer. Otherwise a command is acknowledged: Discord shows a sign of work for
a quarter of an hour, and the first reply replaces it. Replies that come later, or after a restart, are ordinary
messages.
"""

import logging
from typing import Any

import anyio
import discord

from gateway.adapters.discord.connection import ERRORS

log = logging.getLogger(__name__)

MOST = 500  # open at once; Discord forgets each after fifteen minutes
AT_ONCE = 1.5  # seconds within which a reply is the answer itself


class PendingCommand:
    """A slash command, which gets one answer."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self._interaction = interaction
        self._acknowledged_by = anyio.current_time() + AT_ONCE
        self._is_open = True
        self._answered = anyio.Event()
        self._answering = anyio.Lock()

    async def acknowledge(self) -> None:
        """Acknowledge the command once it is in the journal, unless a reply answers it first."""
        with anyio.CancelScope(deadline=self._acknowledged_by):
            await self._answered.wait()
            return
        async with self._answering:
            await self._defer()

    async def answer(self, **what: Any) -> str:
        """Answer the command, and return the id of the answer; "": the command is no longer open.

        Raises:
            discord.HTTPException: Discord does not take the answer.
        """
        async with self._answering:
            self._answered.set()
            if not self._is_open:
                return ""
            if self._interaction.response.is_done():
                return str((await self._interaction.followup.send(**what, wait=True)).id)
            sent = await self._interaction.response.send_message(**what)
            return str(sent.message_id or "")

    async def drop(self) -> None:
        """Remove the sign of work: the command gets no answer."""
        async with self._answering:
            await self._defer()
            with ERRORS.logged(log.info, "a command still looks as if it were at work"):
                await self._interaction.delete_original_response()

    async def _defer(self) -> None:
        if self._is_open and not self._interaction.response.is_done():
            self._is_open = False
            with ERRORS.logged(log.info, "a command could not be acknowledged, its answer comes as a message"):
                await self._interaction.response.defer(thinking=True)
                self._is_open = True


class PendingPress:
    """A press of a button that settles a question: the changed question is the answer to the press."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self._interaction = interaction
        self._answered_by = anyio.current_time() + AT_ONCE
        self._answered = anyio.Event()
        self._answering = anyio.Lock()

    async def wait(self) -> None:
        """Wait until the press is answered; after a while only remove the buttons."""
        with anyio.CancelScope(deadline=self._answered_by):
            await self._answered.wait()
        await self.edit(view=None)

    async def edit(self, **what: Any) -> bool:
        """Change the message of the button; False: the press was answered before, or cannot be answered."""
        async with self._answering:
            if self._interaction.response.is_done():
                return False
            with ERRORS.logged(log.info, "a button that was pressed looks as before"):
                await self._interaction.response.edit_message(**what)
            self._answered.set()
            return self._interaction.response.is_done()


async def send_ephemeral(interaction: discord.Interaction, text: str) -> None:
    """Show a text only to the person who typed the command or pressed the button; a failure is only logged."""
    with ERRORS.logged(log.info, "%s was not told", interaction.user.id):
        await interaction.response.send_message(text, ephemeral=True)
