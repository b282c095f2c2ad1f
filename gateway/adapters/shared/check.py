"""Whether the tokens of a network are good, asked of the network itself, without a gateway: what `setup` does.

Each network has a module `gateway.adapters.<network>.check` with these two functions.
"""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class PlatformReport:
    """What a network says of our tokens: who we are there, where people find us, what is to be switched there."""

    who: str
    link: str = ""
    todo: tuple[str, ...] = ()


class PlatformCheck(Protocol):
    """A module that fills this; `settings` are those of its network, in `gateway.config.platform_settings`."""

    async def check(self, settings: Any) -> PlatformReport:
        """Who we are with these tokens.

        Raises:
            AdapterError: they are not good, or the network cannot be reached; with the remedy.
        """
        ...

    async def say(self, settings: Any, chat: str, text: str) -> None:
        """One text into a chat.

        Raises:
            AdapterError: it was refused; with the reason.
        """
        ...
