"""What a chat is shown of the work on an answer: the one place where that is decided, of an address.

Three say something of it, the narrower one over the wider: what is set for all (`display`), for the network's bot (in
`platforms.NAME`), and whatever is said of one chat, which is laid over the two here. It is asked anew for each turn
and each message, so that a change of settings counts from the next one on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from gateway.config.platform_settings import PlatformSettings
from gateway.config.settings import Settings
from gateway.messages import Address

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChatDisplay:
    """Whether what a person wrote bears the bot's reactions, and whether it is shown as typing."""

    reactions: bool
    typing: bool


FindDisplay: TypeAlias = Callable[[Address], ChatDisplay]


def find_display(settings: Settings, address: Address) -> ChatDisplay:
    """What the network's settings say counts; where they say nothing, what is said for all."""
    network = getattr(settings.platforms, address.platform, PlatformSettings())
    network = getattr(network, "accounts", {}).get(address.account, network)
    return ChatDisplay(
        reactions=choose_first(network.reactions, settings.display.reactions),
        typing=choose_first(network.typing, settings.display.typing),
    )


def choose_first(own: T | None, general: T) -> T:
    return general if own is None else own
