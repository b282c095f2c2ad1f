"""The context of the dispatcher: the parts that it uses. The daemon builds the context once; it has no state."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from gateway.access.access_control import API, INTERNAL, TERMINAL, WEB, AccessControl
from gateway.agent import Agent, Skill
from gateway.agent.media import MediaReader
from gateway.agent.toolbox.file_reach import FindWorkspace
from gateway.chats.rules import ChatRules
from gateway.config.node_settings import JobSettings
from gateway.config.settings import SessionSettings
from gateway.dispatcher.chat_names import ChatNames
from gateway.dispatcher.commands import CommandTable
from gateway.engine.interface import Engine
from gateway.errors import AdapterError
from gateway.files.agent_folders import HomeFolders
from gateway.hooks import HookRegistry
from gateway.hooks.manifests.reach import NO_LIMITS_KNOWN, HookLimits
from gateway.messages.files import HomeFiles
from gateway.messages.message import Address, Message, address_of
from gateway.messages.roles import Role
from gateway.outbox.outbox import Outbox
from gateway.questions.places import Approvers
from gateway.records.activity import Activity
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.usage.usage_journal import UsageJournal
from gateway.voice.speaker import AnswerSpeaker
from gateway.voice.transcriber import Transcriber

# Absent approvers cannot be reached on these platforms: they use `hermes-gateway approvals`, or the page.
SILENT_PLATFORMS = (INTERNAL, API, TERMINAL)  # no one hears audio there
OWN_PLATFORMS = (INTERNAL, API, TERMINAL, WEB)
HOME = "home"  # a destination: the home channel of the first platform that has one

ChooseAgent: TypeAlias = Callable[[Message, Session], Agent]
DescribeState: TypeAlias = Callable[[], str]
# Called with the id of a session, the action (load or unload) and the skill: return the names of the tools that the
# skill adds or removes.
OnSkillChange: TypeAlias = Callable[[str, str, Skill], Awaitable[Sequence[str]]]


class PlatformInfo(msgspec.Struct, frozen=True):
    """The facts about a chat network that hooks may see, without secrets."""

    name: str
    served: bool
    home_channel: str = ""  # the id of the chat for messages that no one asked for
    home_channel_name: str = ""


class GatewayFacts(msgspec.Struct, frozen=True):
    """The facts about the gateway's setup that hooks may see."""

    home: str = ""  # the directory
    networks: tuple[PlatformInfo, ...] = ()
    model: str = ""
    provider: str = ""
    base_url: str = ""
    reset: str = ""
    idle_minutes: int = 0
    daily_at: int = 0

    def home_of(self, platform: str = "") -> PlatformInfo | None:
        """Return a network with a home channel: the network `platform` or, without a name, the first served network."""
        fits = [one for one in self.networks if one.home_channel and (one.name == platform or not platform)]
        return next((one for one in fits if one.served), fits[0] if fits and platform else None)


class GatewayReports(msgspec.Struct, frozen=True):
    """Reports and actions of the rest of the gateway, for people in a chat.

    `ways_in` lists the networks, each with the instructions for a person who has an invitation; its code
    replaces `{code}`. `open_page` returns a link to the page for a person (`PLATFORM:ID`) of this role, and raises
    AccessError if the gateway does not serve the page.
    """

    status: DescribeState
    hooks: Callable[[Role], Awaitable[str]]  # errors may quote messages: for admins only
    letters: Callable[[], Awaitable[str]]
    dead_hooks: Callable[[], Awaitable[Sequence[str]]]  # the hooks that have dead letters
    retry: Callable[[str], Awaitable[int]]
    platforms: Callable[[Role], str]
    models: Callable[[], Sequence[str]]
    restart: Callable[[], Awaitable[None]]
    steer: Callable[[str, str], Awaitable[str]]
    open_page: Callable[[Role, str], Awaitable[str]]
    ways_in: Callable[[], Sequence[tuple[str, str]]] = tuple


class ChatPlaces(msgspec.Struct, frozen=True):
    """The chats for messages without an address, or by name. `about` returns the current setup of the gateway."""

    about: Callable[[], GatewayFacts]
    access: AccessControl
    outbox: Outbox
    chat_names: ChatNames

    def list_homes(self, *, all_networks: bool = False) -> list[Address]:
        """List the home channels of the served networks, or of all networks."""
        networks = [one for one in self.about().networks if one.served or all_networks]
        return [address_of(one.name, one.home_channel) for one in networks if one.home_channel]

    def find_approvers(self, reach: float) -> Approvers:
        return Approvers(self.access, self.list_direct_chats, partial(self.list_homes, all_networks=True), reach)

    def list_admins(self) -> list[Address]:
        """List the direct chats of the approvers on served networks; if there are none, list the home channels."""
        served = {one.name for one in self.about().networks if one.served}
        return [at for at in self.list_direct_chats() if at.served_as in served] or self.list_homes()

    def list_direct_chats(self) -> list[Address]:
        """List the direct chats of listed approvers, with every bot of their network.

        The gateway does not know which of the bots an approver has written to.
        """
        bots = [one.name for one in self.about().networks]
        return [
            address_of(bot, user)
            for name, user in self.access.list_approvers()
            if name not in OWN_PLATFORMS
            for bot in [one for one in bots if ":" not in name and one.partition(":")[0] == name] or [name]
        ]

    def resolve_destination(self, to: str, why_not: Mapping[str, str] | None = None, role: Role = "owner") -> Address:
        """Return the address of `platform:chat`, `platform:chat:thread`, `platform` (its home channel) or `home`.

        Each account counts as a platform, for example `telegram:work`. The chat is an id, or a name as in
        `discord:#general`. `why_not` maps each platform that the gateway does not serve to the reason. Only an owner or
        admin (`role`) reads which chats there are.

        Raises:
            AdapterError: the platform is not served, or has no home channel or no such chat.
        """
        facts = self.about()
        served = self._list_served(facts)
        platform, place = split_place(to, {one.name for one in facts.networks}, served)
        if platform not in served and to != HOME:
            why = f": {why_not.get(platform, 'the network is not configured')}" if why_not is not None else ""
            others = ", ".join(sorted(served - {INTERNAL})) or "none"
            remedy = "set one up with: hermes-gateway setup --help"
            raise AdapterError(f"{platform[:60]!r} is not served here{why}; served: {others}\n{remedy}")
        if self.chat_names.is_name(platform, place):
            return self.chat_names.find(platform, place, role)
        if place:
            chat, _, thread = place.partition(" (")[0].partition(":")  # as `ChatNames.show` shows it
            return address_of(platform, chat, thread)
        found = facts.home_of("" if to == HOME else platform)
        if found is None:
            what = "no platform that is served has a home channel" if to == HOME else f"{platform} has no home channel"
            name = "PLATFORM" if to == HOME else platform
            section = f"platforms.{name.replace(':', '.accounts.')}"
            raise AdapterError(f"{what}\nwrite {name}:CHAT, or set {section}.home_channel in config.yaml")
        return address_of(found.name, found.home_channel)

    def is_name(self, to: str) -> bool:
        """Return True if a destination is a chat by its name, which may mean another chat tomorrow."""
        return self.chat_names.is_name(*self._split(to))

    def find_bot(self, to: str) -> str:
        """Return the bot that a destination names."""
        return self._split(to)[0]

    def show_bound(self, address: Address, name: str) -> str:
        """Return the chat that a name meant, for people; and the chat that it means now, if that is another."""
        shown = self.chat_names.show(address)
        if not name:
            return shown
        try:
            now = self.chat_names.show(self.resolve_destination(name))
        except AdapterError:
            return f"{shown}; {name} means no chat now"
        return shown if now == shown else f"{shown}; {name} means {now} now"

    def _split(self, to: str) -> tuple[str, str]:
        facts = self.about()
        return split_place(to, {one.name for one in facts.networks}, self._list_served(facts))

    def _list_served(self, facts: GatewayFacts) -> set[str]:
        return {one.name for one in facts.networks if one.served} | self.outbox.platforms.keys()


class TurnAgents(msgspec.Struct, frozen=True):
    """The choice of a turn's agent, and the limits of the hooks that may change the turn.

    `find_limits` returns the limits of a hook. `on_skill` is awaited when a session has loaded or unloaded a skill.
    """

    choose: ChooseAgent
    on_skill: OnSkillChange
    find_limits: Callable[[str], HookLimits] = lambda _hook: NO_LIMITS_KNOWN


class TurnFiles(msgspec.Struct, frozen=True):
    """The files of conversations.

    Each conversation has a folder in `folder`. `shared` shares the files of these folders with other gateways, and
    `folders` shares the folders in which agents work. `find_workspace` returns the workspace for the facts of a turn.
    `plugins` is the folder with the plugins' own pictures and sounds.
    """

    folder: Path
    shared: HomeFiles
    folders: HomeFolders
    find_workspace: FindWorkspace
    plugins: Path
    media: MediaReader


class SpokenWords(msgspec.Struct, frozen=True):
    """The transcriber of audio, and the speaker of answers."""

    transcriber: Transcriber | None = None
    speaker: AnswerSpeaker | None = None


class DispatcherSettings(msgspec.Struct, frozen=True):
    """The settings for all turns of this process.

    `keys` decides which messages share a session. Each process has a `run_id` of its own; `is_running` tells whether
    the process with a `run_id` still runs. `unattended` returns the seconds that the gateway waits for an approval if
    no person waits. The gateway does not answer a message that has waited for more than `too_old` seconds. `redact`
    takes secrets out of an error. `timezone` returns the name of the zone of `gateway.timezone`, `jobs` the limits of
    jobs.
    """

    keys: SessionSettings
    run_id: str
    is_running: Callable[[str], Awaitable[bool]]
    unattended: Callable[[], float]
    too_old: float
    redact: Callable[[str], str] = str
    timezone: Callable[[], str] = str
    jobs: Callable[[], JobSettings] = JobSettings


class DispatcherContext(msgspec.Struct, frozen=True):
    """The parts that the dispatcher uses, and its callbacks into the parts above it."""

    engine: Engine
    registry: HookRegistry
    sessions: SessionRepository
    outbox: Outbox
    access: AccessControl
    chats: ChatRules
    usage: UsageJournal
    activity: Activity
    commands: CommandTable
    reports: GatewayReports
    places: ChatPlaces
    agents: TurnAgents
    files: TurnFiles
    settings: DispatcherSettings
    voice: SpokenWords = SpokenWords()

    def is_too_old(self, message: Message) -> bool:
        """Return True if a message has waited too long for an answer, by the time of its network."""
        return bool(message.sent_at) and self.engine.clock.latest() - message.sent_at > self.settings.too_old


def split_place(to: str, known: Collection[str], served: Collection[str]) -> tuple[str, str]:
    """Split a destination into bot and chat. The name of a network with one bot means that bot."""
    platform, _, rest = to.partition(":")
    account, _, behind = rest.partition(":")
    accounts = [name for name in sorted(served) if name.startswith(f"{platform}:")]
    if account and (name := f"{platform}:{account}") in known:
        platform, rest = name, behind
    elif platform not in served and len(accounts) == 1:
        platform = accounts[0]
    return platform, rest
