"""The shape of the configuration: every setting, its type, its bounds, its default and what it does.

This is the one description: the file is checked against it, `config schema` and the reference in the documentation are
made from it.
"""

from typing import Annotated, Any, Literal

from msgspec import Struct

from gateway.config.agent_settings import AgentSettings, McpServerSettings, ModelSettings, RouteSettings, ToolSettings
from gateway.config.fields import describe
from gateway.config.platform_settings import AllPlatformSettings
from gateway.yaml_source import Duration, Size

MAIN = "main"


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """The daemon itself."""

    shutdown_timeout: Annotated[
        Duration,
        describe("how long what has begun may go on after SIGTERM, and how long a second gateway waits", ge=1, le=600),
    ] = 30.0


class HookOverrides(Struct, frozen=True, kw_only=True):
    """What this gateway decides about one hook, over its manifest."""

    enabled: Annotated[bool | None, describe("whether it runs; by default what its manifest says")] = None
    options: Annotated[dict[str, Any], describe("over the `options` of its manifest")] = {}
    isolation: Annotated[
        Literal["process", "none"] | None,
        describe("`none` runs it inside the gateway, where it can disturb everything"),
    ] = None
    agents: Annotated[
        tuple[str, ...], describe("it hears the turns of these agents alone; `agents.NAME.hooks` says the same")
    ] = ()


class HooksSettings(Struct, frozen=True, kw_only=True):
    """Hooks. A key that is none of these and holds a mapping is the name of a hook: its settings go there."""

    dirs: Annotated[tuple[str, ...], describe("further directories of hooks; relative ones begin at the home")] = ()
    enabled: Annotated[tuple[str, ...], describe("built-in hooks that are switched on, by name")] = ()
    disabled: Annotated[tuple[str, ...], describe("hooks that are switched off, by name")] = ()
    env: Annotated[
        Literal["lenient", "strict"],
        describe("`strict`: a hook written for Hermes gets no variable that it does not declare"),
    ] = "lenient"
    trust: Annotated[
        Literal["placed", "pinned"], describe("`pinned`: a new or changed hook runs only after `hooks trust NAME`")
    ] = "placed"
    memory: Annotated[Size, describe("what the process of one hook may use", ge=32_000_000)] = 512_000_000
    processes: Annotated[int, describe("how many processes and threads hooks may add to those of their user", ge=8)] = (
        256
    )
    eager: Annotated[int, describe("how many hooks are started at once; further ones at their first event", ge=0)] = 50
    each: Annotated[
        dict[str, HookOverrides], describe("settings of hooks by name, where a name is one of the words above")
    ] = {}


class PlatformIds(Struct, frozen=True, kw_only=True):
    """Stable ids, for each network; `all` counts on every one. Names are refused: they can be taken over."""

    telegram: Annotated[tuple[str, ...], describe("numbers")] = ()
    discord: Annotated[tuple[str, ...], describe("numbers of 15 digits or more")] = ()
    slack: Annotated[tuple[str, ...], describe("such as U012ABCDEF; channels such as C012ABCDEF")] = ()
    all: Annotated[tuple[str, ...], describe("ids of any network")] = ()


class AccessSettings(Struct, frozen=True, kw_only=True):
    """Who may speak. By default nobody."""

    owners: Annotated[PlatformIds, describe("who may do everything, on every platform where the id is theirs")] = (
        PlatformIds()
    )
    admins: Annotated[PlatformIds, describe("who may use every command, and approve")] = PlatformIds()
    users: Annotated[PlatformIds, describe("who may speak")] = PlatformIds()
    group_users: Annotated[PlatformIds, describe("who may speak in groups alone")] = PlatformIds()
    chats: Annotated[PlatformIds, describe("groups in which everybody may speak")] = PlatformIds()
    everybody: Annotated[
        tuple[Literal["telegram", "discord", "slack"], ...],
        describe("networks on which everybody may speak; dangerous"),
    ] = ()
    strangers: Annotated[
        Literal["pair", "ignore"], describe("`pair`: who writes to the bot gets a code that you can approve")
    ] = "pair"
    user_commands: Annotated[
        tuple[str, ...] | None, describe("commands of those who are no admins; by default the harmless ones")
    ] = None
    rate: Annotated[int, describe("messages a minute that one person may send", ge=1)] = 30


class SessionSettings(Struct, frozen=True, kw_only=True):
    """Conversations: when a new one begins, who shares one, what happens while one is busy."""

    reset: Annotated[
        Literal["none", "idle", "daily", "both"], describe("when a conversation begins anew by itself")
    ] = "none"
    idle: Annotated[Duration, describe("for `idle`: after this silence", ge=60)] = 86_400.0
    daily_at: Annotated[int, describe("for `daily`: at this hour of the day", ge=0, le=23)] = 4
    busy: Annotated[
        Literal["queue", "interrupt"], describe("what a message does that comes while an answer is made")
    ] = "queue"
    too_old: Annotated[
        Duration,
        describe(
            "a message that waited longer than this, for instance while we were down, is not answered, and its sender "
            "told so; 0: none is too old"
        ),
    ] = 86_400.0
    per_user_in_groups: Annotated[bool, describe("in a group each person has a conversation of their own")] = True
    per_user_in_threads: Annotated[bool, describe("in a thread too")] = False
    turns: Annotated[int, describe("answers that are made at the same time", ge=1, le=1000)] = 16
    turns_per_person: Annotated[int, describe("of those, for one person", ge=1, le=1000)] = 4


class JournalSettings(Struct, frozen=True, kw_only=True):
    """What is kept of conversations and deliveries."""

    retention: Annotated[
        Duration,
        describe("conversations that nobody used for so long are forgotten, none before a week; 0: none ever is"),
    ] = 7_776_000.0
    max_size: Annotated[
        Size,
        describe(
            "near this size the conversations that were not used for longest are forgotten, none before a week; at it "
            "no message is taken any more; 0: no limit"
        ),
    ] = 2_000_000_000


class LogSettings(Struct, frozen=True, kw_only=True):
    """What the gateway says about itself."""

    level: Annotated[Literal["debug", "info", "warning", "error"], describe("the least that is said")] = "info"
    format: Annotated[Literal["auto", "text", "json"], describe("how lines on the standard error look")] = "auto"
    size: Annotated[Size, describe("when a log file is full", ge=10_000)] = 10_000_000
    keep: Annotated[int, describe("how many full ones are kept", ge=0, le=100)] = 5


class Settings(Struct, frozen=True, kw_only=True):
    """All settings."""

    gateway: GatewaySettings = GatewaySettings()
    model: Annotated[ModelSettings, describe("the model that answers")] = ModelSettings()
    models: Annotated[dict[str, ModelSettings], describe("further models, by a name of your choice")] = {}
    agents: Annotated[
        dict[str, AgentSettings], describe("agents by name; `main` answers where no route says otherwise")
    ] = {}
    routes: Annotated[tuple[RouteSettings, ...], describe("who is answered by which agent")] = ()
    tools: ToolSettings = ToolSettings()
    mcp_servers: Annotated[
        dict[str, McpServerSettings], describe("servers of further tools, by a name of your choice")
    ] = {}
    hooks: HooksSettings = HooksSettings()
    platforms: AllPlatformSettings = AllPlatformSettings()
    access: AccessSettings = AccessSettings()
    sessions: SessionSettings = SessionSettings()
    journal: JournalSettings = JournalSettings()
    logs: LogSettings = LogSettings()

    @property
    def main(self) -> AgentSettings:
        return self.agents.get(MAIN, AgentSettings())
