"""The folder of a network, and the loading of its modules: without the network's library, except for `check`."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from gateway.adapters import ADAPTERS
from gateway.adapters.shared.adapter_finder import expand_schema
from gateway.adapters.shared.adapter_loading import load_part
from gateway.config.platform_settings import PlatformPlace, PlatformSpec
from gateway.config.schema import SettingsSchema

if TYPE_CHECKING:  # the command table imports the journal, which no setting needs
    from gateway.dispatcher.commands import CommandTable


class SetupQuestion(msgspec.Struct, frozen=True):
    """One question of the setup, and the variable for its answer. A token is required, and secret.

    `is_called`: True asks it only if the network calls us, False only if it does not; None: always.
    `example`: a right answer, shown below a wrong one.
    """

    variable: str
    flag: str
    what: str
    where: str
    pattern: str = r"\S+"
    is_token: bool = False
    is_called: bool | None = None
    example: str = ""


class PlatformSetup(msgspec.Struct, frozen=True):
    """The texts and questions of `setup`.

    `before` is shown first. `manifest` describes our app, for a network that requires that, with the address at which
    it calls us or an empty one.
    """

    summary: str
    before: str
    questions: tuple[SetupQuestion, ...]
    manifest: "Callable[[CommandTable, str], dict[str, Any]] | None" = None


def make_access_questions(
    network: str, ids: str, example: str, pattern: str, chat_pattern: str = r"\S+"
) -> tuple[SetupQuestion, SetupQuestion]:
    """Make the questions about allowed people and the home channel, with the network's own kinds of ids."""
    name = network.upper()
    return (
        SetupQuestion(
            f"{name}_ALLOWED_USERS",
            "--allow",
            "the users who may write to the bot, as ids",
            f"{ids}, several with commas; without any, the first person who writes can be paired",
            rf"{pattern}(,\s*{pattern})*",
        ),
        SetupQuestion(
            f"{name}_HOME_CHANNEL",
            "--home-channel",
            "the chat for reports and alerts, as an id",
            f"for instance {example}",
            rf"{chat_pattern}|{pattern}",
        ),
    )


class PlatformReport(msgspec.Struct, frozen=True):
    """A network's report on our tokens: the bot's name, the link to it, and the steps that are missing."""

    who: str
    link: str = ""
    todo: tuple[str, ...] = ()


class PlatformCheck(Protocol):
    """The interface of a module that checks tokens; `settings` are those of its network."""

    async def check(self, settings: Any) -> PlatformReport:
        """Return the report on these tokens.

        Raises:
            AdapterError: they are not valid, or the network cannot be reached; with the remedy.
        """

    async def say(self, settings: Any, chat: str, text: str) -> None:
        """Send one text to a chat.

        Raises:
            AdapterError: the network refused it; with the reason.
        """


@cache
def load_settings_schema() -> SettingsSchema:
    """Return the settings schema with our networks; a home may add more."""
    places = {name: PlatformPlace(package) for name, package in ADAPTERS.items()}
    specs: dict[str, PlatformSpec] = {name: load_part(place, "settings").SPEC for name, place in places.items()}
    return SettingsSchema(specs, places, partial(expand_schema, specs, places))


def load_setup(place: PlatformPlace) -> PlatformSetup:
    setup: PlatformSetup = load_part(place, "setup").SETUP
    return setup
