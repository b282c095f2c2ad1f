"""Slash commands and presses of buttons that wait for their answer. Discord waits for three seconds.

A reply that comes within half of that is itself the answer. Else a command is acknowledged: Discord shows that we are
at work, a quarter of an hour long, and the first reply to it becomes its answer then. Replies that come later, or after
a restart, are messages like all others.
"""

import logging
from typing import Any

import anyio
import discord

from gateway.adapters.discord.connection import ERRORS

log = logging.getLogger(__name__)

MOST = 500  # that wait at once; Discord forgets each after fifteen minutes
AT_ONCE = 1.5  # seconds from its coming, for a reply that is the answer


class PendingCommand:
    """One slash command; it has one answer."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self._interaction = interaction
        self._acknowledged_by = anyio.current_time() + AT_ONCE
        self._is_open = True
        self._answered = anyio.Event()
        self._answering = anyio.Lock()

    async def acknowledge(self) -> None:
        """Once it is in the journal, unless it is answered at once."""
        with anyio.CancelScope(deadline=self._acknowledged_by):
            await self._answered.wait()
            return
        async with self._answering:
            await self._defer()

    async def answer(self, **what: Any) -> str:
        """The id of the answer; empty: the call is no longer open.

        Raises:
            discord.HTTPException: Discord does not take that.
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
        """There is no answer."""
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
    """A press under a question that is settled by it: how the question looks then is the answer to the press."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self._interaction = interaction
        self._answered_by = anyio.current_time() + AT_ONCE
        self._answered = anyio.Event()
        self._answering = anyio.Lock()

    async def wait(self) -> None:
        """Until it is answered; after a while the buttons go without it."""
        with anyio.CancelScope(deadline=self._answered_by):
            await self._answered.wait()
        await self.edit(view=None)

    async def edit(self, **what: Any) -> bool:
        """Make the message show this; False: the press was answered before, or cannot be."""
        async with self._answering:
            if self._interaction.response.is_done():
                return False
            with ERRORS.logged(log.info, "a button that was pressed looks as before"):
                await self._interaction.response.edit_message(**what)
            self._answered.set()
            return self._interaction.response.is_done()


async def send_ephemeral(interaction: discord.Interaction, text: str) -> None:
    """Say something to whoever called or pressed, and to nobody else. What fails here changes nothing."""
    with ERRORS.logged(log.info, "%s was not told", interaction.user.id):
        await interaction.response.send_message(text, ephemeral=True)
