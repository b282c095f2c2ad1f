"""What the folder of a network holds, and how it is loaded: without the network's library, but for `check`."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from gateway.adapters import ADAPTERS
from gateway.adapters.shared.adapter_finder import expand_schema
from gateway.adapters.shared.adapter_loading import load_part
from gateway.config.platform_settings import PlatformPlace, PlatformSpec
from gateway.config.schema import SettingsSchema

if TYPE_CHECKING:  # the table of commands stands above the journal, which no setting needs
    from gateway.dispatcher.commands import CommandTable


class SetupQuestion(msgspec.Struct, frozen=True):
    """One thing to ask for, and the variable in which it is kept. A token is needed, and a secret.

    `is_called`: it is asked for only where the network calls us, or only where it does not; None: everywhere.
    """

    variable: str
    flag: str
    what: str
    where: str
    pattern: str = r"\S+"
    is_token: bool = False
    is_called: bool | None = None


class PlatformSetup(msgspec.Struct, frozen=True):
    """What `setup` says and asks. `before` is said first; `manifest` describes our app, where a network wants that,
    with the address at which it calls us or an empty one."""

    summary: str
    before: str
    questions: tuple[SetupQuestion, ...]
    manifest: "Callable[[CommandTable, str], dict[str, Any]] | None" = None


def make_access_questions(network: str, ids: str, example: str, pattern: str) -> tuple[SetupQuestion, SetupQuestion]:
    """Who may speak, and the home channel: alike everywhere, but for what an id is."""
    name = network.upper()
    return (
        SetupQuestion(
            f"{name}_ALLOWED_USERS",
            "--allow",
            "who may speak, as ids",
            f"{ids}, several with commas; without any, whoever writes first can be paired",
            rf"{pattern}(,\s*{pattern})*",
        ),
        SetupQuestion(
            f"{name}_HOME_CHANNEL",
            "--home-channel",
            "the chat for reports and alerts, as an id",
            f"for instance {example}",
        ),
    )


class PlatformReport(msgspec.Struct, frozen=True):
    """What a network says of our tokens: who we are there, where people find us, what is to be switched there."""

    who: str
    link: str = ""
    todo: tuple[str, ...] = ()


class PlatformCheck(Protocol):
    """A module that fills this; `settings` are those of its network."""

    async def check(self, settings: Any) -> PlatformReport:
        """Who we are with these tokens.

        Raises:
            AdapterError: they are not good, or the network cannot be reached; with the remedy.
        """

    async def say(self, settings: Any, chat: str, text: str) -> None:
        """One text into a chat.

        Raises:
            AdapterError: it was refused; with the reason.
        """


@cache
def load_settings_schema() -> SettingsSchema:
    """The settings that there are, with those of our networks; a home that is read may bring more."""
    places = {name: PlatformPlace(package) for name, package in ADAPTERS.items()}
    specs: dict[str, PlatformSpec] = {name: load_part(place, "settings").SPEC for name, place in places.items()}
    return SettingsSchema(specs, places, partial(expand_schema, specs, places))


def load_setup(place: PlatformPlace) -> PlatformSetup:
    setup: PlatformSetup = load_part(place, "setup").SETUP
    return setup
