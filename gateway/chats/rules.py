"""The rules of chats and threads, from all their sources, as one table; `ChatRules.find` reads it.

The strongest source comes first: `chats` in the configuration, for the thread, then for the chat; an older setting that
names the chat; `/settings` by an admin, in the thread, then in the chat; the whole network's settings; the default.
Rules from the configuration of a chat are fixed: `/settings` cannot change them. Authorization is not a rule of a chat.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from gateway.chats.journal import ChatJournal, list_keys
from gateway.config.platform_settings import (
    DisplaySettings,
    PlatformAccount,
    ProgressDisplay,
    list_accounts,
)
from gateway.config.settings import MAIN, AnswerRule, ChatSettings, RouteSettings, Settings
from gateway.config.voice_settings import LANGUAGE_PATTERN
from gateway.messages.message import Address
from gateway.messages.parts import MessagePart

RuleName: TypeAlias = Literal["answer", "agent", "model", "language", "progress", "reactions", "typing"]
CHANGEABLE: Final[tuple[RuleName, ...]] = get_args(RuleName)
ANSWERS: Final[tuple[AnswerRule, ...]] = get_args(AnswerRule)
PROGRESS: Final[tuple[ProgressDisplay, ...]] = get_args(ProgressDisplay)
SWITCH: Final = ("on", "off")
USUAL: Final = DisplaySettings()
DISPLAY_DEFAULTS: Final = (USUAL.progress, USUAL.reactions, USUAL.typing)
MOST_FOUND: Final = 1000  # cached tables, by person and place
KEPT_ORIGIN: Final = "/settings"
DEFAULT_ORIGIN: Final = "default"


_LANGUAGE = re.compile(LANGUAGE_PATTERN)


class ChatRule(NamedTuple):
    """One effective rule; `origin` is its source. An empty value: no rule."""

    value: str
    origin: str
    is_fixed: bool = False


class ChatDisplay(msgspec.Struct, frozen=True):
    """The details of work that a chat shows beside an answer."""

    progress: ProgressDisplay
    reactions: bool
    typing: bool
    is_edited: bool = False  # a started answer is completed by an edit, whatever came in between


FindDisplay: TypeAlias = Callable[[Address], ChatDisplay]


class ChatRules:
    """The table. `kept` are the admins' settings; the rest comes from the present configuration."""

    def __init__(self, kept: ChatJournal, settings: Settings) -> None:
        self.kept = kept
        self.apply_settings(settings)

    def apply_settings(self, settings: Settings) -> None:
        """Use this configuration from now on."""
        self._settings = settings
        self._bots = {one.name: one for one in list_accounts(settings.platforms)}
        # valid for the state `_found_at` of `kept`
        self._found: dict[tuple[Address, str], Mapping[RuleName, ChatRule]] = {}
        self._found_at = -1

    def find(self, address: Address, user_id: str = "") -> Mapping[RuleName, ChatRule]:
        """Return every rule for this place and person, from its strongest source."""
        if self._found_at != self.kept.changes or len(self._found) >= MOST_FOUND:
            self._found, self._found_at = {}, self.kept.changes
        rules = self._found.get((address, user_id))
        if rules is None:
            rules = self._found[address, user_id] = self._join_layers(address, user_id)
        return rules

    def _join_layers(self, address: Address, user_id: str) -> Mapping[RuleName, ChatRule]:
        found: dict[RuleName, ChatRule] = {}
        for origin, said, is_fixed in self._list_layers(address, user_id):
            for name in CHANGEABLE:
                if name not in found and (value := said.get(name)):
                    found[name] = ChatRule(value, origin, is_fixed)
        return {name: found.get(name, ChatRule("", DEFAULT_ORIGIN)) for name in CHANGEABLE}

    def find_display(self, address: Address) -> ChatDisplay:
        """Return the display settings; read each time, so that a change applies at once."""
        rules = self.find(address)
        progress = next(one for one in PROGRESS if one == rules["progress"].value)
        reacts, types = rules["reactions"].value == "on", rules["typing"].value == "on"
        return ChatDisplay(progress, reacts, types, is_edited=self._settings.display.final == "edit")

    def can_show(self, address: Address, kind: type[MessagePart]) -> bool:
        """Return True if the network there can show such parts."""
        bot = self._bots.get(address.served_as)
        return bot is not None and issubclass(kind, type(bot.settings).NATIVE_PARTS)

    def is_stamped(self, address: Address) -> bool:
        """Return True if the network there sets the time of a message, so that no person can choose it."""
        bot = self._bots.get(address.served_as)
        return bot is not None and type(bot.settings).IS_STAMPED

    def is_answered(self, address: Address, *, is_called: bool, is_command: bool) -> bool:
        """Return True if the bot should answer a message; `is_called`: it mentions the bot, or replies to it.

        Commands are always answered, since otherwise no one could change a rule of silence there.
        """
        if address.chat_type == "dm" or is_command:
            return True
        answer = self.find(address)["answer"].value
        return answer == "always" or (is_called and answer != "never")

    def is_heard(self, address: Address) -> bool:
        """Return True if overheard messages there are remembered."""
        return address.chat_type != "dm" and self.find(address)["answer"].value == "quiet"

    def wants_all(self, served_as: str) -> bool:
        """Return True if this bot must receive messages to others in a group."""
        accounts = tuple(f"{name}:" for name in self._bots if name.startswith(f"{served_as}:"))

        def is_own(chat: str) -> bool:
            return chat.startswith(f"{served_as}:") and not chat.startswith(accounts)

        kept = [values.get("answer") for chat, values in self.kept.chats.items() if is_own(chat)]
        named = [one.answer for chat, one in self._settings.chats.items() if is_own(chat)]
        bot = self._bots.get(served_as)
        is_free = bot is not None and (bot.settings.free_response_channels or not bot.settings.require_mention)
        return bool(is_free) or any(answer in ("always", "quiet") for answer in (*kept, *named))

    def list_choices(self, name: RuleName) -> tuple[str, ...]:
        """Return the possible values of a rule; empty: any language."""
        match name:
            case "answer":
                return ANSWERS
            case "agent":
                return tuple(dict.fromkeys((MAIN, *self._settings.agents)))
            case "model":
                return tuple(self._settings.models)
            case "progress":
                return PROGRESS
            case "reactions" | "typing":
                return SWITCH
        return ()

    def is_right(self, name: RuleName, value: str) -> bool:
        """Return True if the rule can have this value."""
        if name == "language":
            return bool(_LANGUAGE.fullmatch(value))
        return value in self.list_choices(name)

    def list_kept(self) -> Iterator[tuple[str, RuleName, str]]:
        """Yield the settings of admins that still exist as rules: the chat, the rule, its value."""
        for chat, values in sorted(self.kept.chats.items()):
            yield from ((chat, name, values[name]) for name in CHANGEABLE if values.get(name))

    def _list_layers(self, address: Address, user_id: str) -> Iterator[tuple[str, Mapping[str, str], bool]]:
        for chat in list_keys(address):
            if (own := self._settings.chats.get(chat)) is not None:
                yield f"config.yaml: chats.{chat}", values_of(own), True
        route = next((one for one in self._settings.routes if is_route_for(one, address, user_id)), None)
        bot = self._bots.get(address.served_as)
        free = bot.settings.free_response_channels if bot else ()
        if bot and (address.chat_id in free or (address.thread_id and address.thread_id in free)):
            yield describe_origin(bot, "free_response_channels"), {"answer": "always"}, True
        if route and (route.chat or route.user):
            yield "config.yaml: routes", {"agent": route.agent}, True
        for chat in list_keys(address):
            kept = self.kept.chats.get(chat, {})
            right: dict[str, str] = {
                name: kept[name] for name in CHANGEABLE if name in kept and self.is_right(name, kept[name])
            }
            yield f"{KEPT_ORIGIN} in {chat}", right, False
        if route:
            yield "config.yaml: routes", {"agent": route.agent}, False
        yield from self._list_wide_layers(bot)

    def _list_wide_layers(self, bot: PlatformAccount | None) -> Iterator[tuple[str, Mapping[str, str], bool]]:
        """Yield the layers of the network and of all chats; the defaults need not be in the file."""
        if bot:
            if not bot.settings.require_mention:
                yield describe_origin(bot, "require_mention"), {"answer": "always"}, False
            told = bot.settings
            for name, value in list_shown(told.progress, told.reactions, told.typing):
                yield describe_origin(bot, name), {name: value}, False
        display = self._settings.display
        usual: dict[str, str] = {**dict(list_shown(*DISPLAY_DEFAULTS))}
        for name, value in list_shown(display.progress, display.reactions, display.typing):
            if value != usual[name]:
                yield f"config.yaml: display.{name}", {name: value}, False
        yield DEFAULT_ORIGIN, {"agent": MAIN, "answer": "mention", **usual}, False


def values_of(own: ChatSettings) -> dict[str, str]:
    """Return the configuration of one chat as values of rules."""
    words = {"answer": own.answer or "", "agent": own.agent, "model": own.model, "language": own.language}
    return {**words, **dict(list_shown(own.progress, own.reactions, own.typing))}


def list_shown(progress: str | None, reactions: bool | None, typing: bool | None) -> Iterator[tuple[RuleName, str]]:
    """Yield display settings as values of rules."""
    said: dict[RuleName, str | bool | None] = {"progress": progress, "reactions": reactions, "typing": typing}
    for name, value in said.items():
        if value is not None:
            yield name, value if isinstance(value, str) else SWITCH[not value]


def is_route_for(route: RouteSettings, address: Address, user_id: str) -> bool:
    wanted = (route.platform, route.account, route.chat, route.user)
    given = (address.platform, address.account, address.chat_id, user_id)
    return all(want in ("", there) for want, there in zip(wanted, given, strict=True))


def describe_origin(bot: PlatformAccount, setting: str) -> str:
    return f"config.yaml: {'.'.join((*bot.path, setting))}"
