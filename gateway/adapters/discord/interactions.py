"""The interactions of Discord: slash commands, and presses of buttons under our replies."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import discord
import msgspec
from discord import app_commands

from gateway.adapters.discord.channels import address_of, is_listened_to
from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.discord.menu import find_typing, read_options, text_from
from gateway.adapters.discord.pending_commands import MOST, PendingCommand, PendingPress, send_ephemeral
from gateway.adapters.discord.reader import roles_of
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.buttons import decode_button
from gateway.adapters.shared.incoming import STRANGER, RecentMessages, check_message, refusal_of, remember
from gateway.dispatcher.commands import CommandChoice
from gateway.messages.message import Address, Message, MessageKind

log = logging.getLogger(__name__)

LONGEST_LOOK = 2.0  # seconds; after three Discord gives up, and shows an error
MOST_SUGGESTED = 25
LONGEST_SUGGESTED = 100  # characters
NOT_HERE = "I do not listen in this channel."


class DiscordInteractions(msgspec.Struct, eq=False):
    """The handler of interactions; each is done once it is in the journal or settled."""

    _settings: DiscordSettings
    _context: AdapterContext
    _calls: dict[str, PendingCommand]
    _presses: dict[str, PendingPress]
    _recent: RecentMessages
    _bot: str
    _looks: dict[str, anyio.CancelScope] = {}  # open lookups for suggestions, by person

    async def take(self, interaction: discord.Interaction) -> None:
        """Handle one interaction; kinds that we never offered are ignored."""
        address = address_of(interaction.channel)
        if address is None or interaction.user.bot:
            return
        is_heard = is_listened_to(self._settings, interaction.channel)
        if interaction.type is discord.InteractionType.autocomplete:
            await self._suggest(interaction, address, is_heard=is_heard)
        elif not is_heard:
            await send_ephemeral(interaction, NOT_HERE)
        elif interaction.type is discord.InteractionType.application_command:
            await self._called(interaction, address)
        elif interaction.type is discord.InteractionType.component and interaction.message is not None:
            await self._pressed(interaction, address, interaction.message)

    async def _suggest(self, interaction: discord.Interaction, address: Address, *, is_heard: bool) -> None:
        """Suggest values while a person types a command.

        Typing neither authorizes nor slows the person, and is not recorded. A stranger gets no suggestions, nor does
        anyone in a channel that the bot ignores.
        """
        message = message_of(interaction, address, str(interaction.id), "", "command")
        (word, given), option = read_options(interaction), find_typing(interaction)
        found = list[app_commands.Choice[str | int | float]]()
        with self._looking(message.user_id):
            names = await self._context.suggest(message, word, option, given) if is_heard else []
            found += [as_choice(one) for one in names if len(one.value) <= LONGEST_SUGGESTED][:MOST_SUGGESTED]
        with ERRORS.logged(log.info, "nothing was suggested for /%s", word):
            await interaction.response.autocomplete(found)

    @contextmanager
    def _looking(self, person: str) -> Iterator[None]:
        """Limit a lookup in time, and end it when the same person types on."""
        if (before := self._looks.get(person)) is not None:
            before.cancel()
        with anyio.move_on_after(LONGEST_LOOK) as look:
            self._looks[person] = look
            yield
        if self._looks.get(person) is look:
            del self._looks[person]

    async def _called(self, interaction: discord.Interaction, address: Address) -> None:
        text = text_from(interaction, self._context.parts.commands)
        message = message_of(interaction, address, str(interaction.id), text, "command")
        call = PendingCommand(interaction)
        remember(self._calls, message.id, call, MOST)
        receipt = await self._context.receive(message, bot=self._bot, complete=self._recent.complete)
        if receipt.decision == "stranger":
            self._calls.pop(message.id, None)
            await send_ephemeral(interaction, STRANGER)
            return
        if receipt.settled == "" and self._calls.pop(message.id, None) is not None:
            await call.drop()
        else:
            await call.acknowledge()

    async def _pressed(self, interaction: discord.Interaction, address: Address, shown: discord.Message) -> None:
        data: Any = interaction.data or {}
        value, asked = decode_button(data.get("custom_id", ""))
        # Only one press counts: its id is made from the message, so a second press is a duplicate.
        message = message_of(interaction, address, f"{shown.id}:pressed", value, "button", reply_to=str(shown.id))
        press = self._presses[str(shown.id)] = PendingPress(interaction)
        try:
            receipt = await self._context.receive(message, bot=self._bot, asked=asked)
            if refusal := refusal_of(receipt):
                await send_ephemeral(interaction, refusal)
            elif receipt.is_closed:
                await press.wait()
            else:
                await press.edit(view=None)
        finally:
            self._presses.pop(str(shown.id), None)


def as_choice(one: CommandChoice) -> app_commands.Choice[str | int | float]:
    label = f"{one.value} - {' '.join(one.about.split())}" if one.about else one.value
    return app_commands.Choice(name=label[:LONGEST_SUGGESTED], value=one.value)


def message_of(
    interaction: discord.Interaction, address: Address, number: str, text: str, kind: MessageKind, *, reply_to: str = ""
) -> Message:
    message = Message(
        number,
        address,
        str(interaction.user.id),
        text,
        user_name=interaction.user.display_name,
        kind=kind,
        reply_to=reply_to,
        sent_at=interaction.created_at.timestamp(),
        extra={"guild": str(interaction.guild_id), "roles": roles_of(interaction.user)} if interaction.guild_id else {},
    )
    return check_message(message)
