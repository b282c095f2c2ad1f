"""Payloads of the three networks, in the shapes of their documentation, with people and chats of the tests' wires."""

from collections.abc import Callable
from typing import Any

from tests.adapters.payloads.discord import discord_payloads
from tests.adapters.payloads.slack import slack_payloads
from tests.adapters.payloads.telegram import telegram_payloads

Payload = tuple[str, dict[str, Any]]
"""The network's own word for what it is, and what is sent."""

PAYLOADS: dict[str, Callable[[], list[Payload]]] = {
    "telegram": telegram_payloads,
    "discord": discord_payloads,
    "slack": slack_payloads,
}
