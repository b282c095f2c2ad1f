"""The menu of commands that Discord shows after a slash, made from the command table."""

import logging
import re
from functools import partial
from typing import Any

import discord

from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.discord.request_rate import retry_request
from gateway.dispatcher.commands import Command, CommandOption, CommandTable

log = logging.getLogger(__name__)

MOST = 100  # commands of a bot
LONGEST = 100  # characters of a description
NAME = re.compile(r"[-_a-z0-9]{1,32}")
ARGUMENTS = "arguments"  # the text behind a command without described options; any command, until a new menu is sent
IN_SERVERS_AND_CHATS = [0, 1]
TYPES = {"text": 3, "number": 4, "switch": 5}


def build_commands(table: CommandTable) -> list[dict[str, Any]]:
    """Build the menu, without commands whose names Discord does not take; as a text (`!name`) they still work."""
    shown = [one for one in table.values() if not one.hidden and NAME.fullmatch(one.name)]
    return [build_command(one) for one in shown[:MOST]]


def build_command(command: Command) -> dict[str, Any]:
    free = CommandOption(ARGUMENTS, command.usage or "what follows the command")
    options = command.options or ((free,) if command.usage else ())
    return {
        "type": 1,
        "name": command.name,
        "description": (command.summary or command.name)[:LONGEST],
        "contexts": IN_SERVERS_AND_CHATS,
        "integration_types": [0],
        "options": [build_option(one) for one in options],
    }


def build_option(option: CommandOption) -> dict[str, Any]:
    about: dict[str, Any] = {
        "type": TYPES[option.kind],
        "name": option.name,
        "description": option.summary[:LONGEST],
        "required": option.is_needed,
    }
    if option.choices:
        about["choices"] = [{"name": one, "value": one} for one in option.choices]
    if option.list_names:
        about["autocomplete"] = True
    if option.kind == "number":
        about["min_value"] = 1
    return about


async def send_menu(client: discord.Client, table: CommandTable) -> None:
    """Send the menu to Discord; a failure is only logged."""
    with ERRORS.logged(log.warning, "the commands are not offered"):
        if client.application_id is not None:
            payload: Any = build_commands(table)
            offer = partial(client.http.bulk_upsert_global_commands, client.application_id, payload)
            await retry_request(offer)


def text_from(interaction: discord.Interaction, table: CommandTable) -> str:
    """Return the command as a person would have typed it."""
    name, given = read_options(interaction)
    command = table.get(name)
    args = [str(given[ARGUMENTS])] if ARGUMENTS in given else []
    return " ".join(filter(None, [f"/{name}", *args, command.write_args(given) if command else ""]))


def read_options(interaction: discord.Interaction) -> tuple[str, dict[str, object]]:
    """Return the name of a command, and the values of its options."""
    data: Any = interaction.data or {}
    return str(data.get("name", "")), {str(one["name"]): one.get("value", "") for one in data.get("options", ())}


def find_typing(interaction: discord.Interaction) -> str:
    """Return the option that the person is typing."""
    data: Any = interaction.data or {}
    return next((str(one["name"]) for one in data.get("options", ()) if one.get("focused")), "")
