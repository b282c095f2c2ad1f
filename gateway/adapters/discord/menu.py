"""The commands that Discord offers when somebody types a slash, made from the one table."""

import logging
import re
from functools import partial
from typing import Any

import discord

from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.discord.request_rate import retry_request
from gateway.commands import Command, CommandTable

log = logging.getLogger(__name__)

MOST = 100  # commands of a bot
LONGEST = 100  # characters of what is said about one
NAME = re.compile(r"[-_a-z0-9]{1,32}")
ARGUMENTS = "arguments"
IN_SERVERS_AND_CHATS = [0, 1]
TEXT = 3


def build_commands(table: CommandTable) -> list[dict[str, Any]]:
    """A command whose name Discord cannot write is left out; as a text (`!name`) it works all the same."""
    shown = [one for one in table.values() if not one.hidden and NAME.fullmatch(one.name)]
    return [build_command(one) for one in shown[:MOST]]


def build_command(command: Command) -> dict[str, Any]:
    argument = {
        "type": TEXT,
        "name": ARGUMENTS,
        "description": (command.usage or "what follows the command")[:LONGEST],
        "required": False,
    }
    return {
        "type": 1,
        "name": command.name,
        "description": (command.summary or command.name)[:LONGEST],
        "contexts": IN_SERVERS_AND_CHATS,
        "integration_types": [0],
        "options": [argument] if command.usage else [],
    }


async def send_menu(client: discord.Client, table: CommandTable) -> None:
    """Tell Discord; a menu is worth no error."""
    with ERRORS.logged(log.warning, "the commands are not offered"):
        if client.application_id is not None:
            payload: Any = build_commands(table)
            offer = partial(client.http.bulk_upsert_global_commands, client.application_id, payload)
            await retry_request(offer)


def text_from(interaction: discord.Interaction) -> str:
    """The command as it would have been typed."""
    data: Any = interaction.data or {}
    given = [str(one["value"]) for one in data.get("options", ()) if one["name"] == ARGUMENTS]
    return " ".join([f"/{data.get('name', '')}", *given])
