"""Buttons under a reply. Each carries, beside its value, who is asked: so it needs no memory of ours.

Discord shows and hands back what a button carries to us alone; people can press it, but not change it.
"""

from typing import Any

import discord

from gateway.errors import AdapterError
from gateway.messages import Button

LONGEST = 100  # characters that a button carries
LONGEST_LABEL = 80
SEPARATOR = "|"


def view_of(buttons: tuple[Button, ...], asked: str) -> discord.ui.View | None:
    """The buttons, for the person `asked`; empty: for everybody there.

    Raises:
        AdapterError: a value is longer than Discord carries.
    """
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons:
        carried = f"{button.value}{SEPARATOR}{asked}"
        if len(carried) > LONGEST:
            raise AdapterError(f"the button {button.label!r} carries more than Discord takes", permanent=True)
        shown: discord.ui.Button[Any] = discord.ui.Button(label=button.label[:LONGEST_LABEL], custom_id=carried)
        view.add_item(shown)
    view.stop()  # the library need not remember it: presses come to us
    return view


def parse_press(interaction: discord.Interaction) -> tuple[str, str]:
    """The value of the button that was pressed, and who was asked."""
    data: Any = interaction.data or {}
    carried = str(data.get("custom_id", ""))
    value, _, asked = carried.rpartition(SEPARATOR)
    return value, asked
